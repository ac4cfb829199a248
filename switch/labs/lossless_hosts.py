"""Hosts of lossless links: they keep the rate of their link, honour priority flow control, and may storm.

Frames of priority flow control are those of IEEE 802.1Q clause 36 and 802.3 Annex 31D. A quantum is 512 bit times.
"""

from __future__ import annotations

import select
import struct
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

from labs.rig import ipv4_frame, open_interface

PFC_ADDRESS = bytes.fromhex("0180c2000001")
MAC_CONTROL = b"\x88\x08"
PFC_OPCODE, PAUSE_OPCODE = 0x0101, 0x0001
PRIORITIES = 8
QUANTUM_BITS = 512
QUANTA_MAX = 0xFFFF
WIRE_BYTES = 24
"""Preamble, check sequence and gap."""
DSCP = {3: 24, 4: 32}
"""What the switch takes for priorities 3 and 4 (switch/docs/lossless.md)."""
STORM_EVERY_S = 0.1
LOOK_EVERY_S = 0.05
CATCH_UP_FRAMES = 4
"""A host that was kept from running catches up with so many frames, and not with more: a link would not either."""
TELL = struct.Struct("!4sHBI")
WORD = b"pfc!"


def mac(host: int) -> bytes:
    """The address of a host."""
    return b"\x02\x00\x00\x00" + host.to_bytes(2, "big")


def pfc_frame(priority: int, quanta: int) -> bytes:
    """Pause a priority for so many quanta; 0 lets it go on."""
    times = [quanta if number == priority else 0 for number in range(PRIORITIES)]
    head = PFC_ADDRESS + mac(0xFFFF) + MAC_CONTROL + struct.pack("!HH8H", PFC_OPCODE, 1 << priority, *times)
    return head + bytes(60 - len(head))


@dataclass
class Flow:
    """Frames of a priority to a host, as fast as the host's link takes them."""

    to: int
    priority: int
    sent: int = 0


@dataclass
class Arrivals:
    """What has come of one flow: frames, numbers that were left out, and the longest time without a frame."""

    frames: int = 0
    missing: int = 0
    out_of_order: int = 0
    next_number: int = 0
    times: list[float] = field(default_factory=list)

    def take(self, number: int, now: float) -> None:
        """A frame has come."""
        self.frames += 1
        self.times.append(now)
        if number < self.next_number:
            self.out_of_order += 1
            return
        self.missing += number - self.next_number
        self.next_number = number + 1


class Host(threading.Thread):
    """A host at `interface`. Times are those of time.monotonic()."""

    def __init__(
        self, number: int, interface: str, rate_bps: float, frame_bytes: int, flows: list[Flow]
    ) -> None:
        super().__init__(daemon=True, name=f"host {number}")
        self.number, self.rate_bps, self.frame_bytes, self.flows = number, rate_bps, frame_bytes, flows
        self.arrived: dict[tuple[int, int], Arrivals] = defaultdict(Arrivals)
        self.pauses = 0
        self.sending = threading.Event()
        self.storming = threading.Event()
        self.storm_priority = 3
        self._ended = threading.Event()
        self._paused_until = [0.0] * PRIORITIES
        self._link = open_interface(interface)
        self._turn = 0
        self._next_storm = 0.0

    def run(self) -> None:
        frame_s = (self.frame_bytes + WIRE_BYTES) * 8 / self.rate_bps
        due = time.monotonic()
        while not self._ended.is_set():
            now = time.monotonic()
            due = max(due, now - CATCH_UP_FRAMES * frame_s)
            if self.storming.is_set() and now >= self._next_storm:
                self._link.send(pfc_frame(self.storm_priority, QUANTA_MAX))
                self._next_storm = now + STORM_EVERY_S
            flow = self._flow_due(now) if self.sending.is_set() and now >= due else None
            if flow is not None:
                self._send(flow)
                due += frame_s
            wait_s = min(max(due - now, 0.0), LOOK_EVERY_S) if self.sending.is_set() else LOOK_EVERY_S
            if flow is None and wait_s == 0.0:
                wait_s = frame_s  # all that it would send is paused
            while select.select([self._link], [], [], 0.0 if flow is not None else wait_s)[0]:
                self._take()
                wait_s = 0.0
        self._link.close()

    def calm(self) -> None:
        """End the storm: let the priority go on."""
        self.storming.clear()
        self._link.send(pfc_frame(self.storm_priority, 0))

    def end(self) -> None:
        self._ended.set()
        self.join()

    def sent(self) -> int:
        """Frames sent in all."""
        return sum(flow.sent for flow in self.flows)

    def received(self) -> int:
        """Frames received in all."""
        return sum(arrivals.frames for arrivals in list(self.arrived.values()))

    def _flow_due(self, now: float) -> Flow | None:
        """The next flow in turn that is not paused."""
        for offset in range(len(self.flows)):
            flow = self.flows[(self._turn + offset) % len(self.flows)]
            if self._paused_until[flow.priority] <= now:
                self._turn = (self._turn + offset + 1) % len(self.flows)
                return flow
        return None

    def _send(self, flow: Flow) -> None:
        told = TELL.pack(WORD, self.number, flow.priority, flow.sent)
        payload = told + bytes(self.frame_bytes - 42 - len(told))
        self._link.send(ipv4_frame(mac(flow.to), mac(self.number), payload, dscp=DSCP[flow.priority]))
        flow.sent += 1

    def _take(self) -> None:
        frame, source = self._link.recvfrom(2_048)
        if source[2] == 4:  # PACKET_OUTGOING: what this host sent itself
            return
        now = time.monotonic()
        if frame[12:14] == MAC_CONTROL:
            self._obey(frame, now)
        elif frame[42:46] == WORD:
            _, sender, priority, number = TELL.unpack_from(frame, 42)
            self.arrived[sender, priority].take(number, now)

    def _obey(self, frame: bytes, now: float) -> None:
        (opcode,) = struct.unpack_from("!H", frame, 14)
        quantum_s = QUANTUM_BITS / self.rate_bps
        if opcode == PFC_OPCODE:
            enabled, *times = struct.unpack_from("!H8H", frame, 16)
            for priority, quanta in enumerate(times):
                if enabled >> priority & 1:
                    self._paused_until[priority] = now + quanta * quantum_s
                    self.pauses += quanta > 0
        elif opcode == PAUSE_OPCODE:
            (quanta,) = struct.unpack_from("!H", frame, 16)
            self._paused_until = [now + quanta * quantum_s] * PRIORITIES
            self.pauses += quanta > 0
