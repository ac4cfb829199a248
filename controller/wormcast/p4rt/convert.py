"""Between the planner's entities and finsy's."""

from __future__ import annotations

from typing import Any

import finsy
from wormcast_planner import MulticastGroup, SwitchState, TableDefault, TableEntry, Update

REPLICA_INSTANCE = 1
"""Of every replica: the program tells copies apart by egress port (p4src/CONTRACT.md)."""


class ForeignEntry(ValueError):
    """Something on the switch that this controller never writes."""


def encode_update(update: Update) -> Any:
    """The P4Runtime update."""
    entity = encode_entity(update.entity)
    if update.operation == "insert":
        return +entity
    return ~entity if update.operation == "modify" else -entity


def encode_entity(entity: TableEntry | TableDefault | MulticastGroup) -> Any:
    """The P4Runtime entity."""
    if isinstance(entity, TableDefault):
        action = finsy.Action(entity.action, **dict(entity.parameters))
        return finsy.P4TableEntry(entity.table, action=action, is_default_action=True)
    if isinstance(entity, MulticastGroup):
        return finsy.P4MulticastGroupEntry(
            entity.mgid, replicas=[(int(port), REPLICA_INSTANCE) for port in sorted(entity.ports)]
        )
    return finsy.P4TableEntry(
        entity.table,
        match=finsy.Match(dict(entity.match)),
        action=finsy.Action(entity.action, **dict(entity.parameters)),
        priority=entity.priority,
    )


def decode_into(state: SwitchState, entity: Any, schema: Any) -> None:
    """Adds an entity that was read, under the names of the P4Info; raises `ForeignEntry`."""
    if isinstance(entity, finsy.P4MulticastGroupEntry):
        ports = [replica if isinstance(replica, int) else replica.port for replica in entity.replicas]
        state.put_group(entity.multicast_group_id, ports)
        return
    if not isinstance(entity, finsy.P4TableEntry) or not isinstance(entity.action, finsy.P4TableAction):
        raise ForeignEntry(f"{type(entity).__name__} is not ours")
    if entity.is_default_action or entity.is_const:
        return
    table = schema.tables[entity.table_id]
    fields = {field.alias: field.name for field in table.match_fields}
    match = [(fields[alias], _decode_value(value)) for alias, value in sorted((entity.match or {}).items())]
    action = schema.actions[entity.action.name].name
    parameters = sorted(entity.action.args.items())
    state.put_entry(TableEntry(table.name, match, action, parameters, entity.priority))


def decode_default_into(state: SwitchState, entity: Any, schema: Any) -> None:
    """Adds a default action that was read."""
    if isinstance(entity.action, finsy.P4TableAction):
        table = schema.tables[entity.table_id].name
        action = schema.actions[entity.action.name].name
        state.put_default(TableDefault(table, action, sorted(entity.action.args.items())))


def _decode_value(value: Any) -> int | tuple[int, int]:
    if isinstance(value, int):
        return value
    if isinstance(value, tuple) and len(value) == 2:
        return int(value[0]), int(value[1])
    raise ForeignEntry(f"match value {value!r} is not ours")
