"""From the state a switch has to the state it must have, one safe step after another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from wormcast.fabric.ids import Mgid, PortId
from wormcast.fabric.state import SwitchState, TableDefault, TableEntry


class Stage(IntEnum):
    """When an update is due. All switches finish a stage before the next begins.

    Between SHRINK and GROW every replication group holds a part of the old and
    of the new tree, so a worm caught in the change may be lost but neither
    loops nor arrives twice. RETIRE comes after the agents have their new plan.
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


def diff(desired: SwitchState, actual: SwitchState) -> list[Update]:
    """Updates that turn `actual` into `desired`, by stage; empty when nothing differs.

    Within a stage replication groups come before the entries that name them,
    and go after them. Updates of a stage assume those of the stages before it.
    """
    updates: list[Update] = []
    remaining = actual.copy()
    for mgid, ports in actual.multicast.items():
        updates += _shrink(mgid, ports, desired, actual)
    for update in updates:
        execute(update, remaining)
    for mgid, ports in desired.multicast.items():
        if mgid not in remaining.multicast:
            updates.append(Update(Stage.GROW, Operation.INSERT, MulticastGroup(mgid, ports)))
        elif remaining.multicast[mgid] != ports:
            updates.append(Update(Stage.GROW, Operation.MODIFY, MulticastGroup(mgid, ports)))
    for key, entry in desired.entries.items():
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
        if key not in desired.entries
    ]
    updates += [
        Update(Stage.RETIRE, Operation.DELETE, MulticastGroup(mgid, ports))
        for mgid, ports in remaining.multicast.items()
        if mgid not in desired.multicast
    ]
    return updates


def _shrink(mgid: Mgid, ports: frozenset[PortId], desired: SwitchState, actual: SwitchState) -> list[Update]:
    """Takes away the ports a group must not keep; where none stay, the entry that leads to it."""
    wanted = desired.multicast.get(mgid)
    if wanted is None or ports <= wanted:
        return []
    if kept := wanted & ports:
        return [Update(Stage.SHRINK, Operation.MODIFY, MulticastGroup(mgid, kept))]
    # A group without ports is not universally accepted.
    return [
        Update(Stage.SHRINK, Operation.DELETE, entry)
        for entry in actual.entries.values()
        if ("mgid", mgid) in entry.parameters
    ]


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
