"""Which IP multicast addresses are wanted at which switch ports, learned from IGMP (RFC 1112, 2236, 3376)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from wormcast import wire
from wormcast.network.groups import CLASS_D_LINK_LOCAL
from wormcast.network.topology import PortRef

MEMBERSHIPS_MAX = 16_384
"""Pairs of address and port; reports beyond are dropped and counted."""

_REPORT_V1, _REPORT_V2, _LEAVE_V2, _REPORT_V3 = 0x12, 0x16, 0x17, 0x22
_IS_INCLUDE, _IS_EXCLUDE, _TO_INCLUDE, _TO_EXCLUDE, _ALLOW_NEW = 1, 2, 3, 4, 5
_ETHERNET_BYTES = 14
_IPV4_BYTES_MIN = 20


class IgmpError(ValueError):
    """A frame that is no IGMP report; the text is the reason to count."""


def read_reports(frame: bytes) -> Iterator[tuple[ipaddress.IPv4Address, bool]]:
    """Addresses that a host wants (True) or does not want any more.

    The fabric knows no sources: who wants an address from some sources, or from all but some, wants it. Raises
    `IgmpError`.
    """
    message = _payload(frame)
    kind = message[0]
    if kind in (_REPORT_V1, _REPORT_V2, _LEAVE_V2):
        yield from _crosses_links(message[4:8], kind != _LEAVE_V2)
    elif kind == _REPORT_V3:
        yield from _records(message)
    # Queries come from routers, and say nothing about who sent them.


class IgmpMembers:
    """Who wants what, as reported. Reports do not expire: nothing in the fabric asks hosts to repeat them."""

    def __init__(self) -> None:
        self._members: dict[tuple[ipaddress.IPv4Address, PortRef], None] = {}
        self.overflows = 0
        """Reports beyond MEMBERSHIPS_MAX."""

    def handle(self, frame: bytes, place: PortRef) -> None:
        """Takes a frame from a port. Raises `IgmpError`."""
        for address, wanted in list(read_reports(frame)):
            key = (address, place)
            if not wanted:
                self._members.pop(key, None)
            elif key in self._members or len(self._members) < MEMBERSHIPS_MAX:
                self._members[key] = None
            else:
                self.overflows += 1

    def members(self) -> list[tuple[ipaddress.IPv4Address, PortRef]]:
        """Address and port, in ascending order."""
        return sorted(self._members)


def _payload(frame: bytes) -> bytes:
    packet = frame[_ETHERNET_BYTES:]
    if len(packet) < _IPV4_BYTES_MIN or packet[0] >> 4 != 4:
        raise IgmpError("not IPv4")
    if packet[9] != wire.IP_PROTOCOL_IGMP:
        raise IgmpError("not IGMP")
    header, length = 4 * (packet[0] & 0xF), int.from_bytes(packet[2:4], "big")
    message = packet[header : min(length, len(packet))]
    if header < _IPV4_BYTES_MIN or len(message) < 8:
        raise IgmpError("IGMP cut short")
    if _sum(message) != 0xFFFF:
        raise IgmpError("IGMP checksum")
    return message


def _records(message: bytes) -> Iterator[tuple[ipaddress.IPv4Address, bool]]:
    at = 8
    for _ in range(int.from_bytes(message[6:8], "big")):
        record = message[at : at + 8]
        if len(record) < 8:
            raise IgmpError("IGMP cut short")
        kind, sources = record[0], int.from_bytes(record[2:4], "big")
        if kind in (_IS_EXCLUDE, _TO_EXCLUDE, _ALLOW_NEW):
            yield from _crosses_links(record[4:8], True)
        elif kind in (_IS_INCLUDE, _TO_INCLUDE):
            yield from _crosses_links(record[4:8], sources > 0)
        # BLOCK_OLD_SOURCES leaves open whether any source is left.
        at += 8 + 4 * (record[1] + sources)


def _crosses_links(address: bytes, wanted: bool) -> Iterator[tuple[ipaddress.IPv4Address, bool]]:
    found = ipaddress.IPv4Address(address)
    if found.is_multicast and found not in CLASS_D_LINK_LOCAL:
        yield found, wanted


def _sum(message: bytes) -> int:
    """The Internet checksum's sum; 0xFFFF over a message that is as it was sent."""
    padded = message + b"\0" * (len(message) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total
