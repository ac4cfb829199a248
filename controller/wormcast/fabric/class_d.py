"""Class D addresses to group numbers (WORM §8.1; wire/SPEC.md §4). Pure.

Narrow: the number is the low 8 bits of the address, as in the paper; 255 is broadcast.
Addresses that share their low 8 bits share a number.

Wide: an address has a 16-bit number of its own, that of the first group that carries it,
for as long as a group carries it. A switch knows an address of its own by one entry of
`ingress.class_d`; when `OWN_MAX` are taken, a further address is hashed, by its low 8 bits
because a ternary entry can match those, to one of 256 numbers kept for that. It stays
there until no group carries it.

Whoever shares a number gets the union; the receiving host filters by full address.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import StrEnum

from wormcast.fabric.groups import Group
from wormcast.fabric.ids import GROUP_BROADCAST, GroupId, HostId
from wormcast.wire.ids import CLASS_D_SIZE

HASHES = 256
HASHED_FIRST = 0xFF00
"""First of the numbers of hashed addresses in wide mode; no group created in that mode has such an id."""
OWN_MAX = CLASS_D_SIZE - HASHES
"""Addresses with a number of their own in wide mode: the entries of `ingress.class_d` but those of hashes."""

CLASS_D_PREFIX = 0xE0000000
PREFIX_MASK = 0xF0000000
ADDRESS_MASK = 0xFFFFFFFF
OWN_PRIORITY = 20
SHARED_PRIORITY = 10


class ClassDMode(StrEnum):
    """How class D addresses get their numbers."""

    NARROW = "narrow"
    WIDE = "wide"


@dataclass(frozen=True)
class ClassDMatch:
    """Addresses that a switch takes for one number: those with `address & mask == value`."""

    value: int
    mask: int
    number: GroupId
    priority: int


@dataclass(frozen=True)
class ClassDNumbers:
    """The number of every address that a group carries."""

    mode: ClassDMode = ClassDMode.NARROW
    assigned: tuple[tuple[ipaddress.IPv4Address, GroupId], ...] = ()
    """Wide mode: addresses in ascending order, hashed ones too."""

    @functools.cached_property
    def _by_address(self) -> dict[ipaddress.IPv4Address, GroupId]:
        return dict(self.assigned)

    def number(self, address: ipaddress.IPv4Address) -> GroupId:
        """The number of an address; one that no group carries has that of its low 8 bits."""
        if self.mode is ClassDMode.NARROW:
            return low_bits(address)
        return self._by_address.get(address, hashed(address))

    def matches(self, addresses: Iterable[ipaddress.IPv4Address]) -> list[ClassDMatch]:
        """What a switch must know for these addresses: at most CLASS_D_SIZE matches."""
        found = set()
        for address in addresses:
            number = self.number(address)
            if self.mode is ClassDMode.NARROW or number == hashed(address):
                value, mask = CLASS_D_PREFIX | low_bits(address), PREFIX_MASK | HASHES - 1
                found.add((value, mask, number, SHARED_PRIORITY))
            else:
                found.add((int(address), ADDRESS_MASK, number, OWN_PRIORITY))
        return [ClassDMatch(*match) for match in sorted(found)]


NARROW = ClassDNumbers()
"""The numbers of narrow mode, which depend on the addresses alone."""


def low_bits(address: ipaddress.IPv4Address) -> GroupId:
    """The low 8 bits of an address, its number in narrow mode (WORM §8.1)."""
    return GroupId(int(address) & HASHES - 1)


def hashed(address: ipaddress.IPv4Address) -> GroupId:
    """The number in wide mode of an address without one of its own."""
    return GroupId(HASHED_FIRST + low_bits(address))


def assign(mode: ClassDMode, groups: Iterable[Group], before: ClassDNumbers | None = None) -> ClassDNumbers:
    """Numbers for the addresses of these groups; addresses keep the number they had `before`.

    A new address gets the id of the first of its groups if that is free, else the highest
    number that nobody has, else a hash. The same groups and numbers give the same answer.
    """
    if mode is ClassDMode.NARROW:
        return NARROW
    ordered = sorted(groups, key=lambda group: group.id)
    carried = dict.fromkeys(group.class_d for group in ordered if group.class_d is not None)
    kept = dict(before.assigned) if before is not None and before.mode is mode else {}
    numbers = {address: kept[address] for address in carried if address in kept}
    own = {number for address, number in numbers.items() if number != hashed(address)}
    ids = {group.id for group in ordered}
    for group in ordered:
        address = group.class_d
        if address is None or address in numbers:
            continue
        number = numbers[address] = assign_new(group, ids, own)
        if number != hashed(address):
            own.add(number)
    return ClassDNumbers(mode, tuple(sorted(numbers.items())))


def assign_new(group: Group, ids: Set[GroupId], own: Set[GroupId]) -> GroupId:
    """Wide mode: the number of a group's address, which has none yet; `ids` are those of all groups, `own` the
    numbers that addresses have."""
    assert group.class_d is not None
    if len(own) >= OWN_MAX:
        return hashed(group.class_d)
    if group.id < HASHED_FIRST and group.id not in own:
        return group.id
    free = (
        n for n in range(HASHED_FIRST - 1, -1, -1) if n != GROUP_BROADCAST and n not in ids and n not in own
    )
    number = next(free, None)
    return hashed(group.class_d) if number is None else GroupId(number)


def fabric_members(
    groups: Iterable[Group], numbers: ClassDNumbers = NARROW
) -> dict[GroupId, tuple[HostId, ...]]:
    """Members of every group number the switches know.

    A group has the number of its id; one with a class D address has also the address's.
    Groups that share a number share the union of their members. Broadcast is left out.
    """
    members: dict[GroupId, set[HostId]] = {}
    for group in groups:
        members.setdefault(group.id, set()).update(group.members)
        if group.class_d is not None and (number := numbers.number(group.class_d)) != GROUP_BROADCAST:
            members.setdefault(number, set()).update(group.members)
    return {number: tuple(sorted(members[number])) for number in sorted(members)}
