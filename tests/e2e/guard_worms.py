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
    argv = [sys.executable, "-c", SENDER, f"h{host}-eth0", frame.hex(), str(count), str(gap_s)]
    sent = fabric.run(host, argv)
    assert sent.returncode == 0, sent.stderr


def drops(fabric: Fabric) -> Counter[str]:
    """What the guards have refused, all switches together."""
    total: Counter[str] = Counter()
    for switch in fabric.options.topology["switches"]:
        total.update(fabric.get(f"switches/{switch['id']}/counters")["drops"])
    return Counter({reason: total[reason] for reason in REASONS if total[reason]})


def refused(fabric: Fabric, send: Callable[[], None]) -> Counter[str]:
    before = drops(fabric)
    send()
    time.sleep(0.3)
    return drops(fabric) - before


def route_to(fabric: Fabric, source: int, destination: int) -> bytes:
    (route, *_) = fabric.get(f"routes?src={source}&dst={destination}")["routes"]
    return bytes(route["ports"])
