"""An agent that speaks agent.proto over real gRPC and keeps what it is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
from wormcast.agentrpc import agent_pb2, agent_pb2_grpc


class TestAgent:
    """One stream; `received` is all that came, `ended` is set when it is over."""

    __test__ = False

    def __init__(self, call: Any) -> None:
        self._call = call
        self.received: list[Any] = []
        self.ended = asyncio.Event()
        self.reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                self.received.append(message)
        except grpc.RpcError:
            pass
        finally:
            self.ended.set()

    async def send(self, **body: Any) -> None:
        """Sends one message; ends the program's wait if the stream is gone."""
        await self._call.write(agent_pb2.AgentMessage(**body))

    @property
    def host(self) -> int | None:
        """The id it was given."""
        found = [m.registered.host_id for m in self.received if m.WhichOneof("body") == "registered"]
        return found[0] if found else None

    @property
    def refusal(self) -> str | None:
        """Why it was turned away."""
        found = [m.refused.reason for m in self.received if m.WhichOneof("body") == "refused"]
        return found[0] if found else None

    @property
    def plans(self) -> list[Any]:
        """Plans in the order they came."""
        return [m.plan for m in self.received if m.WhichOneof("body") == "plan"]


@contextlib.asynccontextmanager
async def attached(address: str, name: str | None, **fields: Any) -> AsyncIterator[TestAgent]:
    """An agent that has sent Register, or nothing if it has no name."""
    async with grpc.aio.insecure_channel(address) as channel:
        call = agent_pb2_grpc.AgentDirectoryStub(channel).Attach()
        agent = TestAgent(call)
        try:
            if name is not None:
                register = {"mac": b"\2\0\0\0\0\1", "mtu": 1500, "version": "test", **fields}
                await agent.send(register=agent_pb2.Register(name=name, **register))
            yield agent
        finally:
            call.cancel()
            agent.reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await agent.reader
