"""What the jobs of `wormcast.offload` are given: what is in force, from the controller's state."""

from __future__ import annotations

from typing import Any

from wormcast_planner import is_copied_by_switches

from wormcast.network.groups import Group
from wormcast.network.ids import HostId, SwitchId
from wormcast.network.routing import Routing
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError


def ask_network(controller: Controller) -> dict[str, Any]:
    """What is up, and which routes are in force there."""
    return {"topology": controller.topology().to_json(), "routing": controller.routing.to_json()}


def ask_routes(controller: Controller, algorithm: str | None, src: HostId | None) -> dict[str, Any]:
    """What routes are planned from: those in force, or by an algorithm; and how often those from a host were used."""
    status = None if src is None else controller.agents.get(src)
    uses = (
        [] if status is None else [{"host": host, "messages": used} for host, used in status.routes.items()]
    )
    return {**ask_network(controller), "algorithm": algorithm, "uses": uses}


def ask_change(controller: Controller, new: Routing) -> dict[str, Any]:
    """What a change of the routes is compared from."""
    return {**ask_verify(controller), "new": new.to_json()}


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
        "topology": controller.topology().to_json(),
        "about": {"id": group.id, "name": group.name, "epoch": controller.reconciler.epoch},
        "request": (group_request(group, sender, members), tree_root(controller, group)),
    }


def ask_verify(controller: Controller) -> dict[str, Any]:
    """What may be sent now: unicast routes, and TREE routes of every sender."""
    requests = [
        (group_request(group, sender, members), tree_root(controller, group))
        for group in controller.groups.groups()
        if is_copied_by_switches(group.scheme) and len(members := _members_now(controller, group)) > 1
        for sender in members
    ]
    return {**ask_network(controller), "requests": requests}


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
    short = controller.reconciler.shortfalls(group.id)
    agents = controller.reconciler.view.agents if controller.reconciler.view is not None else frozenset()
    return tuple(m for m in group.members if m not in short and m in agents)


def group_request(group: Group, source: HostId, members: tuple[HostId, ...]) -> dict[str, Any]:
    """What the group file of these members is planned from, seen from one sender."""
    given = {
        name: value for name in ("k", "fan_out", "packets") if (value := getattr(group.parameters, name))
    }
    return {
        "scheme": group.scheme,
        "source": source,
        "members": list(members),
        "parameters": given,
    }
