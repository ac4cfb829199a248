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
        """Plans in the order they came; those that were told by what is other than before, whole."""
        plans: list[Any] = []
        for message in self.received:
            match message.WhichOneof("body"):
                case "plan":
                    plans.append(message.plan)
                case "plan_change":
                    plans.append(changed(plans[-1], message.plan_change))
        return plans

    @property
    def changes(self) -> list[Any]:
        """Plans that were told by what is other than before, as they came."""
        return [m.plan_change for m in self.received if m.WhichOneof("body") == "plan_change"]


def changed(plan: Any, change: Any) -> Any:
    """The plan that a change leads to."""
    assert change.base == plan.epoch
    after = agent_pb2.Plan(
        epoch=change.epoch,
        host_id=plan.host_id,
        routes_at_random=change.routes_at_random,
        train_frames=change.train_frames,
        rate_bytes=change.rate_bytes,
        unicast_train_frames=change.unicast_train_frames,
    )
    if change.HasField("root_route"):
        after.root_route = change.root_route
    for name in ("routes", "tree_routes"):
        gone = {*getattr(change, f"no_{name}"), *(route.host for route in getattr(change, name))}
        kept = [route for route in getattr(plan, name) if route.host not in gone]
        routes = sorted([*kept, *getattr(change, name)], key=lambda route: route.host)
        getattr(after, name).extend(routes)
    gone = {*change.no_groups, *(group.id for group in change.groups)}
    groups = [*(group for group in plan.groups if group.id not in gone), *change.groups]
    after.groups.extend(sorted(groups, key=lambda group: group.id))
    return after


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
