"""The configured groups: every request is checked here, then kept."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from wormcast_planner import (
    GROUP_BROADCAST,
    HASHED_FIRST,
    ClassDNumbers,
    assign_class_d,
)

from wormcast.discovery.hosts import HostRecord, HostRegistry
from wormcast.network.group_body import GroupBody
from wormcast.network.groups import (
    AUTO,
    GROUP_BOUND,
    Group,
    GroupError,
    Parameters,
    check_grid,
    check_group_id,
    parse_class_d,
    parse_scheme,
)
from wormcast.network.ids import GroupId, HostId
from wormcast.network.named_by_members import GROUPS_MAX as NAMED_BY_MEMBERS_MAX
from wormcast.network.named_by_members import is_named_by_members, names_of
from wormcast.reconcile.agent_status import Capacity
from wormcast.reconcile.errors import RequestError, as_number, unknown
from wormcast.reconcile.group_index import GroupIndex
from wormcast.store.database import Database

NAME_BOUND = "1 to 64 letters, digits, '.', '_', '-', not digits alone"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class GroupRegistry:
    """All groups, kept in the database."""

    def __init__(
        self,
        database: Database,
        hosts: HostRegistry,
        class_d_mode: str | None = None,
        capacity: Callable[[HostId], Capacity | None] = lambda _: None,
        has_grid: Callable[[], bool] = lambda: False,
    ) -> None:
        """Restores the groups; class D addresses get numbers in the mode given, else as before."""
        self._database = database
        self._hosts = hosts
        self._capacity = capacity
        """What the agent of a host takes; None: anything."""
        self._has_grid = has_grid
        groups = database.groups()
        kept = database.class_d()
        class_d = assign_class_d(class_d_mode or kept.mode, groups, kept)
        self._index = GroupIndex(groups, class_d)
        if class_d != kept:
            database.put_class_d(class_d)

    @property
    def class_d(self) -> ClassDNumbers:
        """Numbers of the class D addresses of all groups."""
        return self._index.class_d

    def groups(self) -> list[Group]:
        """All groups by id."""
        return list(self._index.in_order())

    def get(self, key: int | str) -> Group:
        """A group by id or name; raises `RequestError`."""
        number = as_number(key)
        group = self._index.named(str(key)) if number is None else self.find(GroupId(number))
        if group is None:
            raise unknown("group", key, [g.name if number is None else g.id for g in self._index.in_order()])
        return group

    def sharing(self, group: Group) -> list[Group]:
        """Other groups that get the packets of a group's class D address."""
        assert group.class_d is not None
        number = self.class_d.number(group.class_d)
        return [
            other
            for other in self._index.in_order()
            if other.id != group.id
            and (
                other.id == number
                or (other.class_d is not None and self.class_d.number(other.class_d) == number)
            )
        ]

    def find(self, group: GroupId) -> Group | None:
        return self._index.by_id.get(group)

    def create_all(self, requests: Sequence[GroupBody]) -> list[Group]:
        """Checks and keeps new groups, all or none; raises `RequestError`, which says of several which one it is."""
        made: list[Group] = []
        with self._changing(made):
            for number, request in enumerate(requests):
                try:
                    made.append(self._add(request))
                except RequestError as error:
                    raise error if len(requests) == 1 else error.at(f"groups.{number}") from None
        return made

    def of_members(self, members: Iterable[int | str]) -> tuple[Group, bool]:
        """The group of these members and no others that is named by them, and whether it is new. Raises
        `RequestError`."""
        wanted = self.resolve(members)
        for name in names_of(wanted):
            known = self._index.named(name)
            if known is not None and known.members == wanted:
                return known, False
            if known is None:
                break
        if sum(map(is_named_by_members, self._index.in_order())) >= NAMED_BY_MEMBERS_MAX:
            raise RequestError(
                507,
                f"there are {NAMED_BY_MEMBERS_MAX} groups named by their members (to-…), the most there may be. Any of "
                "them may have a message under way, so none makes room: delete those that nobody needs, with 'wormcast "
                "group delete'",
                value=name,
                bound=f"{NAMED_BY_MEMBERS_MAX} groups",
            )
        # The planner's costs choose for each message, by its length: for two hosts as for a thousand, and for a short
        # message other than for a long one. No scheme chosen here for all of them could be better by the same costs.
        return self.create_all([GroupBody(name=name, scheme=AUTO, members=list(wanted))])[0], True

    def delete(self, key: int | str) -> Group:
        """Removes a group; raises `RequestError`."""
        return self.delete_all([key])[0]

    def delete_all(self, keys: Sequence[int | str]) -> list[Group]:
        """Removes groups, all or none; raises `RequestError`."""
        gone: dict[GroupId, Group] = {}
        for key in keys:
            group = self.get(key)
            if group.id in gone:
                raise RequestError(
                    422, f"group {group.id} is named twice", value=key, bound="each group once"
                )
            gone[group.id] = group
        with self._changing([], list(gone)):
            for group in gone.values():
                self._index.remove(group)
        return list(gone.values())

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
        gone: set[HostId] = set()
        for member in members:
            host = self._member_of(group, member)
            if host in gone:
                raise _twice(member)
            gone.add(host)
        if not gone:
            raise RequestError(422, "no members are named", value=[], bound="1 member or more")
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

    def set_rate(self, key: int | str, rate_bits: int) -> Group:
        """Bounds what a host sends to the group; raises `RequestError`."""
        group = self.get(key)
        try:
            return self._put(replace(group, parameters=replace(group.parameters, rate_bits=rate_bits)))
        except GroupError as error:
            raise _refusal(error) from error

    def resolve(self, members: Iterable[int | str]) -> tuple[HostId, ...]:
        """Ids of hosts given by id or name, ascending; raises `RequestError`."""
        found: set[HostId] = set()
        names = {record.name: record for record in self._hosts.records()}
        for member in members:
            host = self._find_host(member, names).id
            if host in found:
                raise _twice(member)
            found.add(host)
        if not found:
            raise RequestError(422, "a group without members", value=[], bound="1 member or more")
        return tuple(sorted(found))

    def _find_host(self, key: int | str, names: Mapping[str, HostRecord]) -> HostRecord:
        number = as_number(key)
        record = names.get(str(key)) if number is None else self._hosts.get(HostId(number))
        if record is None:
            choices = [r.name if number is None else r.id for r in self._hosts.records()]
            raise RequestError(422, f"there is no host {key!r}", value=key, choices=choices)
        return record

    def _member_of(self, group: Group, member: int | str) -> HostId:
        number = as_number(member)
        host = self.resolve([member])[0] if number is None else HostId(number)
        if host not in group.members:
            raise unknown(f"member of group {group.id}:", member, group.members)
        return host

    def _add(self, request: GroupBody) -> Group:
        """Checks a new group and adds it to the index; raises `RequestError`.

        Room in the switches refuses none: addresses never take all numbers, and messages of groups of scheme
        `table` without a number go by TREE routes.
        """
        group = self._make(request)
        self._check_new(group)
        self._index.add(group)
        self._check_room(group, group.members)
        return group

    def _make(self, request: GroupBody) -> Group:
        """The group that is asked for; raises `RequestError`."""
        try:
            class_d = None if request.class_d is None else parse_class_d(request.class_d)
            chosen = self._free_id(class_d) if request.id is None else check_group_id(request.id)
            check_grid(scheme := parse_scheme(request.scheme), self._has_grid())
            given = {} if request.parameters is None else request.parameters.model_dump(exclude_none=True)
            return Group(
                chosen,
                request.name if request.name is not None else f"group-{chosen}",
                scheme,
                self.resolve(request.members),
                Parameters(**given),
                class_d,
                request.sink,
                request.gather,
            )
        except GroupError as error:
            raise _refusal(error) from error

    def _check_new(self, group: Group) -> None:
        if not _NAME.fullmatch(group.name) or group.name.isdigit():
            raise RequestError(
                422, f"group name {group.name!r} is not valid", value=group.name, bound=NAME_BOUND
            )
        if self.find(group.id) is not None:
            raise RequestError(
                409, f"group {group.id} exists; delete it first", value=group.id, bound=GROUP_BOUND
            )
        if self._index.named(group.name) is not None:
            raise RequestError(
                409, f"a group is named {group.name!r} already", value=group.name, bound="a new name"
            )
        if self.class_d.is_wide:
            self._check_wide(group)

    def _check_room(self, group: Group, added: Iterable[HostId]) -> None:
        """Raises `RequestError` if the agent of a new member does not take the group, which is in the index."""
        for host in group.members:
            capacity = self._capacity(host)
            if capacity is not None and len(group.members) > capacity.members:
                raise RequestError(
                    507,
                    f"group {group.id} would have {len(group.members)} members; the agent of host {host} takes fewer",
                    value=len(group.members),
                    bound=f"{capacity.members} members",
                )
        for host in added:
            capacity = self._capacity(host)
            if capacity is not None and self._index.memberships[host] > capacity.groups:
                raise RequestError(
                    507,
                    f"host {host} is in {self._index.memberships[host] - 1} groups; its agent takes no more",
                    value=host,
                    bound=f"{capacity.groups} groups a host",
                )

    def _check_wide(self, group: Group) -> None:
        """In wide mode no group has the number of another's address."""
        if group.id >= HASHED_FIRST:
            raise RequestError(
                422,
                f"group id {group.id} is reserved for class D addresses that share a number",
                value=group.id,
                bound=f"0 to {HASHED_FIRST - 1}, not {GROUP_BROADCAST}",
            )
        taken = self._index.owner(group.id)
        if taken is not None and taken != group.class_d:
            raise RequestError(
                409,
                f"{group.id} is the number of class D address {taken}",
                value=group.id,
                bound="an id that no address has as its number",
            )

    def _free_id(self, class_d: ipaddress.IPv4Address | None) -> GroupId:
        free = self._index.free_id(class_d)
        if free is None:
            raise RequestError(507, "every group id is taken", value=None, bound=GROUP_BOUND)
        return free

    def _put(self, group: Group) -> Group:
        with self._changing([group]):
            before = self._index.by_id[group.id].members
            self._index.replace(group)
            if len(group.members) > len(before) or not set(group.members) <= set(before):
                self._check_room(group, sorted(set(group.members) - set(before)))
        return group

    @contextlib.contextmanager
    def _changing(self, put: list[Group], removed: Sequence[GroupId] = ()) -> Iterator[None]:
        """Keeps what was done to the index, or, when that fails, takes all of it back."""
        groups, class_d = self._index.in_order(), self.class_d
        try:
            yield
            changed = None if self.class_d == class_d else self.class_d
            self._database.change_groups([group for group in put if not group.sink], removed, changed)
        except BaseException:
            if self._index.in_order() is not groups:
                self._index = GroupIndex(groups, class_d)
            raise


def _twice(member: int | str) -> RequestError:
    return RequestError(422, f"host {member!r} is named twice", value=member, bound="each host once")


def _refusal(error: GroupError) -> RequestError:
    return RequestError(422, str(error), value=error.value, bound=error.bound, choices=error.choices)
