"""What the network has become is in the state file when its plan is made, and before anybody is told of that plan."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from controller_lab.agents import attached
from controller_lab.announcing import encode_announcement
from controller_lab.running import running, take_for_up, until
from wormcast.agentrpc import agent_pb2
from wormcast.directory.plans import IssuedPlan
from wormcast.discovery.lldp import Announcement
from wormcast.network.ids import HostId, PortId, SwitchId
from wormcast.network.topology import Link
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.view import View
from wormcast.store.database import SwitchSpec

LINK = (0, 7, 1, 6)


def links_in(state: Path) -> list[tuple[int, ...]]:
    """What a restart would begin with. The controller has the file for itself, so a copy is read."""
    with (
        tempfile.TemporaryDirectory(dir=state.parent) as directory,
        contextlib.closing(sqlite3.connect(copy_state(state, Path(directory)))) as sql,
    ):
        return sql.execute("SELECT * FROM links").fetchall()


def copy_state(state: Path, directory: Path) -> Path:
    """What a crash would leave."""
    for file in state.parent.glob(f"{state.name}*"):
        shutil.copy(file, directory / file.name)
    return directory / state.name


def make_fabric(controller: Controller) -> None:
    """Two switches, taken for up, and the link between them."""
    for n in range(2):
        controller.put_switches([SwitchSpec(SwitchId(n), f"127.0.0.1:{40000 + n}", 0, 8)])
        take_for_up(controller, SwitchId(n))
    a, a_port, b, b_port = LINK
    controller.monitor.restore_link(Link(SwitchId(a), PortId(a_port), SwitchId(b), PortId(b_port)))


def test_a_plan_is_made_then_kept_then_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, state, crashed = f"unix:{tmp_path}/agents.sock", tmp_path / "state.db", tmp_path / "crashed"

    async def main() -> None:
        async with running(state, (address,)) as controller, contextlib.AsyncExitStack() as stack:
            make_fabric(controller)
            agents = []
            for n in range(2):
                frame = encode_announcement(Announcement(f"a{n}", b"\2\0\0\0\0\1", 100))
                controller.switch_events.packet_received(SwitchId(n), PortId(0), frame)
                agents.append(await stack.enter_async_context(attached(address, f"a{n}")))
            await until(lambda: all(a.plans and len(a.plans[-1].routes) == 1 for a in agents))
            async with asyncio.timeout(600):
                while not controller.reconciler.is_quiet():
                    for agent in agents:
                        await agent.send(plan_applied=agent_pb2.PlanApplied(epoch=agent.plans[-1].epoch))
                    await asyncio.sleep(0.05)
            assert links_in(state) == [LINK]
            before = controller.agent_plans.epoch

            # The planner is held, with its plan nearly made; what is told is looked at as it is told.
            make, publish = controller.planning._make, controller.directory.publish
            planning, go_on = threading.Event(), threading.Event()
            stack.callback(go_on.set)
            kept_when_planned = []

            def make_slowly(view: View) -> object:
                planning.set()
                assert go_on.wait(600)
                return make(view)

            def look_and_publish(plans: Mapping[HostId, IssuedPlan]) -> None:
                if any(told.epoch > before for told in plans.values()):
                    kept_when_planned.append(links_in(state))
                publish(plans)

            monkeypatch.setattr(controller.planning, "_make", make_slowly)
            monkeypatch.setattr(controller.directory, "publish", look_and_publish)
            controller.monitor.remove_switch(SwitchId(1))
            controller.network.notice()
            assert await asyncio.to_thread(planning.wait, 600)

            assert links_in(state) == [LINK], "nothing is kept before the plan that it is for"
            crashed.mkdir()
            copy_state(state, crashed)

            go_on.set()
            await until(lambda: not agents[0].plans[-1].routes)
            assert kept_when_planned
            assert all(links == [] for links in kept_when_planned), "it is kept before anybody is told"

        # A crash between: the next controller begins with the network that agents have their plans for.
        async with running(crashed / "state.db") as second:
            assert second.agent_plans.epoch == before
            assert len(second.network.topology().links) == 1

    asyncio.run(main())


def test_what_no_plan_can_be_made_of_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with running(tmp_path / "state.db") as controller:
            make_fabric(controller)
            controller.network.notice()
            await until(lambda: links_in(tmp_path / "state.db") == [LINK])
            tried = []

            def refuse(view: View) -> object:
                tried.append(len(view.topology.switches))
                raise RuntimeError("no plan of this")

            monkeypatch.setattr(controller.planning, "_make", refuse)
            controller.monitor.remove_switch(SwitchId(1))
            controller.network.notice()
            await until(lambda: len(tried) >= 2)
            assert tried[-1] == 1
            assert links_in(tmp_path / "state.db") == [LINK]

    asyncio.run(main())


def test_what_was_found_last_is_kept_at_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path / "state.db") as controller:
            make_fabric(controller)
            controller.network.notice()
        assert links_in(tmp_path / "state.db") == [LINK]

    asyncio.run(main())
