"""Work gives way to a change of routes, for a bounded time, once."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from controller_lab.running import running, take_for_up, until
from wormcast import routing
from wormcast.discovery.links import LinkMonitor
from wormcast.mtu import LOOK_LATER_S
from wormcast.network.ids import PortId
from wormcast.offload.switch_plan import read_network
from wormcast.reconcile.network_watch import PROBES_WAIT_S
from wormcast.reconcile.pacing import Paced
from wormcast.reconcile.reconciler import Reconciler
from wormcast.reconcile.yielding import Yielding
from wormcast.store.database import SwitchSpec


def test_it_waits_for_quiet_but_not_for_ever_and_not_again() -> None:
    async def main() -> None:
        quiet = True
        way = Yielding(lambda: quiet, most_s=0.2)
        await way.wait()

        quiet, began = False, time.monotonic()
        await way.wait()
        assert time.monotonic() - began >= 0.2
        # Still not quiet: it has given way already.
        again = asyncio.create_task(way.wait())
        await asyncio.sleep(0)
        assert again.done()

        quiet = True
        await way.wait()
        quiet = False
        way._most_s = 3600.0  # a slow machine is not for ever
        waiting = asyncio.create_task(way.wait())
        await asyncio.sleep(0.02)
        assert not waiting.done()
        quiet = True
        async with asyncio.timeout(600):
            await waiting

    asyncio.run(main())


def test_probes_give_way_to_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        looked: list[float] = []
        monkeypatch.setattr(Reconciler, "is_quiet", lambda _: False)
        monkeypatch.setattr(LinkMonitor, "poll_transmit", lambda _, __: looked.append(time.monotonic()) or [])
        began = time.monotonic()
        async with running():
            await until(lambda: looked)
        assert looked[0] - began >= PROBES_WAIT_S

    asyncio.run(main())


def test_mtus_are_looked_at_later_where_links_have_only_gone() -> None:
    async def main() -> None:
        network = read_network(routing.make("line:2"))
        async with running() as controller:
            for switch in network.switches:
                controller.put_switches(
                    [SwitchSpec(switch.id, f"127.0.0.1:{40000 + switch.id}", 0, switch.ports)]
                )
                take_for_up(controller, switch.id)
            for link in network.links:
                controller.monitor.restore_link(link)
            asked: list[float] = []
            looks = Paced(lambda: None)
            looks.call = asked.append  # type: ignore[method-assign,assignment]
            controller.network._mtu_looks = looks
            controller.network._look_around()
            assert asked[-1:] == [0.0], "a link has come"
            for link in network.links:
                controller.network._network = replace(
                    controller.network._network,
                    links=frozenset({*network.links, replace(link, a_port=PortId(5))}),
                )
            controller.network._look_around()
            assert asked[-1] == LOOK_LATER_S, "a link has gone"

    asyncio.run(main())
