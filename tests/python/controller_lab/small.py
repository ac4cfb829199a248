"""A small fabric behind REST: two switches that will never answer, and three hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx
from wormcast.network.group_body import GroupBody
from wormcast.network.groups import Group
from wormcast.network.ids import PortId, SwitchId
from wormcast.network.topology import Link
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.group_registry import GroupRegistry
from wormcast.store.database import SwitchSpec

from controller_lab.running import rest, running, take_for_up


def add_fabric(controller: Controller) -> None:
    """Two switches that will never answer, taken for up, and three hosts."""
    for n in range(2):
        spec = SwitchSpec(SwitchId(n), f"127.0.0.1:{40000 + n}", 0, 4)
        controller.put_switches([spec])
        take_for_up(controller, spec.id)
    controller.monitor.restore_link(Link(SwitchId(0), PortId(3), SwitchId(1), PortId(3)))
    for host, (switch, port) in enumerate([(0, 0), (0, 1), (1, 0)]):
        controller.declare_host(f"h{host}", switch, port, None)


def make_group(
    groups: GroupRegistry,
    scheme: str,
    members: Sequence[int | str],
    id: int | None = None,
    name: str | None = None,
    **options: Any,
) -> Group:
    body = GroupBody(scheme=scheme, members=list(members), id=id, name=name, **options)
    return groups.create_all([body])[0]


def with_rest(test: Callable[[httpx.AsyncClient, Controller], Awaitable[None]]) -> None:
    """Runs a test against the REST API of a small fabric."""

    async def main() -> None:
        async with running() as controller:
            add_fabric(controller)
            async with rest(controller) as client:
                await test(client, controller)

    asyncio.run(main())


async def all_take_part(client: httpx.AsyncClient, group: int) -> None:
    """Waits for the plan: on a busy machine it may come after the answer."""
    async with asyncio.timeout(600):
        while not all(m["takes_part"] for m in (await client.get(f"groups/{group}")).json()["state"]):
            await asyncio.sleep(0.05)
