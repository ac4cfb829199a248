"""Frames for a switch: every kind of worm, and everything that can be wrong with it. Pure, the same in each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address
from random import Random

from oracle.class_d import class_d_mac
from oracle.codec import Worm
from oracle.tree import Branch, encode_tree
from wormcast.wire import (
    CONTROL_STOP,
    CPU_PORT,
    ETHERTYPE_IPV4,
    ETHERTYPE_WORM,
    MAX_HOPS,
    NEXT_CONTROL,
    RECIRCULATE_PORT,
    WORM_VERSION,
    Flag,
    Kind,
)

ETHERNET = 14
PAYLOAD = b"wormcast payload"
CONTROL = bytes([CONTROL_STOP, 0]) + bytes(4) + (5_000).to_bytes(4, "big")
IPV4 = bytes.fromhex("45000024000000004011000000000000efffff01") + bytes(16)
"""20 bytes of header and a payload; 239.255.255.1."""

WORMS = {
    "unicast": Worm(Kind.UNICAST, b"\x05\x01", PAYLOAD),
    "in_transit": Worm(Kind.UNICAST, bytes([RECIRCULATE_PORT, 5, 1]), PAYLOAD),
    "control": Worm(Kind.CONTROL, b"\x05\x01", PAYLOAD, next=NEXT_CONTROL, signal=CONTROL),
    "tree": Worm(Kind.TREE, encode_tree([Branch(1), Branch(4, (Branch(2), Branch(3)))]), PAYLOAD),
    "broadcast_up": Worm(Kind.BROADCAST, b"\x05\x01", PAYLOAD),
    "broadcast": Worm(Kind.BROADCAST, b"", PAYLOAD),
    "group": Worm(Kind.GROUP, b"\x00\x07", PAYLOAD),
    "class_d": Worm(Kind.GROUP, b"\x00\x07", IPV4, next=ETHERTYPE_IPV4),
    "train": Worm(Kind.UNICAST, b"\x05\x01", PAYLOAD, flags=int(Flag.TRAIN | Flag.HEAD), train=bytes(20)),
    "traced": Worm(Kind.UNICAST, b"\x05\x01", bytes([0, 4]) + PAYLOAD, flags=int(Flag.TRACE)),
}
"""A worm of each kind that is as it should be."""


def _length(worm: Worm) -> int:
    """Bytes up to the payload."""
    return len(worm.to_frame()) - len(worm.payload)


def _whole(worm: Worm, _random: Random) -> Iterator[bytes]:
    yield worm.to_frame()
    yield replace(worm, payload=worm.payload + bytes(1200)).to_frame()


def _cut_short(worm: Worm, _random: Random) -> Iterator[bytes]:
    """After each byte of Ethernet's type, of the headers and of the route, and inside what is carried."""
    frame = worm.to_frame()
    for length in range(ETHERNET, len(frame)):
        yield frame[:length]


def _damaged(worm: Worm, random: Random) -> Iterator[bytes]:
    """One bit of each byte behind Ethernet's header, and of its type."""
    frame = worm.to_frame()
    for at in range(ETHERNET - 2, _length(worm)):
        yield frame[:at] + bytes([frame[at] ^ 1 << random.randrange(8)]) + frame[at + 1 :]


def _other_version(worm: Worm, _random: Random) -> Iterator[bytes]:
    for version in range(16):
        if version != WORM_VERSION:
            frame = bytearray(worm.to_frame())
            frame[ETHERNET] = version << 4 | worm.kind
            yield bytes(frame)


def _other_kind(worm: Worm, _random: Random) -> Iterator[bytes]:
    """The same route under each other kind, with a checksum that is right."""
    for kind in range(16):
        if kind != worm.kind:
            yield replace(worm, kind=kind).to_frame()


def _hops(worm: Worm, _random: Random) -> Iterator[bytes]:
    for hops in (1, MAX_HOPS - 2, MAX_HOPS - 1, MAX_HOPS, MAX_HOPS + 1, 255):
        yield replace(worm, hops=hops).to_frame()


def _flags(worm: Worm, _random: Random) -> Iterator[bytes]:
    """Each flag the other way round; what it announces is not there, or is payload."""
    for bit in range(8):
        yield replace(worm, flags=worm.flags ^ 1 << bit).to_frame()


def _route(worm: Worm, random: Random) -> Iterator[bytes]:
    """Routes that are empty, too short, too long, of any bytes, by ports that are not there."""
    for route in (b"", worm.route[:1], worm.route[:-1], worm.route + b"\x00", worm.route * 40):
        yield replace(worm, route=route[:255]).to_frame()
    for port in (6, 7, 127, 128, 253, 255):
        yield replace(worm, route=bytes([port]) + worm.route[1:]).to_frame()
    for _ in range(20):
        yield replace(worm, route=random.randbytes(random.randrange(1, 20))).to_frame()


def _route_length(worm: Worm, _random: Random) -> Iterator[bytes]:
    """The header says another length than the route has."""
    frame = worm.to_frame()
    for length in (0, len(worm.route) - 1, len(worm.route) + 1, len(worm.route) + 9, 255):
        if 0 <= length != len(worm.route):
            yield frame[: ETHERNET + 2] + bytes([length]) + frame[ETHERNET + 3 :]


FAMILIES: dict[str, Callable[[Worm, Random], Iterator[bytes]]] = {
    "whole": _whole,
    "cut_short": _cut_short,
    "damaged": _damaged,
    "other_version": _other_version,
    "other_kind": _other_kind,
    "hops": _hops,
    "flags": _flags,
    "route": _route,
    "route_length": _route_length,
}
"""What can be wrong with a worm."""


def frames(worm: str, family: str) -> list[bytes]:
    """All frames of one kind and one fault."""
    return list(FAMILIES[family](WORMS[worm], Random(f"{worm} {family}")))


def others() -> list[bytes]:
    """Frames that are no worms: IP multicast and its malformations, IGMP, unicast, other types."""
    mac = class_d_mac(IPv4Address(IPV4[16:20]))
    multicast = mac + bytes(6) + ETHERTYPE_IPV4.to_bytes(2, "big") + IPV4
    found = [multicast, *(multicast[:length] for length in range(ETHERNET, ETHERNET + 20))]
    for address in ("e0000001", "e0000116", "0a000001", "efffffff", "ffffffff"):
        found.append(multicast[:30] + bytes.fromhex(address) + multicast[34:])
    found.append(multicast[:ETHERNET] + b"\x65" + multicast[ETHERNET + 1 :])
    found.append(multicast[: ETHERNET + 9] + b"\x02" + multicast[ETHERNET + 10 :])
    for ethertype in (0x86DD, 0x0806, 0x8100, ETHERTYPE_WORM + 1, 0xFFFF, 46, CPU_PORT):
        found.append(multicast[:12] + ethertype.to_bytes(2, "big") + multicast[14:])
    return found
