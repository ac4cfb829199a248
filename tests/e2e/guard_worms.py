"""What tests of the edge guard share: forged worms, and what guards refuse."""

from __future__ import annotations

import struct
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable

from wormcast.mininet.fabric import Fabric
from wormcast.wire import ETHERTYPE_HOST, ETHERTYPE_WORM, WORM_MAC, WORM_VERSION, DropReason, Flag, Kind

REASONS = [
    reason.name.lower()
    for reason in DropReason
    if DropReason.SOURCE_REFUSED <= reason <= DropReason.HOST_UNKNOWN or reason == DropReason.ROUTE_REFUSED
]
FRAME_PAYLOAD = bytes(1000)
READ_SECONDS_MAX = 600.0
MARKER_AGAIN_S = 5.0
SENDER = textwrap.dedent(
    """
    import socket, sys, time
    interface, frame, count, gap = sys.argv[1], bytes.fromhex(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((interface, 0))
    for n in range(count):
        s.send(frame)
        time.sleep(gap)
    """
)


def worm(source: int, kind: Kind, route: bytes, payload: bytes = FRAME_PAYLOAD) -> bytes:
    def header(checksum: int) -> bytes:
        first, flags = WORM_VERSION << 4 | kind, Flag.HEAD | Flag.TAIL
        return struct.pack(">BBBBHHHH", first, flags, len(route), 0, source, 0, ETHERTYPE_HOST, checksum)

    summed = header(0) + route + bytes(len(route) % 2)
    total = sum(struct.unpack(f">{len(summed) // 2}H", summed))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    ethernet = WORM_MAC.to_bytes(6, "big") + bytes([2, 0, 0, 0, 0, 1]) + ETHERTYPE_WORM.to_bytes(2, "big")
    return ethernet + header(checksum) + route + payload


def put_in(fabric: Fabric, host: int, frame: bytes, count: int = 1, gap_s: float = 0.0) -> None:
    """A host sends a frame, so many times. Its switch has read them when this returns."""
    _send(fabric, host, frame, count, gap_s)
    await_read(fabric, host)


def await_read(fabric: Fabric, host: int) -> None:
    """Until the switch of a host has read what it sent: a frame behind it is counted there."""
    switch = fabric.get(f"hosts/{host}")["switch"]
    before, deadline, due = _markers(fabric, switch), time.monotonic() + READ_SECONDS_MAX, 0.0
    while _markers(fabric, switch) == before:
        assert time.monotonic() < deadline
        if time.monotonic() >= due:  # first, or again where the switch has lost it
            _send(fabric, host, MARKER, 1, 0.0)
            due = time.monotonic() + MARKER_AGAIN_S
        time.sleep(0.05)


def _markers(fabric: Fabric, switch: int) -> int:
    drops = fabric.get(f"switches/{switch}/counters")["drops"]
    return int(drops.get(DropReason.VERSION_UNKNOWN.name.lower(), 0))


def _send(fabric: Fabric, host: int, frame: bytes, count: int, gap_s: float) -> None:
    argv = [sys.executable, "-c", SENDER, f"h{host}-eth0", frame.hex(), str(count), str(gap_s)]
    sent = fabric.run(host, argv)
    assert sent.returncode == 0, sent.stderr


MARKER = worm(0, Kind.UNICAST, b"")
MARKER = MARKER[:14] + bytes([0xF0]) + MARKER[15:]
"""A worm of a version that no switch knows."""


def drops(fabric: Fabric) -> Counter[str]:
    """What the guards have refused, all switches together."""
    total: Counter[str] = Counter()
    for switch in fabric.options.topology["switches"]:
        total.update(fabric.get(f"switches/{switch['id']}/counters")["drops"])
    return Counter({reason: total[reason] for reason in REASONS if total[reason]})


def refused(fabric: Fabric, send: Callable[[], None]) -> Counter[str]:
    """Sends; what the guards have refused of it. Other switches than the host's have a moment for it."""
    before = drops(fabric)
    send()
    time.sleep(0.3)
    return drops(fabric) - before


def route_to(fabric: Fabric, source: int, destination: int) -> bytes:
    (route, *_) = fabric.get(f"routes?src={source}&dst={destination}")["routes"]
    return bytes(route["ports"])
