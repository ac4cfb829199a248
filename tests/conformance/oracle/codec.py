"""Worms as bytes (SPEC.md §1–§2), without Scapy."""

import struct
from dataclasses import dataclass, field, replace

from wormcast.wire import (
    ETHERTYPE_HOST,
    ETHERTYPE_WORM,
    MAX_ROUTE,
    WORM_MAC,
    WORM_VERSION,
    DropReason,
    Flag,
)

from oracle.checksum import internet_checksum

HEADER_LEN = 12
TRACE_HEADER_LEN = 2
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
    sequence and next 0..65535, route at most 255 bytes.
    """

    kind: int
    route: bytes = b""
    payload: bytes = b""
    flags: int = int(Flag.HEAD | Flag.TAIL)
    hops: int = 0
    source: int = 0
    sequence: int = 0
    next: int = ETHERTYPE_HOST
    dst: bytes = field(default=WORM_MAC.to_bytes(6, "big"))
    src: bytes = field(default=bytes(6))

    def checksum(self) -> int:
        """Checksum of header and route."""
        return internet_checksum(self._header(0) + self.route)

    def to_bytes(self, checksum: int | None = None) -> bytes:
        """Header, route and payload. `checksum` overrides the right one, for tests of switches."""
        return self._header(self.checksum() if checksum is None else checksum) + self.route + self.payload

    def to_frame(self, checksum: int | None = None) -> bytes:
        """The Ethernet frame."""
        return self.dst + self.src + ETHERTYPE_WORM.to_bytes(2, "big") + self.to_bytes(checksum)

    def is_traced(self) -> bool:
        """Whether records of hops stand in front of the payload proper."""
        return bool(self.flags & Flag.TRACE) and self.next == ETHERTYPE_HOST

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
    if len(data) < HEADER_LEN + route_len and first >> 4 == WORM_VERSION:
        raise WormError(
            DropReason.TRUNCATED,
            f"route_len is {route_len}, only {len(data) - HEADER_LEN} bytes follow the header",
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
        route=data[HEADER_LEN : HEADER_LEN + route_len],
        payload=data[HEADER_LEN + route_len :],
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
