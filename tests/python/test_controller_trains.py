"""Trains of agents come when all switches are in wormhole mode, and go before switches leave it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from controller_lab.agents import TestAgent, attached
from controller_lab.running import rest, running, until
from controller_lab.small import make_group
from test_controller_directory import add_switches, announce
from test_controller_switching import default_of
from wormcast.agentrpc import agent_pb2
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.p4rt.convert import TABLE_WORMHOLE
from wormcast.p4rt.tables import Refusal
from wormcast.reconcile import route_steps
from wormcast.reconcile.controller import Controller
from wormcast.store.database import Database
from wormcast.wormhole.settings import SwitchingSettings
from wormcast.wormhole.switching import FLUSH, INTERRUPT, PLAIN, WORMHOLE, Switching
from wormcast_planner import Place

PACKET, WAITS, YIELDS = Switching(), Switching(WORMHOLE, PLAIN), Switching(WORMHOLE, FLUSH)
INTERRUPTS = Switching(WORMHOLE, INTERRUPT)


def test_each_step_is_a_plan_of_its_own_and_kept() -> None:
    database = Database(None)

    def again() -> SwitchingSettings:
        """By a controller that begins again."""
        return SwitchingSettings(database, find_artifacts())

    switching = again()
    assert (switching.planned, switching.is_settled) == ((PACKET, False), True)
    assert not switching.done(PACKET, False)
    switching.set(WAITS)
    assert (again().planned, again().is_settled) == ((WAITS, False), False)
    # An older plan is out.
    assert not switching.done(PACKET, False)
    assert switching.done(WAITS, False)
    assert (again().planned, again().is_settled) == ((WAITS, True), True)
    assert not switching.done(WAITS, True)
    # Trains stay through a change of the scheme.
    switching.set(YIELDS)
    assert (again().planned, again().is_settled) == ((YIELDS, True), True)
    switching.set(PACKET)
    assert (again().planned, again().is_settled) == ((YIELDS, False), False)
    # Wanted again before they have stopped.
    switching.set(WAITS)
    assert again().planned == (WAITS, True)
    switching.set(PACKET)
    assert not switching.done(WAITS, True)
    assert switching.done(WAITS, False)
    assert (again().planned, again().is_settled) == ((PACKET, False), True)


def test_trains_stay_where_multicasts_are_interrupted() -> None:
    switching = SwitchingSettings(Database(None), find_artifacts())
    switching.set(INTERRUPTS)
    assert (switching.planned, switching.is_settled) == ((INTERRUPTS, False), False)
    assert switching.done(INTERRUPTS, False)
    assert (switching.planned, switching.is_settled) == ((INTERRUPTS, True), True)
    for other in (WAITS, INTERRUPTS):
        switching.set(other)
        assert (switching.planned, switching.is_settled) == ((other, True), True)
    switching.set(PACKET)
    assert (switching.planned, switching.is_settled) == ((INTERRUPTS, False), False)


@contextlib.asynccontextmanager
async def lab(
    tmp_path: Path, confirms_first: bool = True, each: int = 1
) -> AsyncIterator[tuple[Controller, list[TestAgent], Callable[[], str]]]:
    """A controller with agents, so many at each of two switches, that confirm their first plan alone, or nothing; what its
    first switch is to do."""
    address = f"unix:{tmp_path}/agents.sock"
    async with running(tmp_path / "state.db", (address,)) as controller, contextlib.AsyncExitStack() as stack:
        add_switches(controller)
        agents = []
        for n in range(2 * each):
            announce(controller, f"a{n}", n % 2, n // 2)
            agents.append(await stack.enter_async_context(attached(address, f"a{n}")))
            await until(lambda: agents[-1].host is not None)
        await controller.reconciler.settle()
        await until(lambda: all(a.plans and a.plans[-1].routes for a in agents))
        if confirms_first:
            await confirm(agents)
        yield controller, agents, lambda: default_of(controller)[0].removeprefix("ingress.")


async def confirm(agents: list[TestAgent]) -> None:
    for agent in agents:
        await agent.send(plan_applied=agent_pb2.PlanApplied(epoch=agent.plans[-1].epoch))


def frames(agents: list[TestAgent]) -> set[int]:
    return {agent.plans[-1].train_frames for agent in agents}


def test_trains_come_after_the_mode_and_go_before_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with lab(tmp_path) as (controller, agents, mode), rest(controller) as client:
            assert frames(agents) == {0}
            shown = (await client.put("switching", json={"mode": "wormhole"})).json()
            assert (shown["settled"], shown["train_frames"], mode()) == (True, 8, "wormhole_mode")
            await until(lambda: frames(agents) == {8})
            await confirm(agents)
            asking = asyncio.create_task(client.put("switching", json={"mode": "packet"}))
            await until(lambda: frames(agents) == {0})
            await confirm(agents[:1])
            await asyncio.sleep(0.3)
            assert mode() == "wormhole_mode", "one may send trains yet"
            shown = (await client.get("switching")).json()
            assert (shown["settled"], shown["train_frames"]) == (False, 1)
            await confirm(agents)
            shown = (await asking).json()
            assert (shown["settled"], mode()) == (True, "packet_mode")

    asyncio.run(main())


def test_interrupted_multicasts_go_by_the_root_in_trains(tmp_path: Path) -> None:
    async def main() -> None:
        async with lab(tmp_path, each=2) as (controller, agents, mode), rest(controller) as client:

            def plans() -> list[agent_pb2.Plan]:
                return [agent.plans[-1] for agent in agents]

            def lengths() -> list[int]:
                return sorted(len(route.ports) for plan in plans() for route in plan.tree_routes)

            await client.put("switching", json={"mode": "wormhole"})
            await until(lambda: frames(agents) == {8})
            assert lengths() == [1] * 4 + [2] * 8
            shown = (await client.put("switching", json={"mode": "wormhole", "scheme": "interrupt"})).json()
            assert (shown["settled"], shown["train_frames"], mode()) == (True, 8, "wormhole_mode")
            # Those of the two at the other switch go up to the root and come back.
            await until(lambda: lengths() == [1] * 2 + [2] * 8 + [3] * 2)
            for plan in plans():
                assert plan.train_frames == 8
                assert all(route.ports.startswith(plan.root_route) for route in plan.tree_routes)

    asyncio.run(main())


def test_an_agent_that_does_not_confirm_is_waited_for_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_steps, "LEFT_BEHIND_AFTER_S", 1.0)

    async def main() -> None:
        async with lab(tmp_path) as (controller, agents, mode):
            controller.switching.set(WAITS)
            await controller.reconciler.settle()
            await until(lambda: frames(agents) == {8})
            await confirm(agents)
            controller.switching.set(PACKET)
            began = time.monotonic()
            # Plans that come meanwhile do not make that longer.
            while mode() != "packet_mode":
                assert time.monotonic() < began + 30.0
                make_group(controller.groups, "circuit", ("a0", "a1"))
                controller.network.notice()
                await asyncio.sleep(0.2)
            assert time.monotonic() - began >= 1.0

    asyncio.run(main())


def test_a_controller_that_begins_again_goes_on(tmp_path: Path) -> None:
    async def first() -> None:
        async with lab(tmp_path) as (controller, agents, _):
            controller.switching.set(WAITS)
            await controller.reconciler.settle()
            await until(lambda: frames(agents) == {8})
            await confirm(agents)
            controller.switching.set(PACKET)

    async def second() -> None:
        async with lab(tmp_path, confirms_first=False) as (_, agents, mode):
            assert mode() == "wormhole_mode", "agents may send trains yet"
            await until(lambda: frames(agents) == {0})
            await asyncio.sleep(0.3)
            assert mode() == "wormhole_mode"
            await confirm(agents)
            await until(lambda: mode() == "packet_mode")

    asyncio.run(first())
    asyncio.run(second())


def test_where_a_switch_refuses_the_mode_no_train_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with lab(tmp_path) as (controller, agents, mode):
            first = next(iter(controller.sessions.values())).tables
            refusal = Refusal(f"default action of {TABLE_WORMHOLE}", "no room", None)
            monkeypatch.setattr(first, "refusals", {Place.group(1): refusal})
            controller.switching.set(WAITS)
            await controller.reconciler.settle()
            await asyncio.sleep(0.5)
            assert (frames(agents), mode()) == ({0}, "wormhole_mode")
            first.refusals.clear()
            controller.wanted.bring_out_again()
            await until(lambda: frames(agents) == {8})

    asyncio.run(main())
