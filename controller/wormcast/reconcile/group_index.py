"""The groups there are, found by id, name, number and address without looking at all of them. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable

from wormcast_planner import (
    GROUP_BROADCAST,
    GROUP_ID_MAX,
    HASHED_FIRST,
    ClassDNumbers,
    hashed,
    low_bits,
    new_class_d_number,
)

from wormcast.network.groups import Group
from wormcast.network.ids import GroupId, HostId


class GroupIndex:
    """Groups with their ids and the numbers of their addresses; adding and removing takes the same time for any
    count."""

    def __init__(self, groups: Iterable[Group], class_d: ClassDNumbers) -> None:
        self._mode, self._is_wide = class_d.mode, class_d.is_wide
        self.by_id: dict[GroupId, Group] = {}
        self._by_name: dict[str, Group] = {}
        self._in_order: list[Group] | None = None
        self._addresses = dict(class_d.assigned)
        self._own = {number: address for address, number in class_d.assigned if number != hashed(address)}
        self._class_d: ClassDNumbers | None = class_d
        self._carriers: Counter[ipaddress.IPv4Address] = Counter()
        self._numbers: Counter[GroupId] = Counter()
        """Ids of groups and numbers of their addresses: none of them is free."""
        self.memberships: Counter[HostId] = Counter()
        self._free_from = 0
        """No id below it is free."""
        for group in groups:
            self.add(group)

    @property
    def class_d(self) -> ClassDNumbers:
        """Numbers of the class D addresses of all groups."""
        if self._class_d is None:
            self._class_d = ClassDNumbers(self._mode, list(self._addresses.items()))
        return self._class_d

    def in_order(self) -> list[Group]:
        """All groups by id."""
        if self._in_order is None:
            self._in_order = [self.by_id[group] for group in sorted(self.by_id)]
        return self._in_order

    def named(self, name: str) -> Group | None:
        return self._by_name.get(name)

    def owner(self, number: GroupId) -> ipaddress.IPv4Address | None:
        """Wide mode: the address that has this number for its own."""
        return self._own.get(number)

    def add(self, group: Group) -> None:
        """Adds a group whose id and name are free."""
        self.by_id[group.id] = group
        self._by_name[group.name] = group
        self._in_order = None
        address = group.class_d
        if address is not None and self._is_wide and address not in self._addresses:
            number = new_class_d_number(group.id, address, self.by_id.keys(), self._own.keys())
            self._addresses[address] = number
            if number != hashed(address):
                self._own[number] = address
            self._class_d = None
        if address is not None:
            self._carriers[address] += 1
        self._numbers.update(self._numbers_of(group))
        self.memberships.update(group.members)

    def remove(self, group: Group) -> None:
        del self.by_id[group.id]
        del self._by_name[group.name]
        self._in_order = None
        self.memberships.subtract(group.members)
        for number in self._numbers_of(group):
            self._numbers[number] -= 1
            if not self._numbers[number]:
                del self._numbers[number]
                self._free_from = min(self._free_from, number)
        if group.class_d is not None:
            self._carriers[group.class_d] -= 1
            if not self._carriers[group.class_d]:
                del self._carriers[group.class_d]
                if (assigned := self._addresses.pop(group.class_d, None)) is not None:
                    self._own.pop(assigned, None)
                    self._class_d = None

    def replace(self, group: Group) -> None:
        """Puts a group, changed in its members alone, in the place of that with its id."""
        self.memberships.subtract(self.by_id[group.id].members)
        self.memberships.update(group.members)
        self.by_id[group.id] = self._by_name[group.name] = group
        self._in_order = None

    def free_id(self, class_d: ipaddress.IPv4Address | None) -> GroupId | None:
        """In narrow mode the number of the class D address if free, else the lowest that no group uses."""
        if class_d is not None and not self._is_wide:
            number = low_bits(class_d)
            if number not in self.by_id and number != GROUP_BROADCAST:
                return number
        while self._free_from in self._numbers or self._free_from == GROUP_BROADCAST:
            self._free_from += 1
        last = HASHED_FIRST - 1 if self._is_wide else GROUP_ID_MAX
        return GroupId(self._free_from) if self._free_from <= last else None

    def _numbers_of(self, group: Group) -> set[GroupId]:
        numbers = {group.id}
        if group.class_d is not None:
            if self._is_wide:
                numbers.add(self._addresses.get(group.class_d, hashed(group.class_d)))
            else:
                numbers.add(low_bits(group.class_d))
        return numbers - {GROUP_BROADCAST}
