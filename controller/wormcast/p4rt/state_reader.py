"""Reads what a switch holds: all of it, or a part at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import finsy
from wormcast_planner import TABLES_WITH_DEFAULT, SwitchState

from wormcast.p4rt.artifacts import Artifacts
from wormcast.p4rt.convert import (
    METER_RATES,
    ForeignEntry,
    decode_default_into,
    decode_into,
    decode_rate_into,
    put_absent_defaults,
)
from wormcast.p4rt.device_ports import DevicePorts, MapEntries, read_map_entry

GROUPS, DEFAULTS, RATES = "groups", "defaults", "rates"
"""Parts that are no table: replication groups, default actions, rates of ports."""


class StateReader:
    """Reads from one session. What it cannot read raises `finsy.P4ClientError`."""

    def __init__(
        self,
        switch: Any,
        artifacts: Artifacts,
        ports: int,
        device_ports: DevicePorts | None,
        report: Callable[[str], None],
    ) -> None:
        """`report` is notified of what is there and is never ours."""
        self._switch = switch
        self._schema = artifacts.schema
        self._ports = ports
        self._device_ports = device_ports
        self._report = report
        self.map: MapEntries = {}
        """What was read of the tables that translate ports."""

    def parts(self) -> list[str]:
        """All parts, each table by its name."""
        return [*(table.name for table in self._schema.tables), GROUPS, DEFAULTS, RATES]

    async def read_all(self) -> SwitchState:
        """Everything. Defaults and rates that cannot be read are left out, so they are written again."""
        state = SwitchState()
        await self._read([finsy.P4TableEntry()], state)
        await self.read(GROUPS, state)
        for part in (DEFAULTS, RATES):
            with contextlib.suppress(finsy.P4ClientError):
                await self.read(part, state)
        return state

    async def read(self, part: str, state: SwitchState) -> None:
        if part == GROUPS:
            await self._read([finsy.P4MulticastGroupEntry()], state)
        elif part == DEFAULTS:
            await self._read_defaults(state)
        elif part == RATES:
            wanted = [finsy.P4MeterEntry(METER_RATES, index=port) for port in range(self._ports)]
            async for entity in self._switch.read(wanted):
                decode_rate_into(state, entity)
        else:
            await self._read([finsy.P4TableEntry(part)], state)

    async def _read(self, wanted: Iterable[Any], state: SwitchState) -> None:
        async for entity in self._switch.read(wanted):
            if self._device_ports is not None and (found := read_map_entry(entity, self._switch.p4info)):
                self.map[found[0]] = found[1]
                continue
            try:
                decode_into(state, entity, self._switch.p4info, self._device_ports)
            except ForeignEntry as error:
                self._report(f"ignored on reading: {error}")

    async def _read_defaults(self, state: SwitchState) -> None:
        put_absent_defaults(state, self._schema)
        wanted = [
            finsy.P4TableEntry(table, is_default_action=True)
            for table in TABLES_WITH_DEFAULT
            if self._schema.tables.get(table) is not None
        ]
        async for entity in self._switch.read(wanted):
            decode_default_into(state, entity, self._switch.p4info)
