"""More groups than switches have numbers for: none is refused for that, and who goes without is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import combinations, islice
from typing import Any

import httpx
import jsonschema
import pytest
from click.testing import CliRunner
from controller_lab.running import rest, running, take_for_up, until
from controller_lab.serving import serving
from controller_lab.small import make_group
from wormcast.cli.main import main
from wormcast.network.group_body import GroupBody
from wormcast.network.ids import Epoch, SwitchId
from wormcast.reconcile.controller import Controller
from wormcast.routing import schemas
from wormcast.store.database import SwitchSpec
from wormcast_planner import GROUP_BROADCAST, GROUP_ID_MAX, GROUP_NUMBERS_MAX

HOSTS = 17
BEYOND = 20
"""Groups more than switches have numbers for."""


def distinct_members(count: int) -> Iterator[tuple[int, ...]]:
    every = (members for size in range(2, HOSTS) for members in combinations(range(HOSTS), size))
    return islice(every, count)


def add_network(controller: Controller) -> None:
    """One switch, taken for up, with an agent on each host."""
    spec = SwitchSpec(SwitchId(0), "127.0.0.1:40000", 0, HOSTS)
    controller.put_switches([spec])
    take_for_up(controller, spec.id)
    for host in range(HOSTS):
        controller.declare_host(f"h{host}", 0, host, host)
        controller.agent_events.agent_registered(f"h{host}", host, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))


async def planned(controller: Controller, group: int) -> None:
    controller.network.notice()
    await until(lambda: group in [g.id for g in known(controller)], 300.0)


def known(controller: Controller) -> tuple[Any, ...]:
    view = controller.planning.view
    return () if view is None else view.groups


def entries(controller: Controller) -> int:
    state: Any = controller.planning.state.switches[SwitchId(0)]
    return sum(entry.table == "ingress.groups" for entry in state.entries())


def test_groups_without_a_place_in_switches_are_not_counted() -> None:
    async def test() -> None:
        async with running() as controller, rest(controller) as client:
            add_network(controller)
            registry = controller.groups
            shared = GroupBody(scheme="table", members=[0, 1])
            registry.create_all(
                [GroupBody(scheme="circuit", members=[0, 1]), shared] * (GROUP_NUMBERS_MAX // 2 + BEYOND)
            )
            answer = await client.post("groups", json={"scheme": "tree", "members": [0, 1]})
            assert answer.status_code == 201, answer.text
            # None goes by TREE routes: groups with the same members share one number.
            await planned(controller, answer.json()["id"])
            assert controller.planning.state.failures == []
            assert entries(controller) == 1 + 1, "broadcast, and that of all groups of scheme table"
            shown = (await client.get("groups/1")).json()
            assert (shown["number"], shown["fallback"]) == (1, None)
            assert len(registry.groups()) > GROUP_NUMBERS_MAX

    asyncio.run(test())


def test_group_ids_are_the_bound_of_groups_that_need_no_number() -> None:
    async def test() -> None:
        async with running() as controller, rest(controller) as client:
            add_network(controller)
            controller.groups.create_all([GroupBody(scheme="circuit", members=[0, 1])] * GROUP_ID_MAX)
            answer = await client.post("groups", json={"scheme": "circuit", "members": [0, 1]})
            assert answer.status_code == 507
            said = answer.json()["error"]["message"]
            assert said == f"every group id is taken; possible: 0 to {GROUP_ID_MAX}, not {GROUP_BROADCAST}"

    asyncio.run(test())


def at_terminal(*words: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True)
        done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_groups_that_switches_have_no_number_for_go_by_tree_routes(tmp_path: Any) -> None:
    address = "unix:" + str(tmp_path / "rest")
    first = 0

    async def show(controller: Controller, client: httpx.AsyncClient, command: Callable[..., Any]) -> None:
        count = GROUP_NUMBERS_MAX + BEYOND
        groups = [GroupBody(scheme="table", members=list(members)) for members in distinct_members(count)]
        controller.groups.create_all(groups)
        ids = [group.id for group in controller.groups.groups()]
        without = ids[GROUP_NUMBERS_MAX:]
        await planned(controller, ids[-1])
        reason = (
            f"switches have room for {GROUP_NUMBERS_MAX} group numbers, and addresses and lower groups take it: "
            "messages go by TREE routes"
        )
        named = ", ".join(map(str, without[:16]))
        told = f"groups {named} and {BEYOND - 16} more: {reason}"
        assert controller.planning.state.failures == [told]
        assert [e.data for e in controller.events.history() if e.kind == "plan_failed"] == [{"error": told}]
        assert (await client.get("status")).json()["plan_error"] == told
        assert entries(controller) == GROUP_NUMBERS_MAX + 1

        last, lower = ids[-1], without[0] - 1
        fallback = f"switches have room for {GROUP_NUMBERS_MAX} group numbers: messages of this group go by TREE routes"
        shown = (await client.get(f"groups/{last}")).json()
        assert (shown["number"], shown["fallback"]) == (None, fallback)
        assert all(member["takes_part"] for member in shown["state"])
        plan = (await client.get(f"groups/{last}/plan")).json()
        jsonschema.validate(plan, schemas.load("group"))
        assert (plan["scheme"], plan["fallback"]) == ("switch", fallback)
        of_lower = (await client.get(f"groups/{lower}/plan")).json()
        assert (of_lower["scheme"], of_lower.get("fallback")) == ("table", None)
        assert fallback in await command("group", "show", str(last))
        assert fallback in await command("group", "plan", str(last))
        assert "TREE" not in await command("group", "show", str(lower))

        # A group with the same members as one with a number shares it, and one that goes makes room.
        alike = make_group(controller.groups, "table", controller.groups.get(ids[first]).members)
        controller.groups.delete(ids[1])
        await planned(controller, alike.id)
        numbers = [
            (await client.get(f"groups/{group}")).json()["number"] for group in (alike.id, *without[:2])
        ]
        assert numbers == [ids[first], without[0], None]

    async def test() -> None:
        async with running() as controller, rest(controller) as client:
            add_network(controller)
            async with serving(controller, tmp_path / "rest"):

                async def command(*words: str) -> str:
                    return await asyncio.to_thread(at_terminal, *words, "--api", address)

                await show(controller, client, command)

    asyncio.run(test())
