"""What the jobs of `wormcast.offload` are given: what is in force, from the controller's state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from wormcast_planner import GROUP_NUMBERS_MAX, is_copied_by_switches

from wormcast.network.groups import AUTO, TABLE, TREE_ROUTES, Group
from wormcast.network.ids import HostId, SwitchId
from wormcast.network.routing import Routing
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError
from wormcast.routing.fallback import runs_as
from wormcast.routing.files import to_text
from wormcast.routing.routes import add_uses
from wormcast.wormhole.switching import Switching

FALLBACK = (
    f"switches have room for {GROUP_NUMBERS_MAX} group numbers: messages of this group go by TREE routes"
)
"""Of a group of scheme table without a number."""


def ask_network(controller: Controller) -> dict[str, Any]:
    """What is up, and which routes are in force there."""
    return {"topology": controller.network.topology().to_json(), "routing": controller.routing.to_json()}


def ask_routes(controller: Controller, algorithm: str) -> dict[str, Any]:
    """What routes by an algorithm are planned from."""
    return {**ask_network(controller), "algorithm": algorithm}


async def routes_in_force(controller: Controller, src: HostId | None, dst: HostId | None) -> bytes:
    """The routes file of what agents are to have. Raises `RequestError`."""
    state, algorithm = controller.planning.state, controller.routing.algorithm
    wanted, roots = controller.routing.root, list(state.roots)
    root = wanted if wanted in roots else next(iter(roots), None)
    if not controller.network.topology().switches:
        return json.dumps({"algorithm": algorithm, "root": None, "routes": []}).encode()
    network = controller.network.topology().to_json()
    topology = json.dumps(network)
    file = await asyncio.to_thread(state.routes_file, topology, algorithm, root, src, dst)
    if file is None:
        raise RequestError(
            422,
            "the file of all routes would be too large; ask for those from a host (src)",
            code="too-large",
        )
    asked = sorted(state.agents) if src is None else [src] if src in state.agents else []
    uses: dict[int, Any] = {}
    for host in asked:
        if (used := controller.agent_events.route_uses(host)) is not None:
            uses[host] = used
    fallback = runs_as(network, algorithm)
    unknown = [host for host in asked if host not in uses]
    if fallback is None and not unknown and not any(uses.values()):
        return file.encode()
    return await asyncio.to_thread(_with_uses, file, uses, unknown, fallback)


def _with_uses(
    file: str, uses: Mapping[int, Mapping[int, Sequence[int]]], unknown: list[HostId], fallback: str | None
) -> bytes:
    """A routes file with how many messages took each route, and the hosts of which that is not known."""
    counted = json.loads(file)
    if fallback is not None:
        counted["runs_as"] = fallback
    if unknown:
        counted["uses_unknown"] = unknown
    add_uses(counted["routes"], uses)
    return json.dumps(counted).encode()


async def verify_in_force(controller: Controller) -> bytes:
    """The verify file of all that agents may send by their plans, and of what switches copy."""
    topology = controller.network.topology().to_json()
    if not topology["switches"]:
        alone = controller.artifacts.holds_unicast_alone
        branching = Switching().branching if alone else controller.switching.switching.branching
        model = {"branching": branching, "buffers": "spill", "forwarding": "store", "root": None}
        checked = {"multicasts": 0, "routes": 0}
        return to_text({"deadlock_free": True, "model": model, "order": [], "checked": checked}).encode()
    return (await asyncio.to_thread(controller.planning.state.verify, json.dumps(topology))).encode()


def ask_change(controller: Controller, new: Routing) -> dict[str, Any]:
    """What a change of the routes is compared from."""
    return {**ask_network(controller), "order": controller.planning.order, "new": new.to_json()}


def ask_group_file(controller: Controller, group: Group, source: HostId | None) -> dict[str, Any]:
    """What the structure of a group as it is now is planned from, seen from one sender; raises `RequestError`."""
    members = _members_now(controller, group)
    if not members:
        raise RequestError(
            409, f"no member of group {group.id} has an agent that takes part now", value=group.id
        )
    sender = members[0] if source is None else source
    if sender not in members:
        raise RequestError(
            422, f"host {sender} does not take part in group {group.id}", value=sender, choices=members
        )
    return {
        "topology": controller.network.topology().to_json(),
        "about": {
            "id": group.id,
            "name": group.name,
            "epoch": controller.agent_plans.epoch,
            **({"fallback": FALLBACK} if is_without_number(controller, group) else {}),
        },
        "request": (group_request(controller, group, sender, members), tree_root(controller, group)),
    }


def tree_root(controller: Controller, group: Group) -> SwitchId | None:
    """The root of the tree along which switches copy a group; None if hosts forward it, or it is nowhere."""
    if not is_copied_by_switches(group.scheme):
        return None
    places = (
        record.place for member in group.members if (record := controller.hosts.get(member)) is not None
    )
    return next(
        (root for place in places if place and (root := controller.root_of(place[0])) is not None), None
    )


def _members_now(controller: Controller, group: Group) -> tuple[HostId, ...]:
    """Members whose agents take part."""
    short = controller.planning.shortfalls(group.id)
    agents = controller.planning.view.agents if controller.planning.view is not None else frozenset()
    return tuple(m for m in group.members if m not in short and m in agents)


def table_number(controller: Controller, group: Group) -> int | None:
    """Under which number switches know a group of scheme table; None of another, or where they have no room."""
    planned = (controller.planning.planned(member, group.id) for member in group.members)
    known = next((one for one in planned if one is not None), None)
    return None if known is None else known.number


def is_without_number(controller: Controller, group: Group) -> bool:
    """Whether switches have no room for the number of a group of scheme table, so that agents send its messages by
    TREE routes."""
    planned = any(controller.planning.planned(member, group.id) is not None for member in group.members)
    return group.scheme == TABLE and planned and table_number(controller, group) is None


def sequencer(controller: Controller, group: Group) -> HostId | None:
    """Of an ordered group: who says in which order its messages are read. None while nobody takes part."""
    planned = (controller.planning.planned(member, group.id) for member in group.members)
    chosen = (None if one is None else one.sequencer for one in planned)
    current = max((one for one in chosen if one is not None), key=lambda one: one[1], default=None)
    return None if current is None else HostId(current[0])


def group_request(
    controller: Controller, group: Group, source: HostId, members: tuple[HostId, ...]
) -> dict[str, Any]:
    """What the group file of these members is planned from, seen from one sender."""
    shape = {} if group.scheme == AUTO else group.parameters.to_json()
    given = {name: value for name, value in shape.items() if value and name not in ("ordered", "rate_bits")}
    if (number := table_number(controller, group)) is not None:
        given["group"] = number
    scheme = group.scheme
    if is_without_number(controller, group):
        scheme, given = TREE_ROUTES, {}
    request: dict[str, Any] = {
        "scheme": scheme,
        "source": source,
        "members": list(members),
        "parameters": given,
    }
    if trees := trees_in_force(controller, group):
        request["shared_trees"] = trees
    return request


def trees_in_force(controller: Controller, group: Group) -> list[list[dict[str, int]]]:
    """Links of trees of a group's own that its messages take in turn, as agents are to have them; none where they go
    along the spanning tree."""
    planned = (controller.planning.planned(member, group.id) for member in group.members)
    known = next((one for one in planned if one is not None), None)
    trees = [] if known is None else known.trees
    return [
        [{"a": a, "a_port": a_port, "b": b, "b_port": b_port} for a, a_port, b, b_port in links]
        for links in trees
    ]
