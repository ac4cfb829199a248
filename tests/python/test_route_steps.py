"""Changes of routes by safe steps: who must confirm, what is waited for, and what an interruption leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from controller_lab.running import rest, running, until
from test_routing_setting import NETWORK, add_network
from wormcast.cli.routing import _describe
from wormcast.network.ids import Epoch, HostId, SwitchId
from wormcast.network.routing import Routing
from wormcast.reconcile import route_steps
from wormcast.reconcile.controller import Controller
from wormcast.store.database import Database

HOSTS = frozenset(HostId(host["id"]) for host in NETWORK["hosts"])
STEPS = ["change_planned", "change_step", "change_drained", "change_step", "change_done"]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_steps, "SLOW_AFTER_S", 0.2)
    monkeypatch.setattr(route_steps, "LEFT_BEHIND_AFTER_S", 0.6)


class Agents:
    """Answers the plans that agents are told, for those that answer."""

    def __init__(self, controller: Controller, silent: Iterable[HostId] = ()) -> None:
        self.silent = set(silent)
        self.history: list[dict[HostId, Any]] = []
        """What all agents that answer follow, each time it changes."""
        self._controller = controller
        self._follows: dict[HostId, Any] = {}

    async def run(self) -> None:
        while True:
            for host in HOSTS - self.silent:
                told = self._controller.agent_plans.issued.get(host)
                if told is not None and self._follows.get(host) is not told.plan:
                    self._follows[host] = told.plan
                    self._controller.agent_events.plan_applied(host, told.epoch, "")
                    self.history.append(dict(self._follows))
            await asyncio.sleep(0.01)


Test = Callable[[Controller, Agents], Awaitable[None]]


def with_agents(test: Test, state: Path | None = None, silent: Iterable[HostId] = ()) -> None:
    async def run() -> None:
        async with running(state) as controller:
            add_network(controller)
            agents = Agents(controller)
            answering = asyncio.create_task(agents.run())
            try:
                await controller.reconciler.settle()
                await until(lambda: controller.agent_plans.steps.change is None)
                agents.silent |= set(silent)
                await test(controller, agents)
            finally:
                answering.cancel()

    asyncio.run(run())


def roots(controller: Controller) -> list[int]:
    """Those of the order in force: the first of its switches."""
    switches: list[int] = json.loads(controller.planning.order)["switches"]
    return switches[:1]


def events_of(controller: Controller, number: int) -> list[str]:
    return [event.kind for event in controller.events.history() if event.data.get("change") == number]


def on_bridge(controller: Controller) -> bool:
    """Whether agents are being told of the first of two steps."""
    change = controller.agent_plans.steps.change
    return change is not None and change.next_order is not None and change.step == 1


async def is_done(controller: Controller) -> None:
    await until(lambda: controller.agent_plans.steps.change is None)


def another_root(controller: Controller) -> SwitchId:
    return SwitchId(next(root for root in (3, 8, 5) if root != roots(controller)[0]))


def test_another_order_takes_two_steps_and_a_drain() -> None:
    async def test(controller: Controller, agents: Agents) -> None:
        root = another_root(controller)
        await controller.put_routing(Routing("rmit", root))
        await is_done(controller)
        planned = [e for e in controller.events.history() if e.kind == "change_planned"][-1]
        assert planned.data["steps"] == 2
        assert planned.data["method"] == "new-order"
        assert planned.data["stopped"] == 0
        assert events_of(controller, planned.data["change"]) == STEPS
        drained = next(e for e in reversed(controller.events.history()) if e.kind == "change_drained")
        bound_s = (controller.planning.state.crossed_max + 1) * route_steps.DRAIN_PER_SWITCH_S
        assert drained.data["after_ms"] >= bound_s * 1000
        assert roots(controller) == [root]
        # Nobody was told of the last routes before everybody had those of the bridge.
        final = controller.planning.state.agents
        first = next(at for at, follows in enumerate(agents.history) if any(follows[h] is final[h] and final[h] is not
            controller.planning.state.bridge[h] for h in follows))  # fmt: skip
        bridge = controller.planning.state.bridge
        assert bridge is not None
        assert all(agents.history[first - 1][host] is bridge[host] for host in HOSTS)

    with_agents(test)


def test_another_algorithm_along_the_order_in_force_is_one_step() -> None:
    async def test(controller: Controller, agents: Agents) -> None:  # noqa: ARG001 - as all
        before = controller.planning.order
        await controller.put_routing(Routing("rrmit"))
        await is_done(controller)
        number = [e for e in controller.events.history() if e.kind == "change_planned"][-1].data["change"]
        assert events_of(controller, number) == ["change_planned", "change_step", "change_done"]
        assert json.loads(controller.planning.order)["switches"] == json.loads(before)["switches"]

    with_agents(test)


def test_an_agent_that_never_confirms_is_named_and_does_not_hold_up_the_others() -> None:
    mute = HostId(7)

    async def test(controller: Controller, agents: Agents) -> None:
        root = another_root(controller)
        await controller.put_routing(Routing("osud", root))
        async with rest(controller) as client:
            if (change := (await client.get("routing")).json()["change"]) is not None:
                assert change["steps"] == 2
                assert mute in change["waiting_for"]
            await is_done(controller)
            assert roots(controller) == [root]
            shown = (await client.get("status")).json()["routing"]
            assert shown["left_behind"] == [mute]
            assert any("left behind" in line for line in _describe(shown))
            slow = [e for e in controller.events.history() if e.kind in ("agent_slow", "agent_left_behind")]
            assert {e.data["host"] for e in slow} == {mute}
            kinds = [e.kind for e in slow]
            # Where this process stood still both times were over at once, and it is not told to be slow.
            if kinds[0] == "agent_slow":
                kinds.pop(0)
            assert kinds[0] == "agent_left_behind"
            # It is told the last routes, and is named until it has them.
            told = controller.agent_plans.issued.get(mute)
            assert told is not None
            assert told.plan is controller.planning.state.agents[mute]
            agents.silent.clear()
            await until(lambda: not controller.agent_plans.steps.behind)
            assert (await client.get("routing")).json()["left_behind_count"] == 0
        assert controller.events.history()[-1].kind in ("agent_caught_up", "change_done")

    with_agents(test, silent=[mute])


def test_an_agent_that_refuses_its_plan_has_not_confirmed_it() -> None:
    async def test(controller: Controller, agents: Agents) -> None:
        agents.silent.add(HostId(2))
        await asyncio.sleep(0.05)
        setting = asyncio.create_task(controller.put_routing(Routing("osud", another_root(controller))))
        await until(lambda: on_bridge(controller))
        told = controller.agent_plans.issued.get(HostId(2))
        assert told is not None
        controller.agent_events.plan_applied(HostId(2), told.epoch, "the route to host 3 has byte 254")
        change = controller.agent_plans.steps.change
        assert change is not None
        assert HostId(2) in change.waiting
        await setting
        await is_done(controller)

    with_agents(test)


def test_a_change_while_another_is_under_way_begins_from_the_order_in_force() -> None:
    async def test(controller: Controller, agents: Agents) -> None:
        before = roots(controller)
        first, second = [root for root in (3, 8, 5) if root != before[0]][:2]
        agents.silent = set(HOSTS)
        task = asyncio.create_task(controller.put_routing(Routing("osud", SwitchId(first))))
        await until(lambda: on_bridge(controller))
        assert roots(controller) == before
        agents.silent = set()
        await controller.put_routing(Routing("osud", SwitchId(second)))
        await task
        await until(lambda: roots(controller) == [second])
        assert controller.planning.state.roots == [second]

    with_agents(test)


def test_a_controller_that_ends_between_two_steps_goes_on_from_the_order_in_force(tmp_path: Path) -> None:
    state = tmp_path / "controller.db"
    seen: dict[str, Any] = {}

    async def first(controller: Controller, agents: Agents) -> None:
        seen["order"], seen["root"] = controller.planning.order, another_root(controller)
        agents.silent = set(HOSTS)
        task = asyncio.create_task(controller.put_routing(Routing("osud", seen["root"])))
        await until(lambda: on_bridge(controller))
        seen["epoch"] = controller.agent_plans.epoch
        task.cancel()

    with_agents(first, state)
    database = Database(state)
    kept = database.route_order()
    assert kept is not None
    assert json.loads(kept)["switches"] == json.loads(seen["order"])["switches"]
    database.close()

    async def again(controller: Controller, agents: Agents) -> None:  # noqa: ARG001 - as all
        await until(lambda: roots(controller) == [seen["root"]])
        kinds = [event.kind for event in controller.events.history()]
        assert "change_drained" in kinds, "it took the bridge again"
        assert controller.agent_plans.epoch > seen["epoch"]

    with_agents(again, state)
    database = Database(state)
    kept = database.route_order()
    assert kept is not None
    assert json.loads(kept)["switches"][0] == seen["root"]
    database.close()


def test_an_order_that_cannot_be_read_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = tmp_path / "controller.db"
    database = Database(state)
    database.put_route_order("{")
    database.close()

    async def test(controller: Controller, agents: Agents) -> None:  # noqa: ARG001 - as all
        assert json.loads(controller.planning.order)["switches"]

    with_agents(test, state)
    assert "the order of switches in force is not known" in caplog.text


def test_an_agent_that_is_gone_is_not_waited_for() -> None:
    async def test(controller: Controller, agents: Agents) -> None:
        gone = HostId(4)
        agents.silent.add(gone)
        record = controller.hosts.get(gone)
        assert record is not None
        controller.agent_events.agent_detached(gone)
        await controller.put_routing(Routing("osud", another_root(controller)))
        await is_done(controller)
        steps = controller.agent_plans.steps
        assert not steps.behind.keys() - {gone}
        controller.forget_host(gone)
        assert not steps.behind
        assert steps.to_json()["left_behind_count"] == 0

    with_agents(test)


def test_an_answer_to_an_older_plan_is_no_confirmation() -> None:
    async def test(controller: Controller, agents: Agents) -> None:
        agents.silent = set(HOSTS)
        old = controller.agent_plans.issued.get(HostId(1))
        assert old is not None
        task = asyncio.create_task(controller.put_routing(Routing("osud", another_root(controller))))
        steps = controller.agent_plans.steps
        await until(lambda: steps.change is not None and steps.change.step == 1)
        assert steps.change is not None
        told = controller.agent_plans.issued.get(HostId(1))
        assert told is not None
        if told.plan is not old.plan:
            controller.agent_events.plan_applied(HostId(1), Epoch(old.epoch), "")
            assert HostId(1) in steps.change.waiting
        agents.silent = set()
        await task
        await is_done(controller)

    with_agents(test)
