"""`wormcast verify --p4runtime`: the tables of running switches, as a tables file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import finsy

from wormcast.cli.files import Json
from wormcast.cli.refusal import Refusal
from wormcast.cli.service import StartError, read_configuration
from wormcast.counted import counted
from wormcast.exits import Exit
from wormcast.p4rt.forwarding_tables import (
    GROUPS_TABLE,
    SwitchEntities,
    SwitchRows,
    UnfitTableError,
    Wanted,
    own_rows,
    rows_of,
)
from wormcast.p4rt.read_entities import read_entities
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.switch_address import check_address

READ_SECONDS_MAX = 60.0
"""For all switches together."""
PORT_PARAMETER = "port"


def read_switch_tables(
    p4runtime: str,
    topology: Json,
    device_id: int | None = None,
    *,
    table: str | None = None,
    key: str | None = None,
    port_parameter: str | None = None,
) -> Json:
    """Reads every switch that the options name. Raises `Refusal`."""
    places = places_of(p4runtime, device_id, topology)
    wanted = None if table is None else Wanted(table, key, port_parameter or PORT_PARAMETER)
    read = asyncio.run(_read_all(places, wanted.table if wanted else GROUPS_TABLE, topology))
    if wanted is None:
        both = {name: own_rows(entities) for name, entities in read.items()}
        groups = {name: rows[0] for name, rows in both.items()}
        broadcasts = {name: rows[1] for name, rows in both.items()}
        return {"tables": [_table("group", groups, never_back=True), _table("broadcast", broadcasts)]}
    return {"tables": [_table(wanted.table, {name: _rows(name, read[name], wanted) for name in read})]}


def _rows(switch: str, entities: SwitchEntities, wanted: Wanted) -> SwitchRows:
    try:
        return rows_of(entities, wanted)
    except UnfitTableError as error:
        raise Refusal(f"switch {switch}: {error}", code="unsupported") from error


def _table(name: str, rows: Mapping[str, SwitchRows], *, never_back: bool = False) -> Json:
    bits = max(row.bits for row in rows.values())
    switches = [{"switch": switch, "entries": row.entries} for switch, row in rows.items()]
    return {"name": name, "bits": bits, "never_back": never_back, "switches": switches}


def places_of(given: str, device_id: int | None, topology: Json) -> dict[int, tuple[str, int]]:
    """Address and device id by switch id: a switches file, or addresses for all switches of the topology."""
    ids = sorted(switch["id"] for switch in topology["switches"])
    if not ids:
        raise Refusal("the topology has no switches, so there are no tables to read", code="no-switches")
    addresses = [address.strip() for address in given.split(",")]
    if len(addresses) == 1 and ":" not in given:
        try:
            found = read_configuration(Path(given)).switches
        except StartError as error:
            raise Refusal(f"switches {error}", code="cannot-read") from error
        places = {int(spec.id): (spec.address, spec.device_id) for spec in found}
        if not places:
            raise Refusal(f"switches {given}: it names no switch", code="no-switches")
        if strange := sorted(places.keys() - set(ids)):
            text = f"switch {strange[0]} of {given} is not in the topology; its switches are {_some(ids)}"
            raise Refusal(text, code="unknown-switch", value=strange[0])
    elif len(addresses) != len(ids):
        text = f"{counted(len(addresses), 'address')} for {counted(len(ids), 'switch')}; name one for each, by id, or a switches file"
        raise Refusal(text, code="usage", value=len(addresses), bound=str(len(ids)))
    else:
        places = {number: (address, number) for number, address in zip(ids, addresses, strict=True)}
    for address, _ in places.values():
        try:
            check_address(address)
        except RequestError as error:
            raise Refusal(str(error), code="outside-bounds", value=address) from error
    if device_id is not None:
        places = {number: (address, device_id) for number, (address, _) in places.items()}
    return places


def _some(ids: list[int]) -> str:
    return ", ".join(map(str, ids[:8])) + (", …" if len(ids) > 8 else "")


async def _read_all(
    places: Mapping[int, tuple[str, int]], table: str, topology: Json
) -> dict[str, SwitchEntities]:
    names = {switch["id"]: switch.get("name", f"s{switch['id']}") for switch in topology["switches"]}

    async def read(number: int) -> SwitchEntities:
        address, device_id = places[number]
        try:
            return await read_entities(address, device_id, table)
        except UnfitTableError as error:
            hint = "" if table != GROUPS_TABLE else "; name a table of it with --table"
            raise Refusal(f"switch {names[number]}: {error}{hint}", code="unsupported") from error
        except finsy.P4ClientError as error:
            reason = error.message or error.code.name
            raise _unreachable(names[number], address, reason) from error

    numbers = sorted(places)
    try:
        async with asyncio.timeout(READ_SECONDS_MAX):
            found = await asyncio.gather(*map(read, numbers), return_exceptions=True)
    except TimeoutError:
        text = f"the switches did not answer within {READ_SECONDS_MAX:g} s"
        raise Refusal(text, code="unavailable", exit_code=Exit.UNAVAILABLE) from None
    # Of several that fail always the same one is reported.
    read_by_name: dict[str, SwitchEntities] = {}
    for number, entities in zip(numbers, found, strict=True):
        if isinstance(entities, BaseException):
            raise entities
        read_by_name[names[number]] = entities
    return read_by_name


def _unreachable(name: Any, address: str, reason: str) -> Refusal:
    return Refusal(f"switch {name} at {address}: {reason}", code="unavailable", exit_code=Exit.UNAVAILABLE)
