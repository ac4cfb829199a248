"""Links that carry different frames: what groups are told, and what the controller says of them."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from controller_lab.small import all_take_part, with_rest
from wormcast.network.ids import Epoch, PortId, SwitchId
from wormcast.p4rt.port_states import AnnouncedPorts
from wormcast.reconcile.controller import Controller
from wormcast_planner import MTU_MAX

WIDE, NARROW = 9000, 1500
LINK = "link s0 port 3 - s1 port 3 carries 1500 bytes (MTU 1500 at s0, 9100 at s1), others 9000"


def register(controller: Controller, mtus: dict[int, int]) -> None:
    for host, mtu in mtus.items():
        controller.agent_events.agent_registered(f"h{host}", None, b"\2\0\0\0\0\1", mtu, "test", Epoch(0))


def tell(controller: Controller, switch: int, mtu: int) -> None:
    controller.switch_events.port_states_changed(
        SwitchId(switch), AnnouncedPorts(mtus={PortId(port): mtu for port in range(4)})
    )


async def make_group(client: httpx.AsyncClient, number: int, members: list[int]) -> None:
    made = await client.post("groups", json={"id": number, "scheme": "circuit", "members": members})
    assert made.status_code == 201
    await all_take_part(client, number)


async def mtus(client: httpx.AsyncClient, wanted: dict[int, int | None]) -> None:
    """Waits until groups have these."""
    async with asyncio.timeout(600):
        while {g: (await client.get(f"groups/{g}")).json()["mtu"] for g in wanted} != wanted:
            await asyncio.sleep(0.02)


async def events(client: httpx.AsyncClient) -> list[Any]:
    found = (await client.get("events", params={"follow": "false", "after": 0})).json()["events"]
    return [event["reason"] for event in found if event["kind"] == "mtu_problem"]


def test_groups_that_cross_a_narrow_link_are_told_and_others_are_not() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        register(controller, {0: WIDE, 1: WIDE, 2: WIDE})
        tell(controller, 0, 9100)
        tell(controller, 1, 9100)
        await make_group(client, 1, [0, 1])
        await make_group(client, 2, [0, 1, 2])
        await mtus(client, {1: None, 2: None})
        assert (await client.get("status")).json()["mtu_problems"] == []
        told = AnnouncedPorts(mtus={PortId(0): 9100, PortId(1): 9100, PortId(3): NARROW})
        controller.switch_events.port_states_changed(SwitchId(0), told)
        await mtus(client, {1: None, 2: NARROW})
        assert (await client.get("status")).json()["mtu_problems"] == [LINK]
        assert await events(client) == [LINK]
        tell(controller, 0, 9100)
        await mtus(client, {1: None, 2: None})
        assert (await client.get("status")).json()["mtu_problems"] == []
        # A switch that does not say any more has what it said last.
        controller.switch_events.port_states_changed(SwitchId(0), told)
        controller.switch_events.port_states_changed(SwitchId(0), None)
        await mtus(client, {2: NARROW})

    with_rest(test)


def test_a_host_of_a_smaller_mtu_narrows_its_groups_alone() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        register(controller, {0: WIDE, 1: NARROW, 2: WIDE})
        await make_group(client, 1, [0, 1])
        await make_group(client, 2, [0, 2])
        await mtus(client, {1: NARROW, 2: None})
        (found,) = (await client.get("status")).json()["mtu_problems"]
        assert found == (
            "link s0 port 1 - host 1 carries 1500 bytes (MTU not known at s0, 1500 at the host), others 9000"
        )
        # Its agent begins again with the others' MTU.
        register(controller, {1: WIDE})
        await mtus(client, {1: None, 2: None})

    with_rest(test)


def test_hosts_of_the_largest_mtu_ask_for_no_more_than_a_link_can_carry() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        register(controller, {0: MTU_MAX, 1: MTU_MAX, 2: MTU_MAX})
        tell(controller, 0, MTU_MAX)
        tell(controller, 1, MTU_MAX - 1)
        await make_group(client, 1, [0, 1])
        await make_group(client, 2, [0, 2])
        await mtus(client, {1: None, 2: MTU_MAX - 1})
        problems = (await client.get("status")).json()["mtu_problems"]
        assert problems[0].endswith("carries 65534 bytes (MTU 65535 at s0, 65534 at s1), others 65535")
        tell(controller, 1, MTU_MAX)
        await mtus(client, {1: None, 2: None})
        assert (await client.get("status")).json()["mtu_problems"] == []

    with_rest(test)
