"""What every switch must have, planned again and again: only what a change concerns is made anew. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from wormcast.fabric.class_d import NARROW, ClassDNumbers
from wormcast.fabric.groups import Group
from wormcast.fabric.ids import GROUP_BROADCAST, GroupId, HostId, Mgid, PortId, SwitchId
from wormcast.fabric.replication import (
    GroupTree,
    SpanningTree,
    allocate_mgids,
    fixed_groups,
    tree_set_groups,
)
from wormcast.fabric.state import EntryKey, Place, PlanFailure, SwitchState, TableEntry
from wormcast.fabric.switch_entries import (
    class_d_entries,
    group_entry,
    port_entries,
    tree_set_default,
    tree_set_entries,
)
from wormcast.fabric.topology import Topology, ports_in_use


class TreeFinder(Protocol):
    """Where spanning trees come from."""

    def spanning_tree(self, part: Topology) -> SpanningTree:
        """The multicast spanning tree (ALGORITHMS §2)."""


@dataclass(frozen=True)
class _Number:
    """A group number as the switches hold it."""

    mgid: Mgid
    ports: dict[SwitchId, frozenset[PortId]]


@dataclass
class _Edit:
    """What changes at one switch: all that goes, goes before anything comes."""

    gone: dict[Place, None] = field(default_factory=dict)
    entries: dict[EntryKey, TableEntry] = field(default_factory=dict)
    multicast: dict[Mgid, frozenset[PortId]] = field(default_factory=dict)


class SwitchPlanner:
    """Keeps the last plan of the switches of one network, and changes it."""

    def __init__(self, finder: TreeFinder, parts: list[Topology]) -> None:
        """Plans `parts` without groups. A part without a tree is left out and named in `failures`."""
        self.switches: dict[SwitchId, SwitchState] = {}
        self.failures: list[PlanFailure] = []
        self._trees: list[GroupTree] = []
        self._groups: dict[GroupId, Group] = {}
        self._numbers_of: dict[GroupId, tuple[GroupId, ...]] = {}
        self._carriers: dict[GroupId, set[GroupId]] = {}
        """Groups that carry a number."""
        self._planned: dict[GroupId, _Number] = {}
        self._mgids: dict[GroupId, Mgid] = {}
        self._class_d = NARROW
        self._class_d_entries: dict[EntryKey, TableEntry] = {}
        self._everyone: list[HostId] = []
        for part in parts:
            try:
                tree = finder.spanning_tree(part)
                self._trees.append(GroupTree(part, tree))
            except Exception as error:
                named = tuple(switch.id for switch in part.switches)
                self.failures.append(PlanFailure(f"no spanning tree: {error}", switches=named))
                continue
            self._plan_ports(part, tree)
            self._everyone += [host.id for host in part.hosts]

    def _plan_ports(self, part: Topology, tree: SpanningTree) -> None:
        uses = ports_in_use(part)
        fixed = fixed_groups(part, tree)
        for switch in part.switches:
            planned = self.switches[switch.id] = SwitchState()
            links, hosts = uses[switch.id]
            for entry in [*port_entries(switch.ports, links, hosts), *tree_set_entries(switch.ports)]:
                planned.add(entry)
            default = tree_set_default(switch.ports)
            planned.defaults[default.table] = default
            planned.multicast.update(fixed[switch.id])
            planned.multicast.update(tree_set_groups(switch.ports))

    def change(
        self, gone: Iterable[GroupId], new: Iterable[Group], class_d: ClassDNumbers
    ) -> dict[SwitchId, tuple[Place, ...]]:
        """Takes groups away and adds or replaces others; returns where switches differ from before."""
        edits: dict[SwitchId, _Edit] = {}
        renumbered = class_d != self._class_d
        self._class_d = class_d
        addresses_changed = renumbered
        stale: set[GroupId] = set()
        for group in [*gone, *(g.id for g in new)]:
            if (old := self._groups.pop(group, None)) is not None:
                addresses_changed |= old.class_d is not None
                stale |= self._leave_numbers(old.id)
        for added in new:
            self._groups[added.id] = added
            addresses_changed |= added.class_d is not None
            stale |= self._join_numbers(added)
        if renumbered:
            for carrier in [g for g in self._groups.values() if g.class_d is not None]:
                if self._numbers_of[carrier.id] != self._numbers(carrier):
                    stale |= self._leave_numbers(carrier.id) | self._join_numbers(carrier)
        self._plan_numbers(stale, edits)
        if addresses_changed:
            self._plan_class_d(edits)
        # New states: those before may be on their way to the switches.
        after = dict(self.switches)
        touched = {}
        for switch, edit in edits.items():
            after[switch], touched[switch] = _apply(after[switch], edit)
        self.switches = after
        return touched

    def _numbers(self, group: Group) -> tuple[GroupId, ...]:
        """Those of its id and of its address; broadcast is not a group's."""
        if group.class_d is None:
            return (group.id,)
        number = self._class_d.number(group.class_d)
        return (group.id,) if number in (group.id, GROUP_BROADCAST) else (group.id, number)

    def _leave_numbers(self, group: GroupId) -> set[GroupId]:
        numbers = set(self._numbers_of.pop(group))
        for number in numbers:
            self._carriers[number].discard(group)
        return numbers

    def _join_numbers(self, group: Group) -> set[GroupId]:
        self._numbers_of[group.id] = self._numbers(group)
        for number in self._numbers_of[group.id]:
            self._carriers.setdefault(number, set()).add(group.id)
        return set(self._numbers_of[group.id])

    def _plan_numbers(self, stale: set[GroupId], edits: dict[SwitchId, _Edit]) -> None:
        for number in [n for n in stale if n in self._carriers and not self._carriers[n]]:
            del self._carriers[number]
        wanted = self._carriers.keys() | {GROUP_BROADCAST}
        if wanted != self._mgids.keys():
            before, self._mgids = self._mgids, allocate_mgids(wanted)
            stale |= {n for n, mgid in before.items() if self._mgids.get(n) != mgid}
            stale |= self._mgids.keys() - before.keys()
        for number in sorted(stale):
            old = self._planned.pop(number, None)
            new = self._plan_number(number)
            if new is not None:
                self._planned[number] = new
            self._edit_number(number, old, new, edits)

    def _plan_number(self, number: GroupId) -> _Number | None:
        if number not in self._mgids:
            return None
        if number == GROUP_BROADCAST:
            members: Iterable[HostId] = self._everyone
        else:
            members = {m for group in self._carriers[number] for m in self._groups[group].members}
        ports: dict[SwitchId, frozenset[PortId]] = {}
        for tree in self._trees:
            ports.update(tree.ports(members))
        return _Number(self._mgids[number], ports)

    def _edit_number(
        self, number: GroupId, old: _Number | None, new: _Number | None, edits: dict[SwitchId, _Edit]
    ) -> None:
        had = {} if old is None else {s: (old.mgid, ports) for s, ports in old.ports.items()}
        has = {} if new is None else {s: (new.mgid, ports) for s, ports in new.ports.items()}
        for switch in [s for s in self.switches if had.get(s) != has.get(s)]:
            edit = edits.setdefault(switch, _Edit())
            if switch in had:
                mgid, _ = had[switch]
                edit.gone[group_entry(number, mgid).key] = None
                edit.gone[mgid] = None
            if switch in has:
                mgid, ports = has[switch]
                entry = group_entry(number, mgid)
                edit.multicast[mgid] = ports
                edit.entries[entry.key] = entry

    def _plan_class_d(self, edits: dict[SwitchId, _Edit]) -> None:
        carrying = [group for group in self._groups.values() if group.class_d is not None]
        before = self._class_d_entries
        after = {entry.key: entry for entry in class_d_entries(carrying, self._class_d)}
        self._class_d_entries = after
        gone: dict[Place, None] = {key: None for key, entry in before.items() if after.get(key) != entry}
        new = {key: entry for key, entry in after.items() if before.get(key) != entry}
        if gone or new:
            for switch in self.switches:
                edit = edits.setdefault(switch, _Edit())
                edit.gone.update(gone)
                edit.entries.update(new)


def _apply(before: SwitchState, edit: _Edit) -> tuple[SwitchState, tuple[Place, ...]]:
    """The state after an edit, and where it differs."""
    planned = before.copy()
    for place in edit.gone:
        if isinstance(place, tuple):
            del planned.entries[place]
        else:
            del planned.multicast[place]
    for entry in edit.entries.values():
        planned.add(entry)
    planned.multicast.update(edit.multicast)
    return planned, tuple(dict.fromkeys([*edit.gone, *edit.entries, *edit.multicast]))
