"""What the jobs of `wormcast.offload` are given: what is in force, from the controller's state."""

from __future__ import annotations

from typing import Any

from wormcast.network.groups import Group, Scheme
from wormcast.network.ids import HostId
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError


def ask_routes(controller: Controller, algorithm: str | None) -> dict[str, Any]:
    """What routes are planned from: the topology, and the algorithm in force unless one is named."""
    return {"topology": controller.topology().to_json(), "algorithm": algorithm or controller.algorithm}


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
        "request": group_request(group, sender, members),
    }


def ask_verify(controller: Controller) -> dict[str, Any]:
    """What may be sent now: unicast routes, and TREE routes of every sender."""
    requests = [
        group_request(group, sender, members)
        for group in controller.groups.groups()
        if group.scheme is Scheme.SWITCH and len(members := _members_now(controller, group)) > 1
        for sender in members
    ]
    return {**ask_routes(controller, None), "requests": requests}


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
        "scheme": group.scheme.value,
        "source": source,
        "members": list(members),
        "parameters": given,
    }
