"""Which IP multicast addresses are wanted at which switch ports, learned from IGMP (RFC 1112, 2236, 3376).

The controller is the querier of each port where something is wanted: hosts repeat what they want, and what is not
repeated expires. Pure; time is an argument.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from wormcast import wire
from wormcast.discovery.lldp import PROBE_SOURCE
from wormcast.network.groups import CLASS_D_LINK_LOCAL
from wormcast.network.ids import IPV4_ETHERTYPE
from wormcast.network.topology import PortRef

MEMBERSHIPS_MAX = 16_384
"""Pairs of address and port; reports beyond are dropped and counted."""
PORT_MEMBERSHIPS_MAX = 256
"""Addresses of one port; the same."""
ROBUSTNESS = 2
QUERY_INTERVAL_S = 125.0
STARTUP_INTERVAL_S = QUERY_INTERVAL_S / 4
"""From the first report of a port until the first query."""
RESPONSE_S = 10.0
"""Hosts answer a query within it. These are the defaults of RFC 3376 §8."""
MEMBERSHIP_S = ROBUSTNESS * QUERY_INTERVAL_S + RESPONSE_S
"""What is not repeated for so long expires."""
LAST_MEMBER_INTERVAL_S = 1.0
LAST_MEMBER_S = ROBUSTNESS * LAST_MEMBER_INTERVAL_S
"""What a host leaves expires so soon, unless another one behind the port answers a query."""

_QUERY, _ALL_HOSTS = 0x11, ipaddress.IPv4Address("224.0.0.1")
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


class IgmpFull(Exception):
    """A report was dropped because a bound is reached."""

    def __init__(self, bound: int, of: str) -> None:
        super().__init__(f"{of} has {bound} addresses, which is the most")
        self.bound = bound


@dataclass
class _Wanted:
    until: float
    asks_left: int = 0
    """Queries for the address that are still to be sent, since a host left."""
    ask_at: float = 0.0
    v1_until: float = float("-inf")
    """A host of version 1 wants it too, which answers no query for one address: nobody else's leave counts."""


class IgmpMembers:
    """Who wants what, as reported."""

    def __init__(self) -> None:
        self._wanted: dict[PortRef, dict[ipaddress.IPv4Address, _Wanted]] = {}
        self._query_at: dict[PortRef, float] = {}
        """When the next query leaves by a port."""
        self.overflows = 0
        """Reports beyond `MEMBERSHIPS_MAX`, or `PORT_MEMBERSHIPS_MAX`."""

    def handle(self, frame: bytes, place: PortRef, now: float) -> None:
        """Takes a frame from a port. Raises `IgmpError`, and `IgmpFull` when the rest is done."""
        full: IgmpFull | None = None
        v1_until = now + MEMBERSHIP_S if _payload(frame)[0] == _REPORT_V1 else float("-inf")
        for address, wanted in list(read_reports(frame)):
            known = self._wanted.get(place, {}).get(address)
            if not wanted:
                if known is not None and known.until > now + LAST_MEMBER_S and known.v1_until <= now:
                    known.until, known.asks_left, known.ask_at = now + LAST_MEMBER_S, ROBUSTNESS, now
            elif known is not None:
                known.until, known.asks_left = now + MEMBERSHIP_S, 0
                known.v1_until = max(known.v1_until, v1_until)
            elif (bound := self._full(place)) is None:
                self._wanted.setdefault(place, {})[address] = _Wanted(now + MEMBERSHIP_S, v1_until=v1_until)
            else:
                self.overflows += 1
                full = bound
        if full is not None:
            raise full

    def _full(self, place: PortRef) -> IgmpFull | None:
        if len(self._wanted.get(place, ())) >= PORT_MEMBERSHIPS_MAX:
            return IgmpFull(PORT_MEMBERSHIPS_MAX, f"port {place[1]} of switch {place[0]}")
        if sum(map(len, self._wanted.values())) >= MEMBERSHIPS_MAX:
            return IgmpFull(MEMBERSHIPS_MAX, "the fabric")
        return None

    def expire(self, now: float) -> None:
        """What was not repeated in time is not wanted any more."""
        for place in list(self._wanted):
            left = {address: wanted for address, wanted in self._wanted[place].items() if wanted.until > now}
            if left:
                self._wanted[place] = left
            else:
                del self._wanted[place]

    def poll_queries(self, now: float) -> list[tuple[PortRef, bytes]]:
        """Queries that are to leave by now."""
        due: list[tuple[PortRef, bytes]] = []
        before, self._query_at = self._query_at, {}
        for place in self._wanted:
            at = before.get(place, now + STARTUP_INTERVAL_S)
            if now >= at:
                due.append((place, encode_query(None)))
                at = now + QUERY_INTERVAL_S
            self._query_at[place] = at
        for place, addresses in self._wanted.items():
            for address, wanted in addresses.items():
                if wanted.asks_left and now >= wanted.ask_at:
                    wanted.asks_left -= 1
                    wanted.ask_at = now + LAST_MEMBER_INTERVAL_S
                    due.append((place, encode_query(address)))
        return due

    def members(self, now: float) -> list[tuple[ipaddress.IPv4Address, PortRef]]:
        """Address and port, in ascending order."""
        self.expire(now)
        return sorted((address, place) for place, addresses in self._wanted.items() for address in addresses)


def encode_query(address: ipaddress.IPv4Address | None) -> bytes:
    """A frame that asks who wants an address, or None: any. It is of version 3, which hosts of all versions answer."""
    to = _ALL_HOSTS if address is None else address
    response_s = RESPONSE_S if address is None else LAST_MEMBER_INTERVAL_S
    group = b"\0\0\0\0" if address is None else address.packed
    message = bytes([_QUERY, round(10 * response_s), 0, 0]) + group
    message += bytes([ROBUSTNESS, round(QUERY_INTERVAL_S), 0, 0])
    message = message[:2] + _checksum(message) + message[4:]
    # From 0.0.0.0, as of a switch that has no address (RFC 4541 §2.1.1); with the router alert option.
    header = bytes([0x46, 0xC0]) + (24 + len(message)).to_bytes(2, "big") + bytes(4)
    header += bytes([1, wire.IP_PROTOCOL_IGMP, 0, 0]) + bytes(4) + to.packed + bytes([0x94, 4, 0, 0])
    header = header[:10] + _checksum(header) + header[12:]
    ethernet = b"\x01\0\x5e" + bytes([to.packed[1] & 0x7F]) + to.packed[2:] + PROBE_SOURCE
    return (ethernet + IPV4_ETHERTYPE.to_bytes(2, "big") + header + message).ljust(60, b"\0")


def _checksum(message: bytes) -> bytes:
    return (~_sum(message) & 0xFFFF).to_bytes(2, "big")


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
