"""Worms as bytes (SPEC.md §1–§2), without Scapy."""

import struct
from dataclasses import dataclass, field, replace

from wormcast.wire import (
    ETHERTYPE_HOST,
    ETHERTYPE_WORM,
    MAX_ROUTE,
    NEXT_CONTROL,
    WORM_MAC,
    WORM_VERSION,
    DropReason,
    Flag,
    Kind,
)

from oracle.checksum import internet_checksum

HEADER_LEN = 12
TRACE_HEADER_LEN = 2
TRAIN_LEN = 20
SIGNAL_LEN = 10
GATHER_LEN = 24
_HEADER = struct.Struct(">BBBBHHHH")


class WormError(ValueError):
    """A frame that is no worm. `reason` is what a switch counts it under."""

    def __init__(self, reason: DropReason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True)
class Worm:
    """Header fields, route and payload of a worm; no checksum, which is never free to choose.

    The payload of a traced worm begins with its records (`oracle.trace`).

    kind 0..15 (the codec passes kinds it does not know), flags and hops 0..255, source,
    sequence and next 0..65535, route at most 255 bytes. `train` is a train header, with flag TRAIN;
    `signal` a control header, in CONTROL worms with next NEXT_CONTROL; `gather` what a GATHER worm says.
    """

    kind: int
    route: bytes = b""
    payload: bytes = b""
    flags: int = int(Flag.HEAD | Flag.TAIL)
    hops: int = 0
    source: int = 0
    sequence: int = 0
    next: int = ETHERTYPE_HOST
    train: bytes = b""
    signal: bytes = b""
    gather: bytes = b""
    dst: bytes = field(default=WORM_MAC.to_bytes(6, "big"))
    src: bytes = field(default=bytes(6))

    def checksum(self) -> int:
        """Checksum of headers and route."""
        return internet_checksum(self._header(0) + self.train + self.signal + self.gather + self.route)

    def to_bytes(self, checksum: int | None = None) -> bytes:
        """Headers, route and payload. `checksum` overrides the right one, for tests of switches."""
        header = self._header(self.checksum() if checksum is None else checksum)
        return header + self.train + self.route + self.signal + self.gather + self.payload

    def to_frame(self, checksum: int | None = None) -> bytes:
        return self.dst + self.src + ETHERTYPE_WORM.to_bytes(2, "big") + self.to_bytes(checksum)

    def is_traced(self) -> bool:
        """Whether records of hops stand in front of the payload proper."""
        return bool(self.flags & Flag.TRACE) and self.next == ETHERTYPE_HOST and self.kind != Kind.GATHER

    def _header(self, checksum: int) -> bytes:
        if len(self.route) > MAX_ROUTE:
            raise ValueError(f"route has {len(self.route)} bytes, at most {MAX_ROUTE} fit")
        return _HEADER.pack(
            WORM_VERSION << 4 | self.kind,
            self.flags,
            len(self.route),
            self.hops,
            self.source,
            self.sequence,
            self.next,
            checksum,
        )

    def at(self, route: bytes, hops: int = 1) -> "Worm":
        """The same worm `hops` switches further, with the route it then has."""
        return replace(self, route=route, hops=self.hops + hops)


def decode_worm(data: bytes) -> Worm:
    """Parses what follows the Ethernet header. Raises WormError."""
    if len(data) < HEADER_LEN:
        raise WormError(
            DropReason.TRUNCATED, f"worm has {len(data)} bytes, its header alone takes {HEADER_LEN}"
        )
    first, flags, route_len, hops, source, sequence, next_type, checksum = _HEADER.unpack_from(data)
    route_at = HEADER_LEN + TRAIN_LEN * bool(flags & Flag.TRAIN)
    signal_at = route_at + route_len
    has_signal = first & 0xF == Kind.CONTROL and next_type == NEXT_CONTROL
    gather_at = signal_at + SIGNAL_LEN * has_signal
    payload_at = gather_at + GATHER_LEN * (first & 0xF == Kind.GATHER)
    if len(data) < payload_at and first >> 4 == WORM_VERSION:
        raise WormError(
            DropReason.TRUNCATED,
            f"{payload_at - HEADER_LEN} bytes of headers and route are said to follow the worm header, "
            f"there are {len(data) - HEADER_LEN}",
        )
    if first >> 4 != WORM_VERSION:
        raise WormError(
            DropReason.VERSION_UNKNOWN, f"worm version is {first >> 4}, only {WORM_VERSION} is known"
        )
    worm = Worm(
        kind=first & 0xF,
        flags=flags,
        hops=hops,
        source=source,
        sequence=sequence,
        next=next_type,
        train=data[HEADER_LEN:route_at],
        route=data[route_at:signal_at],
        signal=data[signal_at:gather_at],
        gather=data[gather_at:payload_at],
        payload=data[payload_at:],
    )
    if worm.is_traced() and len(worm.payload) < TRACE_HEADER_LEN:
        raise WormError(
            DropReason.TRUNCATED, f"the worm is traced, and {len(worm.payload)} bytes follow its route"
        )
    if worm.checksum() != checksum:
        raise WormError(
            DropReason.CHECKSUM,
            f"worm checksum is {checksum:#06x}, header and route give {worm.checksum():#06x}",
        )
    return worm


def decode_frame(frame: bytes) -> Worm:
    """Parses an Ethernet frame. Raises WormError, with reason NOT_A_WORM for other EtherTypes."""
    if len(frame) < 14:
        raise WormError(DropReason.TRUNCATED, f"frame has {len(frame)} bytes, an Ethernet header takes 14")
    if frame[12:14] != ETHERTYPE_WORM.to_bytes(2, "big"):
        raise WormError(
            DropReason.NOT_A_WORM, f"EtherType is 0x{frame[12:14].hex()}, a worm has {ETHERTYPE_WORM:#06x}"
        )
    return replace(decode_worm(frame[14:]), dst=frame[:6], src=frame[6:12])
