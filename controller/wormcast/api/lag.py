"""REST: which members of a group lag."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Path, Query

from wormcast.network.groups import Group
from wormcast.network.ids import HostId, SwitchId
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.lag_queries import REVISION_LAG
from wormcast.reconcile.lag_walk import Branch, Entry, find_branches


def serve_lag(app: FastAPI, controller: Controller) -> None:
    """GET /v1/groups/{group}/lag."""

    @app.get(
        "/v1/groups/{group}/lag",
        tags=["watching"],
        summary="How far each member is with what an origin sends, those most behind first",
    )
    async def get_lag(
        group: Annotated[str, Path(description="group id or name")],
        origin: Annotated[
            str | None,
            Query(description="member that sends, by id or name; the only one that has sent if absent"),
        ] = None,
    ) -> dict[str, Any]:
        """Agents, and switches that gather, are asked for it: 3 s at most, and 1 s more where no origin is named. Sixteen
        such requests may be under way."""
        found = controller.groups.get(group)
        sender = None if origin is None else controller.find_host(origin).id
        able = [host for host in found.members if _why_not(controller, host) is None]
        if sender is not None:
            _check_origin(controller, found, sender, able)
        elif not able:
            raise RequestError(
                409,
                f"no agent of group {found.id} can say who lags: {_why_not(controller, found.members[0])}",
                value=found.id,
                bound="a member whose agent is connected",
            )
        shown = await controller.lags.ask(
            found.id, found.members, able, sender, lambda host: _branches(controller, found, host)
        )
        for row in shown["members"]:
            if row["by"] is None and (why := _why_not(controller, row["host"])) is not None:
                row["why"] = why
        return shown


def _why_not(controller: Controller, host: HostId) -> str | None:
    """Why the agent of a host cannot be asked; None: it can."""
    record, status = controller.hosts.get(host), controller.agents.get(host)
    if record is None or not record.attached or status is None:
        return f"the agent of host {host} is not connected"
    if status.revision < REVISION_LAG:
        return (
            f"the agent of host {host} cannot say who lags: it knows revision {status.revision} of agent.proto, and "
            f"answers from revision {REVISION_LAG} on"
        )
    return None


def _check_origin(controller: Controller, group: Group, origin: HostId, able: list[HostId]) -> None:
    if origin not in group.members:
        raise RequestError(
            422, f"host {origin} is no member of group {group.id}", value=origin, choices=group.members
        )
    if (why := _why_not(controller, origin)) is not None:
        raise RequestError(409, why, value=origin, choices=able)


def _branches(controller: Controller, group: Group, origin: HostId) -> tuple[int, list[Branch]]:
    """Branches of the switches that gather for an origin, as they are planned."""
    planning = controller.planning
    planned = planning.planned(origin, group.id)
    if planned is None or planned.gathered is None or origin not in dict(planned.gathered[1]):
        return 0, []
    view = planning.view
    if view is None:
        return 0, []
    there: dict[tuple[int, int], tuple[str, int]] = {}
    for link in view.known.links:
        there[link.a, link.a_port] = ("switch", link.b)
        there[link.b, link.b_port] = ("switch", link.a)
    there |= {(host.switch, host.port): ("host", host.id) for host in view.known.hosts}
    first = next((host.switch for host in view.known.hosts if host.id == origin), None)
    if first is None:
        return 0, []

    def entries_at(switch: int) -> list[Entry]:
        state = planning.state.switches.get(SwitchId(switch))
        return [] if state is None else list(state.entries())

    return find_branches(entries_at, lambda switch, port: there.get((switch, port)), group.id, origin, first)
