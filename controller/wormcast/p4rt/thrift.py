"""Asks BMv2 over Thrift what its P4Runtime does not do, as `simple_switch_CLI` does it: one call and one answer at a time,
in the strict binary protocol."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

TEXT_MAX = 4096
VERSION, CALL, REPLY = 0x80010000, 1, 2
STRING, I32, I64, LIST = 11, 8, 10, 15


class ThriftError(Exception):
    """A call cannot be made; the text says why."""


class NotThere(ThriftError):
    """Nobody listens, or not yet."""


class Connection:
    """To one switch."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def call(self, method: str, arguments: bytes) -> tuple[int, int]:
        """Type and number of the first field of the answer, which is to be taken next. `method`: with its service in
        front, by which Thrift's multiplexed processor finds it; `arguments`: fields. Raises `ThriftError`."""
        name = method.encode()
        head = struct.pack(">Ii", VERSION | CALL, len(name)) + name + struct.pack(">i", 0)
        self._writer.write(head + arguments + b"\0")
        await self._writer.drain()
        version, length = await self.take(">Ii")
        if version & 0xFFFF0000 != VERSION or not 0 <= length <= TEXT_MAX:
            raise ThriftError("it does not speak Thrift's binary protocol")
        await self._reader.readexactly(length)
        await self.take(">i")
        if version & 0xFF != REPLY:
            raise await self._refusal(method)
        kind, number = await self.take(">bh")
        return kind, number

    async def _refusal(self, method: str) -> ThriftError:
        """Takes an exception that answers a call. BMv2 listens for a moment before it has its services."""
        service, _, name = method.partition(":")
        text = b""
        if await self.take(">b") == (STRING,):
            _, length = await self.take(">hi")
            text = await self._reader.readexactly(min(max(length, 0), TEXT_MAX))
        if b"Unknown service" in text:
            return NotThere(f"it has no service {service}, or not yet")
        return ThriftError(f"it does not know {name}")

    async def take(self, form: str) -> Any:
        """What comes next, as `struct` has it."""
        return struct.unpack(form, await self._reader.readexactly(struct.calcsize(form)))


@asynccontextmanager
async def connect(host: str, port: int) -> AsyncIterator[Connection]:
    """A connection for some calls. Raises `ThriftError`, also where it ends in the middle of one."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        raise NotThere(error.strerror or str(error)) from error
    try:
        yield Connection(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise ThriftError("it ended the connection: is this BMv2's Thrift port?") from error
    finally:
        writer.close()


async def set_queue(host: str, port: int, egress_port: int, frames: int, frames_per_s: int) -> None:
    """How many frames the queue of a port holds, and how many leave it in a second. Raises `ThriftError`."""
    to_port = struct.pack(">bhi", I32, 1, egress_port)
    calls = {
        "set_egress_queue_depth": struct.pack(">bhi", I32, 2, frames),
        "set_egress_queue_rate": struct.pack(">bhq", I64, 2, frames_per_s),
    }
    async with connect(host, port) as connection:
        for method, value in calls.items():
            if await connection.call(f"simple_switch:{method}", to_port + value) != (I32, 0):
                raise ThriftError(f"it refuses {method} of port {egress_port}")
            status, _ = await connection.take(">ib")
            if status != 0:
                raise ThriftError(f"{method} of port {egress_port} ends with {status}")
