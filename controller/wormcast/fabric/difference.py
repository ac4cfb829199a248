"""From the state a switch has to the state it must have, one safe step after another."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from wormcast.fabric.ids import MGID_BROADCAST, Mgid, PortId
from wormcast.fabric.state import Place, SwitchState, TableDefault, TableEntry


class Stage(IntEnum):
    """When an update is due. A switch that may copy worms to another finishes a stage together with it.

    SHRINK only takes ports away, until every replication group holds nothing but
    ports of its new tree; GROW adds the rest of the new tree. So until all have
    finished SHRINK worms follow parts of the old tree, and from then on parts of
    the new one: a worm caught in the change may be lost, but neither loops nor
    arrives twice. RETIRE takes away what nothing uses any more, once the agents
    have their new plan.
    """

    SHRINK = 0
    GROW = 1
    RETIRE = 2


class Operation(StrEnum):
    """The P4Runtime update type."""

    INSERT = "insert"
    MODIFY = "modify"
    DELETE = "delete"


@dataclass(frozen=True)
class MulticastGroup:
    """A replication group and the ports it copies to."""

    mgid: Mgid
    ports: frozenset[PortId]


@dataclass(frozen=True)
class Update:
    """One write to one switch."""

    stage: Stage
    operation: Operation
    entity: TableEntry | TableDefault | MulticastGroup

    @property
    def place(self) -> Place | str:
        """What it writes to; of a default action the table."""
        if isinstance(self.entity, TableEntry):
            return self.entity.key
        return self.entity.table if isinstance(self.entity, TableDefault) else self.entity.mgid


def diff(desired: SwitchState, actual: SwitchState, within: Collection[Place] | None = None) -> list[Update]:
    """Updates that turn `actual` into `desired`, by stage; empty when nothing differs.

    Within a stage replication groups come before the entries that name them,
    and go after them. Updates of a stage assume those of the stages before it.
    `within` is where the two may differ; None: anywhere.
    """
    before = _only(actual, within)
    updates = _shrink(before, desired)
    remaining = before.copy()
    for update in updates:
        execute(update, remaining)
    wanted = _only(desired, within)
    for mgid, ports in wanted.multicast.items():
        if mgid not in remaining.multicast:
            updates.append(Update(Stage.GROW, Operation.INSERT, MulticastGroup(mgid, ports)))
        elif remaining.multicast[mgid] != ports:
            updates.append(Update(Stage.GROW, Operation.MODIFY, MulticastGroup(mgid, ports)))
    for key, entry in wanted.entries.items():
        if key not in remaining.entries:
            updates.append(Update(Stage.GROW, Operation.INSERT, entry))
        elif remaining.entries[key] != entry:
            updates.append(Update(Stage.GROW, Operation.MODIFY, entry))
    updates += [
        Update(Stage.GROW, Operation.MODIFY, default)
        for table, default in desired.defaults.items()
        if actual.defaults.get(table) != default
    ]
    updates += [
        Update(Stage.RETIRE, Operation.DELETE, entry)
        for key, entry in remaining.entries.items()
        if key not in wanted.entries
    ]
    updates += [
        Update(Stage.RETIRE, Operation.DELETE, MulticastGroup(mgid, ports))
        for mgid, ports in remaining.multicast.items()
        if mgid not in wanted.multicast
    ]
    return updates


def _only(state: SwitchState, within: Collection[Place] | None) -> SwitchState:
    if within is None:
        return state
    return SwitchState(
        {place: state.entries[place] for place in within if place in state.entries},
        {place: state.multicast[place] for place in within if place in state.multicast},
        state.defaults,
    )


def _shrink(actual: SwitchState, desired: SwitchState) -> list[Update]:
    """Takes away the ports a group must not keep; where none stay, what leads to it.

    A group without ports is not universally accepted.
    """
    updates: list[Update] = []
    emptied: set[Mgid] = set()
    for mgid, ports in actual.multicast.items():
        wanted = desired.multicast.get(mgid, frozenset())
        if ports <= wanted:
            continue
        if kept := wanted & ports:
            updates.append(Update(Stage.SHRINK, Operation.MODIFY, MulticastGroup(mgid, kept)))
        elif mgid == MGID_BROADCAST:  # no entry leads to it
            updates.append(Update(Stage.SHRINK, Operation.DELETE, MulticastGroup(mgid, ports)))
        else:
            emptied.add(mgid)
    updates += [
        Update(Stage.SHRINK, Operation.DELETE, entry)
        for entry in actual.entries.values()
        if emptied
        and (left := mgid_of(entry)) is not None
        and left in emptied
        and not _keeps_ports(entry, left, actual, desired)
    ]
    return updates


def _keeps_ports(entry: TableEntry, mgid: Mgid, actual: SwitchState, desired: SwitchState) -> bool:
    """Whether an entry whose group goes will lead to another that holds all its ports."""
    after = desired.entries.get(entry.key)
    moved = None if after is None else mgid_of(after)
    return moved is not None and moved != mgid and actual.multicast[mgid] <= desired.multicast[moved]


def mgid_of(entry: TableEntry) -> Mgid | None:
    """The replication group an entry leads to."""
    return next((Mgid(value) for name, value in entry.parameters if name == "mgid"), None)


def execute(update: Update, state: SwitchState) -> None:
    """What a switch does with an update it accepted: the shadow of a real one, the whole of a fake one."""
    entity = update.entity
    if isinstance(entity, TableEntry):
        if update.operation is Operation.DELETE:
            del state.entries[entity.key]
        else:
            state.entries[entity.key] = entity
    elif isinstance(entity, TableDefault):
        state.defaults[entity.table] = entity
    elif update.operation is Operation.DELETE:
        del state.multicast[entity.mgid]
    else:
        state.multicast[entity.mgid] = entity.ports
