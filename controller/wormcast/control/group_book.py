"""The configured groups: every request is checked here, then kept."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from wormcast.control.errors import RequestError, unknown
from wormcast.discovery.hosts import HostRecord, HostRegistry
from wormcast.fabric.class_d import (
    HASHED_FIRST,
    ClassDMode,
    ClassDNumbers,
    assign,
    fabric_members,
    low_bits,
)
from wormcast.fabric.groups import (
    GROUP_BOUND,
    Group,
    GroupError,
    Parameters,
    check_group_id,
    parse_class_d,
    parse_scheme,
)
from wormcast.fabric.ids import GROUP_BROADCAST, GROUP_ID_MAX, GroupId, HostId
from wormcast.fabric.replication import MGID_GROUPS_MAX
from wormcast.store.database import Database

NUMBERS_MAX = MGID_GROUPS_MAX - 1
"""Group numbers a switch holds besides broadcast (GROUPS_SIZE of p4src/shared/sizes.p4)."""
NAME_BOUND = "1 to 64 letters, digits, '.', '_', '-', not digits alone"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class GroupRequest:
    """A group as asked for; members by id or name."""

    scheme: str
    members: tuple[int | str, ...]
    id: int | None = None
    name: str | None = None
    parameters: dict[str, int] | None = None
    class_d: str | None = None


class GroupBook:
    """All groups, kept in the database."""

    def __init__(
        self, database: Database, hosts: HostRegistry, class_d_mode: ClassDMode | None = None
    ) -> None:
        """Restores the groups; class D addresses get numbers in the mode given, else as before."""
        self._database = database
        self._hosts = hosts
        self._groups = {group.id: group for group in database.groups()}
        kept = database.class_d()
        self.class_d = assign(class_d_mode or kept.mode, self._groups.values(), kept)
        """Numbers of the class D addresses of all groups."""
        if self.class_d != kept:
            database.put_class_d(self.class_d)

    def groups(self) -> list[Group]:
        """All groups by id."""
        return [self._groups[group] for group in sorted(self._groups)]

    def get(self, key: int | str) -> Group:
        """A group by id or name; raises `RequestError`."""
        text = str(key)
        if text.isdigit():
            group = self._groups.get(GroupId(int(text)))
        else:
            group = next((g for g in self._groups.values() if g.name == text), None)
        if group is None:
            raise unknown("group", key, [g.id for g in self.groups()])
        return group

    def find(self, group: GroupId) -> Group | None:
        """The group with this id."""
        return self._groups.get(group)

    def create(self, request: GroupRequest) -> Group:
        """Checks and keeps a new group; raises `RequestError`."""
        try:
            class_d = None if request.class_d is None else parse_class_d(request.class_d)
            chosen = self._free_id(class_d) if request.id is None else check_group_id(request.id)
            group = Group(
                chosen,
                request.name if request.name is not None else f"group-{chosen}",
                parse_scheme(request.scheme),
                self.resolve(request.members),
                _parameters(request.parameters or {}),
                class_d,
            )
        except GroupError as error:
            raise _refusal(error) from error
        self._check_new(group)
        self._put(group)
        return group

    def delete(self, key: int | str) -> Group:
        """Removes a group; raises `RequestError`."""
        group = self.get(key)
        rest = {id: other for id, other in self._groups.items() if id != group.id}
        class_d = assign(self.class_d.mode, rest.values(), self.class_d)
        self._database.remove_group(group.id, class_d)
        self._groups, self.class_d = rest, class_d
        return group

    def add(self, key: int | str, members: Iterable[int | str]) -> Group:
        """Adds members; one that is there already is refused. Raises `RequestError`."""
        group = self.get(key)
        added = self.resolve(members)
        if twice := sorted(set(added) & set(group.members)):
            raise RequestError(
                409, f"host {twice[0]} is a member of group {group.id} already", value=twice[0]
            )
        return self._put(replace(group, members=tuple(sorted([*group.members, *added]))))

    def remove(self, key: int | str, members: Iterable[int | str]) -> Group:
        """Removes members; the last one cannot go. Raises `RequestError`."""
        group = self.get(key)
        gone = {self._member_of(group, member) for member in members}
        rest = tuple(m for m in group.members if m not in gone)
        if not rest:
            raise RequestError(409, f"group {group.id} would be empty; delete it instead", value=sorted(gone))
        return self._put(replace(group, members=rest))

    def replace_members(self, key: int | str, members: Iterable[int | str]) -> Group:
        """Sets the members; raises `RequestError`."""
        group = self.get(key)
        try:
            return self._put(replace(group, members=self.resolve(members)))
        except GroupError as error:
            raise _refusal(error) from error

    def resolve(self, members: Iterable[int | str]) -> tuple[HostId, ...]:
        """Ids of hosts given by id or name, ascending; raises `RequestError`."""
        found: list[HostId] = []
        for member in members:
            host = self._find_host(member).id
            if host in found:
                raise RequestError(
                    422, f"host {member!r} is a member twice", value=member, bound="each host once"
                )
            found.append(host)
        if not found:
            raise RequestError(422, "a group without members", value=[], bound="1 member or more")
        return tuple(sorted(found))

    def _find_host(self, key: int | str) -> HostRecord:
        record = self._hosts.get(HostId(int(key))) if str(key).isdigit() else self._hosts.named(str(key))
        if record is None:
            known = (
                [r.name for r in self._hosts.records()]
                if isinstance(key, str) and not key.isdigit()
                else None
            )
            choices = known if known is not None else [r.id for r in self._hosts.records()]
            raise RequestError(422, f"there is no host {key!r}", value=key, choices=choices)
        return record

    def _member_of(self, group: Group, member: int | str) -> HostId:
        host = HostId(int(member)) if str(member).isdigit() else self._find_host(member).id
        if host not in group.members:
            raise unknown(f"member of group {group.id}:", member, group.members)
        return host

    def _check_new(self, group: Group) -> None:
        if not _NAME.fullmatch(group.name) or group.name.isdigit():
            raise RequestError(
                422, f"group name {group.name!r} is not usable", value=group.name, bound=NAME_BOUND
            )
        if group.id in self._groups:
            raise RequestError(
                409, f"group {group.id} exists; delete it first", value=group.id, bound=GROUP_BOUND
            )
        if any(g.name == group.name for g in self._groups.values()):
            raise RequestError(
                409, f"a group is named {group.name!r} already", value=group.name, bound="a new name"
            )
        if self.class_d.mode is ClassDMode.WIDE:
            self._check_wide(group)
        if len(fabric_members([*self._groups.values(), group], self._numbers_with(group))) > NUMBERS_MAX:
            raise RequestError(
                507, "the switches have no room for another group", value=group.id, bound=str(NUMBERS_MAX)
            )

    def _check_wide(self, group: Group) -> None:
        """In wide mode no group has the number of another's address."""
        if group.id >= HASHED_FIRST:
            raise RequestError(
                422,
                f"group id {group.id} is kept for class D addresses that share a number",
                value=group.id,
                bound=f"0 to {HASHED_FIRST - 1}, not {GROUP_BROADCAST}",
            )
        taken = [address for address, number in self.class_d.assigned if number == group.id]
        if taken and taken[0] != group.class_d:
            raise RequestError(
                409,
                f"{group.id} is the number of class D address {taken[0]}",
                value=group.id,
                bound="an id that no address has as its number",
            )

    def _numbers_with(self, group: Group) -> ClassDNumbers:
        return assign(self.class_d.mode, [*self._groups.values(), group], self.class_d)

    def _free_id(self, class_d: ipaddress.IPv4Address | None) -> GroupId:
        """In narrow mode the number of the class D address if free, else the lowest that no group uses."""
        narrow = self.class_d.mode is ClassDMode.NARROW
        if class_d is not None and narrow:
            number = low_bits(class_d)
            if number not in self._groups and number != GROUP_BROADCAST:
                return number
        used = set(fabric_members(self._groups.values(), self.class_d)) | {GROUP_BROADCAST}
        last = GROUP_ID_MAX if narrow else HASHED_FIRST - 1
        free = next((n for n in range(last + 1) if n not in used), None)
        if free is None:
            raise RequestError(507, "every group id is taken", value=None, bound=GROUP_BOUND)
        return GroupId(free)

    def _put(self, group: Group) -> Group:
        groups = {**self._groups, group.id: group}
        class_d = assign(self.class_d.mode, groups.values(), self.class_d)
        self._database.put_group(group, class_d)
        self._groups, self.class_d = groups, class_d
        return group


def _parameters(given: dict[str, int]) -> Parameters:
    known = list(Parameters.__dataclass_fields__)
    for name in given:
        if name not in known:
            raise RequestError(422, f"unknown parameter {name!r}", value=name, choices=known)
    return Parameters(**given)


def _refusal(error: GroupError) -> RequestError:
    return RequestError(422, str(error), value=error.value, bound=error.bound, choices=error.choices)


def group_json(group: Group) -> dict[str, Any]:
    """The configured part of a group in `/v1/groups`."""
    return {
        "id": group.id,
        "name": group.name,
        "scheme": group.scheme.value,
        "members": list(group.members),
        "parameters": asdict(group.parameters),
        "class_d": None if group.class_d is None else str(group.class_d),
    }
