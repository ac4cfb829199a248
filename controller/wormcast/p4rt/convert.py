"""Between the planner's entities and finsy's."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import finsy
from finsy.p4entity import encode_port
from finsy.proto import p4r
from wormcast_planner import MulticastGroup, PortRate, SwitchState, TableDefault, TableEntry, Update

from wormcast.p4rt.device_ports import DevicePorts

METER_RATES = "rates"
METER_PUNTS = "punts"
TABLE_WORMHOLE = "ingress.wormhole"
ACTION_PACKET = "ingress.packet_mode"
BURST_S = 1.0
"""What a host may send so long may come at once. Its agent sends no more than 20 ms of it at once, and a train; but where the
switch, or what is between, stands still for a moment, it meters what has come meanwhile as if all had come then."""
BURST_BYTES_MIN = 5 << 17
"""Room for an agent's burst, and a train of the longest frames, at low rates too."""
BURST_BYTES_MAX = 1 << 30
"""BMv2 counts bursts in 32 bits."""
GROUPS_KEPT = 4096
"""Messages about replication groups that are kept."""


class ForeignEntry(ValueError):
    """Something on the switch that this controller never writes."""


def encode_update(update: Update, device_ports: DevicePorts | None = None) -> Any:
    """The P4Runtime update; with device ports as a chip takes it. Raises `LookupError`."""
    entity = update.entity
    if isinstance(entity, MulticastGroup):
        planned = entity.replicas
        copies = planned if device_ports is None else device_ports.to_chip(entity.mgid, planned)
        return _encode_group(update.operation, entity.mgid, copies)
    if isinstance(entity, PortRate):
        return ~_encode_rate(entity)
    made = encode_entity(entity)
    if update.operation == "insert":
        return +made
    return ~made if update.operation == "modify" else -made


def _encode_rate(rate: PortRate) -> finsy.P4MeterEntry:
    """One bucket: what is above the rate is red."""
    config = None
    if (bps := rate.bytes) is not None:
        burst = min(max(BURST_BYTES_MIN, round(bps * BURST_S)), BURST_BYTES_MAX)
        config = finsy.P4MeterConfig(cir=bps, cburst=burst, pir=bps, pburst=burst)
    return finsy.P4MeterEntry(METER_RATES, index=rate.port, config=config)


def decode_rate_into(state: SwitchState, entity: Any) -> None:
    """Adds the rate of a port that was read."""
    if isinstance(entity, finsy.P4MeterEntry) and entity.config is not None:
        state.put_rate(PortRate(entity.index, entity.config.pir))


@lru_cache(GROUPS_KEPT)
def _encode_group(operation: str, mgid: int, copies: tuple[tuple[int, int, tuple[int, ...]], ...]) -> Any:
    """The message; switches of one size have hundreds of groups in common. Targets that know no backup
    replicas overlook them."""
    replicas = [
        p4r.Replica(
            egress_port=port,
            instance=instance,
            backup_replicas=[p4r.BackupReplica(port=encode_port(p), instance=instance) for p in backups],
        )
        for port, instance, backups in copies
    ]
    group = p4r.MulticastGroupEntry(multicast_group_id=mgid, replicas=replicas)
    engine = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
    entity = p4r.Entity(packet_replication_engine_entry=engine)
    return p4r.Update(type=p4r.Update.Type.Value(operation.upper()), entity=entity)


def encode_entity(entity: TableEntry | TableDefault) -> Any:
    if isinstance(entity, TableDefault):
        action = finsy.Action(entity.action, **dict(entity.parameters))
        return finsy.P4TableEntry(entity.table, action=action, is_default_action=True)
    return finsy.P4TableEntry(
        entity.table,
        match=finsy.Match(dict(entity.match)),
        action=finsy.Action(entity.action, **dict(entity.parameters)),
        priority=entity.priority,
    )


def decode_into(
    state: SwitchState, entity: Any, schema: Any, device_ports: DevicePorts | None = None
) -> None:
    """Adds an entity that was read, under the names of the P4Info; raises `ForeignEntry`."""
    if isinstance(entity, finsy.P4MulticastGroupEntry):
        copies = [_decode_replica(r) for r in entity.replicas]
        if device_ports is not None:
            of_chip = ((device, instance) for device, instance, _ in copies)
            copies = device_ports.from_chip(entity.multicast_group_id, of_chip)
        state.put_group(MulticastGroup(entity.multicast_group_id, copies))
        return
    if not isinstance(entity, finsy.P4TableEntry) or not isinstance(entity.action, finsy.P4TableAction):
        raise ForeignEntry(f"{type(entity).__name__} is not ours")
    if entity.is_default_action or entity.is_const:
        return
    table = schema.tables[entity.table_id]
    # In the order of the P4Info, which is that of the planner: else the same entry would have another key.
    found = entity.match or {}
    match = [(f.name, _decode_value(found[f.alias])) for f in table.match_fields if f.alias in found]
    action = schema.actions[entity.action.name].name
    parameters = sorted(entity.action.args.items())
    state.put_entry(TableEntry(table.name, match, action, parameters, entity.priority))


def decode_default_into(state: SwitchState, entity: Any, schema: Any) -> None:
    """Adds a default action that was read."""
    if isinstance(entity.action, finsy.P4TableAction):
        table = schema.tables[entity.table_id].name
        action = schema.actions[entity.action.name].name
        state.put_default(TableDefault(table, action, sorted(entity.action.args.items())))


def put_absent_defaults(state: SwitchState, schema: Any) -> None:
    """Adds what a program does that lacks a table: without wormhole mode it is in packet mode always."""
    if schema.tables.get(TABLE_WORMHOLE) is None:
        state.put_default(TableDefault(TABLE_WORMHOLE, ACTION_PACKET, []))


def _decode_replica(replica: int | finsy.P4Replica) -> tuple[int, int, list[int]]:
    if isinstance(replica, int):  # finsy's short form of one with instance 0
        return replica, 0, []
    return replica.port, replica.instance, [backup.port for backup in replica.backup_replicas or ()]


def _decode_value(value: Any) -> int | tuple[int, int]:
    if isinstance(value, int):
        return value
    if isinstance(value, tuple) and len(value) == 2:
        return int(value[0]), int(value[1])
    raise ForeignEntry(f"match value {value!r} is not ours")
