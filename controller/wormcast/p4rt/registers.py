"""Asks a switch for cells of registers. Nothing is written, and nobody's session is disturbed.

P4Runtime has registers; BMv2's server of it refuses to read them, so of BMv2 they are read over Thrift, as
`simple_switch_CLI` does it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import finsy
from finsy.proto import p4r

from wormcast.p4rt.channels import allow_unix_sockets
from wormcast.p4rt.device_ports import MAP_TABLES
from wormcast.p4rt.thrift import I32, I64, LIST, STRING, Connection, connect

allow_unix_sockets()

Cells = dict[int, int]
"""Values by index."""
CELLS_MAX = 65536
"""Of one register; an answer with more is not believed."""
BEYOND = (1 << 63) - 1
"""What BMv2 answers for a larger number."""


class RegisterError(Exception):
    """The registers cannot be had; the text says why."""


async def read_registers(
    address: str, device_id: int, names: Sequence[str], cells: Sequence[int]
) -> dict[str, Cells]:
    """Cells of registers of a switch, over P4Runtime. Raises `finsy.P4ClientError`, `RegisterError`."""
    async with finsy.P4Client(address, wait_for_ready=False) as client:
        kind = p4r.GetForwardingPipelineConfigRequest.ResponseType.P4INFO_AND_COOKIE
        reply = await client.request(
            p4r.GetForwardingPipelineConfigRequest(device_id=device_id, response_type=kind)
        )
        if any(table.preamble.name in MAP_TABLES for table in reply.config.p4info.tables):
            raise RegisterError(
                "it runs the program for Tofino, whose registers are others; those of wormcast-switch and BMv2 can be read"
            )
        known = {one.preamble.name: one.preamble.id for one in reply.config.p4info.registers}
        if missing := [name for name in names if name not in known]:
            raise RegisterError(f"its program has no register {missing[0]}")
        wanted = [
            p4r.RegisterEntry(register_id=known[name], index=p4r.Index(index=cell))
            for name in names
            for cell in cells
        ]
        entities = [p4r.Entity(register_entry=entry) for entry in wanted]
        request = p4r.ReadRequest(device_id=device_id, entities=entities)
        found: dict[int, Cells] = {known[name]: {} for name in names}
        async for reply in client.request_iter(request):
            for one in reply.entities:
                entry = one.register_entry
                if entry.register_id in found:
                    found[entry.register_id][entry.index.index] = int.from_bytes(entry.data.bitstring)
        for name in names:
            _check_whole(name, found[known[name]], cells)
        return {name: found[known[name]] for name in names}


def _check_whole(name: str, found: Cells, cells: Sequence[int]) -> None:
    if missing := set(cells) - found.keys():
        raise RegisterError(f"it does not tell cell {min(missing)} of register {name}")


async def read_registers_thrift(
    host: str, port: int, names: Sequence[str], cells: Sequence[int]
) -> dict[str, Cells]:
    """The same of BMv2. Raises `ThriftError`, `RegisterError`, also where a cell has more bits than BMv2 tells."""
    async with connect(host, port) as connection:
        found = {}
        for name in names:
            every = dict(enumerate(await _read_all(connection, name)))
            _check_whole(name, every, cells)
            found[name] = {cell: every[cell] for cell in cells}
            if BEYOND in found[name].values():
                raise RegisterError(f"BMv2 tells 63 bits of a cell, and one of register {name} has more")
        return found


async def _read_all(connection: Connection, register: str) -> list[int]:
    named = register.encode()
    arguments = struct.pack(">bhi", I32, 1, 0) + struct.pack(">bhi", STRING, 2, len(named)) + named
    answer = await connection.call("standard:bm_register_read_all", arguments)
    if answer != (LIST, 0):
        raise RegisterError(f"it refuses to read register {register}; its program may have none of this name")
    element, count = await connection.take(">bi")
    if element != I64 or not 0 <= count <= CELLS_MAX:
        raise RegisterError(f"it tells {count} cells of register {register}")
    cells = await connection.take(f">{count}q")
    await connection.take(">b")
    return list(cells)
