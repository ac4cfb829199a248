"""An agent knows a later plan than the controller, as after a state file is lost: numbers go on after it, also while a
plan is being made in another thread."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from controller_lab.plans import decoded_group
from controller_lab.small import with_rest
from httpx import AsyncClient
from wormcast.network.ids import Epoch, HostId
from wormcast.reconcile.agent_status import NO_BOUND, Capacity
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.view import View

AHEAD = 1 << 20
GATHERED = {"name": "gathered", "scheme": "switch", "members": [0, 1, 2], "gather": True}
ORDERED = {"name": "ordered", "scheme": "circuit", "members": [0, 1, 2], "parameters": {"ordered": True}}


class Slow:
    """A capacity that the planner reads while it has begun a plan, and that makes it wait there."""

    def __init__(self) -> None:
        self.reading, self.go_on = threading.Event(), threading.Event()
        self.members, self.refused = NO_BOUND, dict[int, str]()

    @property
    def groups(self) -> int:
        self.reading.set()
        assert self.go_on.wait(30)
        return NO_BOUND


def register(controller: Controller, host: int, epoch: int) -> None:
    controller.agent_events.agent_registered(f"h{host}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(epoch))


async def check_numbers(client: AsyncClient, controller: Controller, least: int) -> None:
    """What agents are told comes after a plan of that number, and so does a sequencer that is chosen now."""
    reconciler = controller.reconciler
    await reconciler.settle()
    told = controller.agent_plans.issued.get(HostId(0))
    assert told is not None
    assert told.epoch > least
    assert decoded_group(told.plan, "gathered").gathered.epoch >= least
    assert (await client.post("groups", json=ORDERED)).status_code == 201
    await reconciler.settle()
    told = controller.agent_plans.issued.get(HostId(0))
    assert told is not None
    assert decoded_group(told.plan, "ordered").sequencer.epoch >= least


@pytest.mark.parametrize("is_planning", [False, True])
def test_numbers_go_on_after_those_of_an_agent(is_planning: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(client: AsyncClient, controller: Controller) -> None:
        for host in range(3):
            register(controller, host, 0)
        assert (await client.post("groups", json=GATHERED)).status_code == 201
        reconciler = controller.reconciler
        await reconciler.settle()
        later = controller.agent_plans.epoch + AHEAD
        if not is_planning:
            register(controller, 2, later)
            await check_numbers(client, controller, later)
            return
        slow, make = Slow(), controller.planning._make
        capacities: dict[HostId, Capacity] = {HostId(0): slow}  # type: ignore[dict-item]

        def make_slowly(view: View) -> object:
            monkeypatch.undo()
            return make(replace(view, capacities=capacities))

        monkeypatch.setattr(controller.planning, "_make", make_slowly)
        body = {"name": "one-more", "scheme": "circuit", "members": [0, 1]}
        asked = asyncio.create_task(client.post("groups", json=body))
        assert await asyncio.to_thread(slow.reading.wait, 30)
        register(controller, 2, later)
        slow.go_on.set()
        await asked
        await check_numbers(client, controller, later)

    with_rest(test)
