"""Plans of running groups with trees of their own show the trees that agents have."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from controller_lab.running import rest, running, take_for_up
from controller_lab.small import all_take_part
from wormcast import routing
from wormcast.cli.group_plan import _request
from wormcast.cli.group_table import group_table
from wormcast.cli.source import _group
from wormcast.network.ids import Epoch, PortId, SwitchId
from wormcast.network.topology import Link
from wormcast.reconcile.controller import Controller
from wormcast.store.database import SwitchSpec

SIZE = 3
HOSTS = SIZE * SIZE


def add_torus(controller: Controller) -> None:
    """Switches that will never answer, a host each."""
    for at in range(HOSTS):
        spec = SwitchSpec(SwitchId(at), f"127.0.0.1:{41000 + at}", 0, 8)
        controller.put_switches([spec])
        take_for_up(controller, spec.id)
        controller.declare_host(f"h{at}", at, 0, None)
    for at in range(HOSTS):
        row, column = divmod(at, SIZE)
        right, down = row * SIZE + (column + 1) % SIZE, (row + 1) % SIZE * SIZE + column
        for to, port in ((right, 1), (down, 3)):
            link = Link.between((SwitchId(at), PortId(port)), (SwitchId(to), PortId(port + 1)))
            controller.monitor.restore_link(link)
    for at in range(HOSTS):
        controller.agent_events.agent_registered(f"h{at}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))


def links_of(tree: dict[str, Any]) -> set[tuple[int, int, int]]:
    """From, port, to."""
    found = set()
    for branch in tree["branches"]:
        if "branches" in branch:
            found.add((tree["switch"], branch["port"], branch["switch"]))
            found |= links_of(branch)
    return found


@pytest.mark.parametrize("source", [0, 4, 8])
def test_the_plan_of_a_running_group_shows_the_trees_in_force(source: int) -> None:
    async def test(client: httpx.AsyncClient) -> dict[str, Any]:
        members = [0, 4, 5, 8]
        made = await client.post(
            "groups",
            json={"scheme": "switch", "members": members, "parameters": {"guard": "C", "trees": 3}},
        )
        group = made.json()["id"]
        await all_take_part(client, group)
        shown = (await client.get(f"groups/{group}")).json()["trees"]
        plan: dict[str, Any] = (await client.get(f"groups/{group}/plan", params={"source": source})).json()
        assert len(shown) == len(plan["shared_trees"]) > 1
        for links, one in zip(shown, plan["shared_trees"], strict=True):
            ends = {(link["a"], link["a_port"], link["b"]) for link in links}
            ends |= {(link["b"], link["b_port"], link["a"]) for link in links}
            # Of a tree that all share a worm takes no link that leads to no other member.
            assert links_of(one["tree"]) <= ends
            assert len(links_of(one["tree"])) == len(links)
            reached = [host for route in one["routes"] for host in route["hosts"]]
            assert sorted(reached) == [host for host in members if host != source]
        assert (plan["tree"], plan["routes"]) == (
            plan["shared_trees"][0]["tree"],
            plan["shared_trees"][0]["routes"],
        )
        value = (await client.get(f"groups/{group}")).json()
        assert _request(_group(value), None, {})["shared_trees"] == shown, "the command plans with them too"
        assert "shared_trees" not in _request(_group(value), None, {"least": "depth"})
        text = group_table({**plan})
        assert f"tree 2 of {len(shown)}, which messages take in turn" in text
        # Without agents' trees the best for the sender is shown, as for a group that does not run.
        topology = (await client.get("topology")).json()
        alone = routing.group(topology, {"scheme": "switch", "source": source, "members": members})
        assert "shared_trees" not in alone
        return plan

    async def main() -> None:
        async with running() as controller:
            add_torus(controller)
            async with rest(controller) as client:
                await test(client)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("trees", "said"),
    [
        (
            [[{"a": 0, "a_port": 1, "b": 2, "b_port": 2}]],
            "port 1 of switch 0 does not lead to port 2 of switch 2",
        ),
        ([[{"a": 0}]], "not a list of up to 8 trees"),
        ([[]] * 9, "not a list of up to 8 trees"),
        (5, "not a list of up to 8 trees"),
    ],
)
def test_trees_that_cannot_be_are_refused(trees: Any, said: str) -> None:
    topology = routing.make("torus:3")
    request = {
        "scheme": "switch",
        "source": 0,
        "members": [0, 1],
        "parameters": {"guard": "C"},
        "shared_trees": trees,
    }
    with pytest.raises(routing.RoutingError) as refused:
        routing.group(topology, request)
    assert said in str(refused.value)
    assert "shared_trees" in str(refused.value)
