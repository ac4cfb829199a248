"""The queue lab on interfaces: a sender that keeps time, wormcast-switch, a receiver that notes when frames came."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from labs.packets import build, parse
from labs.queues_model import NAMES, Run, Setup
from labs.rig import SO_TIMESTAMPNS, LabError, make_cable, open_interface, running_switch

BEHIND_S_MAX = 0.02
"""A sender that is later than this goes on later, instead of sending all at once what it has missed."""
QUIET_S = 0.5
"""Nothing for so long means that all has arrived."""
FRAME_BYTES_MAX = 2_048
RECEIVE_RING_FRAMES = 8_192
SOL_PACKET, PACKET_STATISTICS = 263, 6
"""As in linux/socket.h and linux/if_packet.h."""


@contextlib.contextmanager
def real_time() -> Iterator[bool]:
    """Run before all else on the machine, and so what is started meanwhile; False where that is not allowed."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def run_live(setup: Setup, program: Path, directory: Path, schedule: Sequence[tuple[float, int]]) -> Run:
    """Send frames at these times (s, priority) through a switch, and see when and how they arrive."""
    for port, host in enumerate(("sender", "receiver")):
        make_cable(host, f"port{port}")
    argv = [str(program), "-i", "0@port0", "-i", "1@port1", "--ring-frames", str(RECEIVE_RING_FRAMES)]
    argv += ["--port-rate", setup.rate, "--queue-frames", str(setup.queue_frames)]
    argv += ["--", "--grpc-server-addr", f"unix:{directory}/switch.sock"]
    with (
        running_switch(argv, directory) as switch,
        open_interface("receiver", timeout_s=QUIET_S) as receiving,
    ):
        receiver = _Receiver(receiving)
        receiver.start()
        with open_interface("sender") as sending:
            start_ns, sent = _send(sending, setup, schedule)
        receiver.join_when_quiet()
        statistics = switch.stop()
        missed = receiver.missed()
    if missed:
        raise LabError(f"the lab's receiver missed {missed} frames: the machine is too busy for this rate")
    packets = [
        packet for frame, at_ns in receiver.frames if (packet := parse(frame, at_ns, start_ns)) is not None
    ]
    ports = {port["port"]: port for port in statistics["ports"]}
    queues = {queue["queue"]: queue["tail_drops"] for queue in ports[1]["queues"]}
    dropped = {priority: queues.get(priority, 0) for priority in NAMES}
    return Run(packets, sent, dropped, ports[0]["receive_ring_full"])


def _send(
    link: socket.socket, setup: Setup, schedule: Sequence[tuple[float, int]]
) -> tuple[int, dict[int, list[float]]]:
    """Send; give when the run began (ns since 1970) and when each frame was sent (s), by priority."""
    sent: dict[int, list[float]] = {priority: [] for priority in NAMES}
    start_ns = time.time_ns()
    shift_s = 0.0
    for number, (due_s, priority) in enumerate(schedule):
        while (ahead_s := due_s + shift_s - (time.time_ns() - start_ns) * 1e-9) > 0:
            time.sleep(ahead_s)
        shift_s += max(-ahead_s - BEHIND_S_MAX, 0.0)
        now_ns = time.time_ns()
        link.send(build(priority, number, now_ns, setup.frame_bytes))
        sent[priority].append((now_ns - start_ns) * 1e-9)
    return start_ns, sent


class _Receiver(threading.Thread):
    """Takes frames and the kernel's time of each."""

    def __init__(self, link: socket.socket) -> None:
        super().__init__(daemon=True)
        self.link = link
        self.frames: list[tuple[bytes, int]] = []
        self.may_end = threading.Event()

    def run(self) -> None:
        while True:
            try:
                frame, notes, _, _ = self.link.recvmsg(FRAME_BYTES_MAX, 64)
            except TimeoutError:
                if self.may_end.is_set():
                    return
                continue
            at_ns = time.time_ns()
            for level, kind, data in notes:
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                    seconds, nanoseconds = struct.unpack("@ll", data)
                    at_ns = seconds * 1_000_000_000 + nanoseconds
            self.frames.append((frame, at_ns))

    def join_when_quiet(self) -> None:
        """Wait until nothing has come for a while."""
        self.may_end.set()
        self.join()

    def missed(self) -> int:
        """Frames for which the socket had no room."""
        statistics = self.link.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        _, drops = struct.unpack("@II", statistics)
        return int(drops)
