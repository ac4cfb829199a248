"""A switch loses its last way up: one step, and a link that comes back waits until older worms have left."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from controller_lab.agents import TestAgent, attached
from controller_lab.announcing import encode_announcement
from controller_lab.running import running, take_for_up, until
from wormcast.agentrpc import agent_pb2
from wormcast.discovery.lldp import Announcement
from wormcast.network.ids import PortId, SwitchId
from wormcast.network.topology import Link
from wormcast.p4rt.port_states import AnnouncedPorts
from wormcast.reconcile.controller import Controller
from wormcast.store.database import SwitchSpec

COUNT = 5
"""Switches of a ring. The only way up of switch 2 is its link to switch 1."""
LOST = Link(SwitchId(1), PortId(7), SwitchId(2), PortId(6))


def links() -> list[Link]:
    """Those of the ring."""
    ends = [((SwitchId(n), PortId(7)), (SwitchId((n + 1) % COUNT), PortId(6))) for n in range(COUNT)]
    return [Link.between(one, other) for one, other in ends]


async def probe(controller: Controller, cut: set[Link]) -> None:
    """Probes come in over all links but these."""
    while True:
        now = controller.clock.now()
        for link in set(links()) - cut:
            one, other = link.ends()
            controller.monitor.handle_probe(one, other, now, now)
            controller.monitor.handle_probe(other, one, now, now)
        controller.network.notice()
        await asyncio.sleep(0.1)


def make_ring(controller: Controller) -> None:
    """No server answers for the switches; they are taken for up."""
    for n in range(COUNT):
        controller.put_switches([SwitchSpec(SwitchId(n), f"127.0.0.1:{40000 + n}", 0, 8)])
        take_for_up(controller, SwitchId(n))
        controller.switch_events.port_states_changed(SwitchId(n), AnnouncedPorts())
    for link in links():
        controller.monitor.restore_link(link)


def route(agent: TestAgent, host: int) -> list[int]:
    return next(list(r.ports) for r in agent.plans[-1].routes if r.host == host)


async def confirm(agents: list[TestAgent]) -> None:
    """All agents follow their last plan."""
    for agent in agents:
        await agent.send(plan_applied=agent_pb2.PlanApplied(epoch=agent.plans[-1].epoch))


def test_a_link_that_comes_back_early_waits_for_older_worms(tmp_path: Path) -> None:
    async def main() -> None:
        address = f"unix:{tmp_path}/agents.sock"
        async with (
            running(tmp_path / "state.db", (address,)) as controller,
            contextlib.AsyncExitStack() as stack,
        ):
            make_ring(controller)
            cut: set[Link] = set()
            probes = asyncio.create_task(probe(controller, cut))
            stack.callback(probes.cancel)
            agents = []
            for n in range(COUNT):
                frame = encode_announcement(Announcement(f"a{n}", b"\2\0\0\0\0\1", 100))
                controller.switch_events.packet_received(SwitchId(n), PortId(0), frame)
                agents.append(await stack.enter_async_context(attached(address, f"a{n}", host_id=n)))
            await until(lambda: all(a.plans and len(a.plans[-1].routes) == COUNT - 1 for a in agents))
            await until(lambda: route(agents[1], 2) == [7, 0])
            async with asyncio.timeout(600):
                while controller.agent_plans.steps.change is not None:
                    await confirm(agents)
                    await asyncio.sleep(0.1)

            cut.add(LOST)
            controller.switch_events.port_states_changed(SwitchId(1), AnnouncedPorts(frozenset([PortId(7)])))
            await until(lambda: route(agents[1], 2) == [6, 6, 6, 6, 0])
            change = controller.agent_plans.steps.change
            assert change is not None
            assert (change.method, change.steps) == ("repaired-order", 1)

            controller.switch_events.port_states_changed(SwitchId(1), AnnouncedPorts())
            plans = controller.planning.figures.plans
            cut.clear()
            await until(lambda: controller.planning.figures.plans > plans)
            await asyncio.sleep(0.3)
            assert route(agents[1], 2) == [6, 6, 6, 6, 0], "worms of the order before may be under way"

            await confirm(agents)
            await until(lambda: route(agents[1], 2) == [7, 0])

    asyncio.run(main())


def test_a_link_that_is_silent_alone_takes_two_steps(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path / "state.db", ()) as controller:
            make_ring(controller)
            for n in range(COUNT):
                controller.declare_host(f"h{n}", n, 0, n)
            await controller.reconciler.settle()
            order = controller.planning.order
            controller.monitor._drop_direction((SwitchId(1), PortId(7)))
            await controller.reconciler.settle()
            state = controller.planning.state
            assert state.method == "repaired-order"
            assert state.bridge is not None, "it may carry worms"
            assert state.order == order

    asyncio.run(main())
