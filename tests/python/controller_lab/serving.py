"""REST of a running controller on a Unix socket, as `wormcast controller run` serves it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from wormcast.api.app import create_app
from wormcast.cli.service import rest_settings
from wormcast.offload.pool import WorkerPool
from wormcast.reconcile.controller import Controller
from wormcast.sockets import SocketAccess, listen_at


@contextlib.asynccontextmanager
async def serving(
    controller: Controller, path: Path, pool: WorkerPool | None = None, allowed_hosts: Sequence[str] = ()
) -> AsyncIterator[None]:
    """The server, on the event loop of the test."""
    pool = pool or WorkerPool()
    app = create_app(controller, pool, allowed_hosts)
    server = uvicorn.Server(uvicorn.Config(app, **rest_settings(f"unix:{path}")))
    listener = listen_at(path, SocketAccess())
    task = asyncio.create_task(server.serve([listener]))
    try:
        async with asyncio.timeout(600):
            while not server.started:
                await asyncio.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        await task
        await pool.close()


class RawClient:
    """A connection that sends what it is told, when it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, path: Path) -> RawClient:
        return cls(*await asyncio.open_unix_connection(path))

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def read_all(self, seconds_max: float = 600.0) -> bytes:
        """Everything until the server closes."""
        try:
            return await asyncio.wait_for(self.reader.read(), seconds_max)
        except ConnectionError:
            return b""

    async def answer(self, seconds_max: float = 600.0) -> tuple[int, dict[str, str], Any]:
        """Status, headers and JSON of the next answer."""
        async with asyncio.timeout(seconds_max):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            status, *lines = head.rstrip().split("\r\n")
            headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
            body = await self.reader.readexactly(int(headers["content-length"]))
        return int(status.split()[1]), headers, json.loads(body)

    def close(self) -> None:
        self.writer.close()


async def ask(path: Path, target: str = "/v1/status") -> int:
    """The status of a request on a connection of its own."""
    client = await RawClient.connect(path)
    try:
        client.send(f"GET {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        return (await client.answer())[0]
    finally:
        client.close()
