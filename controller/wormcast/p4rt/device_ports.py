"""Ports as a chip numbers them (p4src/CONTRACT.md, Tofino). Routes and tables name ports 0 to 253; the chip has numbers
of its own for them, in the replicas of its groups and in three tables that translate. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import finsy

from wormcast.wire import (
    INSTANCE_BRANCH,
    INSTANCE_PLAIN,
    MGID_PORT,
    MGID_TREE_ALL,
    MGID_TREE_SET,
)

Copies = tuple[tuple[int, int, tuple[int, ...]], ...]
"""Port, instance and backups of each copy that a replication group makes."""
MapEntries = dict[tuple[str, int], int]
"""By table and key: what it leads to."""


@dataclass(frozen=True)
class MapTable:
    """One of the tables that translate: its match field, its only action with entries and the parameter of that."""

    field: str
    action: str
    parameter: str


MAP_TABLES: Mapping[str, MapTable] = {
    "ingress.entry_ports": MapTable("device_port", "ingress.entry_port", "port"),
    "ingress.device_ports": MapTable("port", "ingress.device_port", "device"),
    "egress.exit_ports": MapTable("device_port", "egress.exit_port", "port"),
}


def has_device_ports(schema: Any) -> bool:
    """Whether a program numbers ports as a chip does."""
    return all(schema.tables.get(table) is not None for table in MAP_TABLES)


class DevicePorts:
    """The device port of each port of one switch."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._devices = dict(pairs)
        self._ports = {device: port for port, device in self._devices.items()}

    def entries(self) -> MapEntries:
        """What the tables that translate must hold."""
        found: MapEntries = {}
        for port, device in self._devices.items():
            found["ingress.entry_ports", device] = port
            found["ingress.device_ports", port] = device
            found["egress.exit_ports", device] = port
        return found

    def to_chip(self, mgid: int, copies: Copies) -> Copies:
        """A replication group as the chip takes it: device ports, no backups, and in groups of TREE the branch of
        every copy. Raises `LookupError` for a port that the map does not have."""
        return tuple(
            (self._device(port), INSTANCE_BRANCH + port if _names_branch(mgid, instance) else instance, ())
            for port, instance, _ in copies
        )

    def from_chip(self, mgid: int, copies: Iterable[tuple[int, int]]) -> list[tuple[int, int, list[int]]]:
        """The same read back, device port and instance of each copy. Copies to ports that the map does not have are
        left out, so the group is not as planned and will be written again."""
        found: list[tuple[int, int, list[int]]] = []
        for device, instance in copies:
            port = self._ports.get(device)
            if port is not None:
                own = _is_tree(mgid) and instance == INSTANCE_BRANCH + port
                found.append((port, INSTANCE_PLAIN if own else instance, []))
        return found

    def _device(self, port: int) -> int:
        if port not in self._devices:
            raise LookupError(
                f"port {port} has no device port; device_ports of the switch has {sorted(self._devices)}"
            )
        return self._devices[port]


def _is_tree(mgid: int) -> bool:
    return mgid == MGID_TREE_ALL or MGID_TREE_SET <= mgid < MGID_PORT


def _names_branch(mgid: int, instance: int) -> bool:
    return _is_tree(mgid) and instance == INSTANCE_PLAIN


def map_entry(table: str, key: int, value: int) -> finsy.P4TableEntry:
    """An entry of a table that translates."""
    names = MAP_TABLES[table]
    return finsy.P4TableEntry(
        table,
        match=finsy.Match({names.field: key}),
        action=finsy.Action(names.action, **{names.parameter: value}),
    )


def read_map_entry(entity: Any, schema: Any) -> tuple[tuple[str, int], int] | None:
    """An entry that was read, by table and key; None if it is of no table that translates."""
    if not isinstance(entity, finsy.P4TableEntry) or not entity.table_id or entity.is_default_action:
        return None
    table = schema.tables[entity.table_id].name
    names = MAP_TABLES.get(table)
    if names is None or not isinstance(entity.action, finsy.P4TableAction):
        return None
    return (table, int((entity.match or {})[names.field])), int(entity.action.args[names.parameter])


def map_updates(wanted: MapEntries, held: MapEntries) -> list[list[Any]]:
    """What is to be written so that the tables hold what they must, in this order."""
    stale = [-map_entry(*key, value) for key, value in held.items() if key not in wanted]
    other = [~map_entry(*key, value) for key, value in wanted.items() if key in held and held[key] != value]
    new = [+map_entry(*key, value) for key, value in wanted.items() if key not in held]
    return [updates for updates in (stale, other, new) if updates]
