"""REST: traces of the ways of worms."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI
from pydantic import ConfigDict, Field, StrictFloat, StrictInt, StrictStr
from wormcast_planner import ALTERNATIVES_MAX

from wormcast.network.body import Body
from wormcast.network.ids import HostId
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError
from wormcast.trace.registry import SECONDS_MAX

SECONDS_DEFAULT = 10.0
BYTES_MAX = (1 << 63) - 1


class TraceBody(Body):
    """Whose way is traced: messages from one host to another, or those of a group."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"from": 0, "to": 5}, {"group": 3, "from": 0}]},
    )
    origin: Annotated[
        StrictInt | StrictStr | None,
        Field(
            alias="from",
            description="host that sends, by id or name; of a group by default its lowest member",
        ),
    ] = None
    to: Annotated[StrictInt | StrictStr | None, Field(description="host that receives, by id or name")] = None
    group: Annotated[StrictInt | StrictStr | None, Field(description="group, by id or name")] = None
    route: Annotated[
        StrictInt | None,
        Field(description="only this of several routes to a host, from 0", ge=0, lt=ALTERNATIVES_MAX),
    ] = None
    size: Annotated[
        StrictInt | None,
        Field(
            alias="bytes",
            description="length of the messages, which decides in a group of scheme auto; absent: as the longest",
            ge=0,
            le=BYTES_MAX,
        ),
    ] = None
    seconds: Annotated[
        StrictFloat | StrictInt,
        Field(description=f"how long probes that are missed are sent again, at most {SECONDS_MAX}"),
    ] = SECONDS_DEFAULT


def serve_traces(app: FastAPI, controller: Controller) -> None:
    """POST /v1/trace and GET /v1/trace/{number}."""

    @app.post("/v1/trace", tags=["watching"], status_code=202, summary="Trace the ways of worms, hop by hop")
    async def post_trace(body: TraceBody) -> dict[str, Any]:
        """Agents send probes along the ways of these messages, again where one is missed."""
        of, senders = _read(controller, body)
        trace = controller.traces.begin(of, senders, body.seconds)
        return controller.traces.show(trace.number)

    @app.get("/v1/trace/{number}", tags=["watching"], summary="A trace: what has come so far")
    async def get_trace(number: int) -> dict[str, Any]:
        """The last 16 traces are kept."""
        return controller.traces.show(number)


def _read(controller: Controller, body: TraceBody) -> tuple[dict[str, Any], list[HostId]]:
    """What agents are asked, and which ones."""
    if (body.to is None) == (body.group is None):
        raise RequestError(
            422, "a trace goes to one host or through one group", bound="`to` or `group`, not both"
        )
    more = {} if body.route is None else {"route": body.route}
    if body.to is not None:
        if body.origin is None:
            raise RequestError(422, "a trace to a host begins at a host", bound="`from`, a host id or name")
        if body.size is not None:
            raise RequestError(422, "`bytes` has no effect without `group`", value=body.size)
        origin, to = controller.find_host(body.origin).id, controller.find_host(body.to).id
        if origin == to:
            raise RequestError(422, f"host {to} sends nothing to itself", value=to, bound="two hosts")
        return {"request": {"host": to, **more}, "shown": {"from": origin, "to": to}}, [origin]
    assert body.group is not None
    group = controller.groups.get(body.group)
    origin = min(group.members) if body.origin is None else controller.find_host(body.origin).id
    if origin not in group.members:
        raise RequestError(
            422, f"host {origin} is no member of group {group.id}", value=origin, choices=group.members
        )
    if body.size is not None:
        more["bytes"] = body.size
    shown = {"from": origin, "group": group.id, "scheme": group.scheme, "members": list(group.members)}
    return {"request": {"group": group.id, "origin": origin, **more}, "shown": shown}, list(group.members)
