"""What agents take is told, kept to, and shown: requests beyond it are refused, one refused group holds up no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
from controller_lab.agents import TestAgent, attached
from controller_lab.announcing import encode_announcement
from controller_lab.running import rest, running, take_for_up, until
from wormcast.agentrpc import agent_pb2
from wormcast.discovery.lldp import Announcement
from wormcast.network.ids import HostId, PortId, SwitchId
from wormcast.reconcile.agent_status import GROUPS_UNANNOUNCED
from wormcast.reconcile.controller import Controller
from wormcast.store.database import SwitchSpec

Test = Callable[[httpx.AsyncClient, Controller, list[TestAgent]], Awaitable[None]]


def with_agents(tmp_path: Path, registers: list[dict[str, int]], test: Test) -> None:
    """Runs a test with agents a0, a1, … that say what they take."""

    async def main() -> None:
        address = f"unix:{tmp_path}/agents.sock"
        async with running(None, (address,)) as controller, contextlib.AsyncExitStack() as stack:
            controller.put_switches([SwitchSpec(SwitchId(0), "127.0.0.1:40000", 0, 8)])
            take_for_up(controller, SwitchId(0))
            agents = []
            for n, register in enumerate(registers):
                frame = encode_announcement(Announcement(f"a{n}", b"\2\0\0\0\0\1", 100))
                controller.switch_events.packet_received(SwitchId(0), PortId(n), frame)
                agents.append(await stack.enter_async_context(attached(address, f"a{n}", **register)))
                await until(lambda: agents[-1].plans)
            await until(lambda: all(len(a.plans[-1].routes) == len(agents) - 1 for a in agents))
            client = await stack.enter_async_context(rest(controller))
            await test(client, controller, agents)

    asyncio.run(main())


async def answer(agent: TestAgent, error: str = "", **refused: str) -> None:
    """The agent answers its last plan; `g7="why"` refuses group 7."""
    entries = [agent_pb2.RefusedGroup(group=int(name[1:]), reason=why) for name, why in refused.items()]
    applied = agent_pb2.PlanApplied(epoch=agent.plans[-1].epoch, error=error, refused=entries)
    await agent.send(plan_applied=applied)
    if error and not entries and agent.received[-1].WhichOneof("body") == "plan_change":
        # The controller cannot know whether the plan is wrong or the one before is not there: it sends it whole.
        await until(lambda: agent.received[-1].WhichOneof("body") == "plan")
        await answer(agent, error)


def groups_of(agent: TestAgent) -> list[int]:
    return [group.id for group in agent.plans[-1].groups]


async def get(client: httpx.AsyncClient, path: str) -> Any:
    return (await client.get(path)).json()


def test_the_request_that_passes_what_an_agent_takes_is_refused_and_names_it(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, _: Controller, agents: list[TestAgent]) -> None:
        for n in range(3):
            made = await client.post("groups", json={"id": n, "scheme": "circuit", "members": [0, 1]})
            assert made.status_code == 201
        refused = await client.post("groups", json={"id": 3, "scheme": "circuit", "members": [0, 1]})
        assert refused.status_code == 507
        error = refused.json()["error"]
        assert error["message"].startswith("host 1 is in 3 groups; its agent takes no more")
        assert (error["value"], error["bound"]) == (1, "3 groups a host")
        assert (await client.get("groups/3")).status_code == 404
        assert (
            await client.post("groups", json={"id": 3, "scheme": "circuit", "members": [0]})
        ).status_code == 201
        assert (await client.post("groups/3/members", json={"members": [1]})).status_code == 507
        assert (await client.put("groups/3/members", json={"members": [0, 1]})).status_code == 507
        assert (await get(client, "groups/3"))["members"] == [0]
        assert (await client.delete("groups/0")).status_code in (200, 204)
        assert (await client.post("groups/3/members", json={"members": [1]})).status_code == 200
        large = await client.post("groups", json={"scheme": "circuit", "members": [0, 2, 3]})
        assert large.status_code == 507
        assert "2 members" in large.json()["error"]["bound"]
        await until(lambda: groups_of(agents[1]) == [1, 2, 3])

    with_agents(tmp_path, [{}, {"groups_max": 3}, {"members_max": 2}, {}], test)


def test_a_group_an_agent_refuses_is_shown_and_the_others_go_on_without_that_member(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller, agents: list[TestAgent]) -> None:
        for n in (7, 8):
            await client.post("groups", json={"id": n, "scheme": "circuit", "members": [0, 1, 2]})
        await until(lambda: all(groups_of(a) == [7, 8] for a in agents))
        await answer(agents[1], "no ring today", g7="no ring today")
        await until(
            lambda: groups_of(agents[1]) == [8] and list(agents[0].plans[-1].groups[0].members) == [0, 2]
        )
        for agent in agents:
            await answer(agent)
        await until(lambda: all(controller.agents[HostId(n)].installed_count() for n in range(3)))
        shown = await get(client, "groups/7")
        first, second, _ = shown["state"]
        assert (first["planned"], first["installed"], first["refused"]) == (True, True, None)
        assert (second["planned"], second["installed"], second["refused"]) == (False, False, "no ring today")
        assert second["reason"] == "its agent refuses the group: no ring today"
        host = await get(client, "hosts/1")
        assert host["groups"]["refused"] == [{"group": 7, "reason": "no ring today"}]
        assert (host["groups"]["planned"], host["groups"]["installed"]) == (1, 1)
        assert host["plan_epoch"] == (await get(client, "status"))["epoch"]
        # A group that is configured anew is tried again.
        await client.delete("groups/7")
        await client.post("groups", json={"id": 7, "scheme": "repeat", "members": [0, 1, 2]})
        await until(lambda: groups_of(agents[1]) == [7, 8])

    with_agents(tmp_path, [{"groups_max": 100}] * 3, test)


def test_a_plan_refused_whole_is_shown_with_its_error(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller, agents: list[TestAgent]) -> None:
        await client.post("groups", json={"id": 7, "scheme": "circuit", "members": [0, 1]})
        await until(lambda: groups_of(agents[0]) == [7])
        await answer(agents[0], "two routes to host 1")
        await until(lambda: controller.agents[HostId(0)].error)
        host = await get(client, "hosts/0")
        assert host["plan_error"] == "two routes to host 1"
        assert (host["groups"]["planned"], host["groups"]["installed"]) == (1, 0)
        state = (await get(client, "groups/7"))["state"]
        assert [m["installed"] for m in state] == [False, False]

    with_agents(tmp_path, [{}, {}], test)


def test_an_agent_that_does_not_say_and_refuses_many_groups_gets_fewer(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, _: Controller, agents: list[TestAgent]) -> None:
        count = GROUPS_UNANNOUNCED + 4
        groups = [{"id": 1000 + n, "scheme": "circuit", "members": [0, 1]} for n in range(count)]
        assert (await client.post("groups", json={"groups": groups})).status_code == 201
        await until(lambda: len(groups_of(agents[0])) == count)
        await answer(agents[0], f"the plan has {count} groups; at most 256")
        await until(lambda: len(groups_of(agents[0])) == GROUPS_UNANNOUNCED)
        late = (await get(client, f"groups/{1000 + count - 1}"))["state"][0]
        assert (late["takes_part"], late["reason"]) == (False, "its agent takes at most 256 groups")
        refused = await client.post("groups", json={"scheme": "circuit", "members": [0, 1]})
        assert refused.status_code == 507

    with_agents(tmp_path, [{}, {}], test)


def test_the_change_of_one_group_is_sent_to_its_members_alone(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller, agents: list[TestAgent]) -> None:
        for agent in agents:
            await answer(agent)
        sent = len(agents[2].plans)
        await client.post("groups", json={"id": 7, "scheme": "circuit", "members": [0, 1]})
        await until(lambda: groups_of(agents[0]) == [7] and groups_of(agents[1]) == [7])
        assert len(agents[2].plans) == sent
        epoch = controller.agent_plans.epoch
        assert agents[0].plans[-1].epoch == epoch
        host = await get(client, "hosts/2")
        assert host["plan_epoch"] == epoch, "it follows the plan, which has nothing new for it"
        assert (await get(client, "hosts/0"))["plan_epoch"] == epoch - 1, "it has not answered yet"

    with_agents(tmp_path, [{}, {}, {}], test)
