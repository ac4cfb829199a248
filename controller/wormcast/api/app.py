"""The REST API: `create_app(controller)`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import FastAPI, Header, Path, Query, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from wormcast import __version__
from wormcast.api import failures, views
from wormcast.api.body_limit import BodyLimit
from wormcast.api.counters import show_counters
from wormcast.api.metrics import render_metrics
from wormcast.api.models import (
    ErrorAnswer,
    GroupBody,
    HostBody,
    MembersBody,
    OneOrMoreSwitches,
    SwitchesBody,
    VerifyBody,
)
from wormcast.control.controller import Controller
from wormcast.control.errors import RequestError, unknown
from wormcast.control.events import WATCHERS_MAX, WatcherLimit
from wormcast.control.group_book import GroupRequest
from wormcast.control.port_sources import read_interfaces
from wormcast.fabric.ids import SwitchId
from wormcast.fabric.topology import Topology, TopologyError
from wormcast.store.database import SwitchSpec

DESCRIPTION = """Topology, hosts and groups of one Wormcast fabric.

Hosts and groups are named by id or by name. Every failure answers
`{"error": {"message", "value", "bound" or "choices"}}` with a status of 400 or above.
"""

GroupKey = Annotated[str, Path(description="group id or name")]
HostKey = Annotated[str, Path(description="host id or name")]


def create_app(controller: Controller) -> FastAPI:
    """The application; the controller must run on the same event loop."""
    app = FastAPI(
        title="Wormcast",
        version=__version__,
        description=DESCRIPTION,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its pages come from elsewhere
        redoc_url=None,
        responses={422: {"model": ErrorAnswer, "description": "out of bounds"}},
    )
    failures.install(app)
    app.add_middleware(BodyLimit)
    _serve_network(app, controller)
    _serve_groups(app, controller)
    _serve_plans(app, controller)
    _serve_watching(app, controller)
    return app


def _serve_network(app: FastAPI, controller: Controller) -> None:
    @app.get("/v1/topology", tags=["network"], summary="What is up, in the form of the topology file")
    async def get_topology() -> dict[str, Any]:
        return views.show_topology(controller)

    @app.get("/v1/links", tags=["network"], summary="Links that are up")
    async def get_links() -> dict[str, Any]:
        return {"links": views.show_topology(controller)["links"]}

    @app.get("/v1/switches", tags=["network"], summary="All configured switches")
    async def get_switches() -> dict[str, Any]:
        return {"switches": [views.show_switch(controller, switch) for switch in sorted(controller.sessions)]}

    @app.post("/v1/switches", tags=["network"], status_code=201, summary="Add one switch, or several")
    async def post_switches(body: OneOrMoreSwitches) -> dict[str, Any]:
        bodies = body.switches if isinstance(body, SwitchesBody) else [body]
        specs = [
            SwitchSpec(
                SwitchId(b.id),
                b.address,
                b.device_id,
                b.ports,
                read_interfaces(b.interfaces or {}),
                b.metrics,
            )
            for b in bodies
        ]
        for spec in specs:
            controller.put_switch(spec)
        return {"switches": [views.show_switch(controller, spec.id) for spec in specs]}

    @app.get("/v1/switches/{switch}", tags=["network"], summary="One switch")
    async def get_switch(switch: int) -> dict[str, Any]:
        if switch not in controller.sessions:
            raise unknown("switch", switch, sorted(controller.sessions))
        return views.show_switch(controller, SwitchId(switch))

    @app.get(
        "/v1/switches/{switch}/counters",
        tags=["watching"],
        summary="What a switch forwarded and dropped, and why",
    )
    async def get_counters(switch: int) -> dict[str, Any]:
        if switch not in controller.sessions:
            raise unknown("switch", switch, sorted(controller.sessions))
        return await show_counters(controller.sessions[SwitchId(switch)])

    @app.delete("/v1/switches/{switch}", tags=["network"], status_code=204, summary="Forget a switch")
    async def delete_switch(switch: int) -> None:
        await controller.remove_switch(switch)

    @app.get("/v1/hosts", tags=["network"], summary="All known hosts")
    async def get_hosts() -> dict[str, Any]:
        return {"hosts": [views.show_host(controller, record) for record in controller.hosts.records()]}

    @app.post("/v1/hosts", tags=["network"], status_code=201, summary="Declare where a host hangs")
    async def post_host(body: HostBody) -> dict[str, Any]:
        record = controller.declare_host(body.name, body.switch, body.port, body.id)
        return views.show_host(controller, record)

    @app.get("/v1/hosts/{host}", tags=["network"], summary="One host")
    async def get_host(host: HostKey) -> dict[str, Any]:
        return views.show_host(controller, controller.find_host(host))

    @app.delete("/v1/hosts/{host}", tags=["network"], status_code=204, summary="Forget a host without agent")
    async def delete_host(host: HostKey) -> None:
        controller.forget_host(host)


def _serve_groups(app: FastAPI, controller: Controller) -> None:
    book = controller.groups

    @app.get("/v1/groups", tags=["groups"], summary="All groups")
    async def get_groups() -> dict[str, Any]:
        return {"groups": [views.show_group(controller, group) for group in book.groups()]}

    @app.post("/v1/groups", tags=["groups"], status_code=201, summary="Create a group")
    async def post_group(body: GroupBody) -> dict[str, Any]:
        parameters = body.parameters.model_dump(exclude_none=True) if body.parameters else None
        group = book.create(
            GroupRequest(body.scheme, tuple(body.members), body.id, body.name, parameters, body.class_d)
        )
        await controller.tell_group("group_created", group)
        return views.show_group(controller, group)

    @app.get("/v1/groups/{group}", tags=["groups"], summary="One group and who takes part")
    async def get_group(group: GroupKey) -> dict[str, Any]:
        return views.show_group(controller, book.get(group))

    @app.delete("/v1/groups/{group}", tags=["groups"], status_code=204, summary="Delete a group")
    async def delete_group(group: GroupKey) -> None:
        await controller.tell_group("group_deleted", book.delete(group))

    @app.get("/v1/groups/{group}/members", tags=["groups"], summary="Members of a group")
    async def get_members(group: GroupKey) -> dict[str, Any]:
        return {"members": list(book.get(group).members)}

    @app.post("/v1/groups/{group}/members", tags=["groups"], summary="Add members")
    async def post_members(group: GroupKey, body: MembersBody) -> dict[str, Any]:
        changed = book.add(group, body.members)
        await controller.tell_group("group_changed", changed)
        return views.show_group(controller, changed)

    @app.put("/v1/groups/{group}/members", tags=["groups"], summary="Set the members")
    async def put_members(group: GroupKey, body: MembersBody) -> dict[str, Any]:
        changed = book.replace_members(group, body.members)
        await controller.tell_group("group_changed", changed)
        return views.show_group(controller, changed)

    @app.delete("/v1/groups/{group}/members/{host}", tags=["groups"], summary="Remove a member")
    async def delete_member(group: GroupKey, host: HostKey) -> dict[str, Any]:
        changed = book.remove(group, [host])
        await controller.tell_group("group_changed", changed)
        return views.show_group(controller, changed)


def _serve_plans(app: FastAPI, controller: Controller) -> None:
    finder = controller.pathfinder

    @app.get(
        "/v1/groups/{group}/plan",
        tags=["plans"],
        summary="Structure of a group, in the form of the group file",
    )
    async def get_group_plan(
        group: GroupKey,
        source: Annotated[
            str | None, Query(description="host that sends, by id or name; the lowest member if absent")
        ] = None,
    ) -> dict[str, Any]:
        found = controller.groups.get(group)
        sender = None if source is None else controller.find_host(source).id
        return controller.describe_group(found, sender)

    @app.get("/v1/routes", tags=["plans"], summary="Unicast routes, in the form of the routes file")
    async def get_routes(
        algorithm: Annotated[str | None, Query(description="the one in force if absent")] = None,
        src: Annotated[str | None, Query(description="only from this host")] = None,
        dst: Annotated[str | None, Query(description="only to this host")] = None,
    ) -> dict[str, Any]:
        wanted = {
            end: controller.find_host(key).id for end, key in (("src", src), ("dst", dst)) if key is not None
        }
        file = finder.routes_file(controller.topology(), algorithm)
        file["routes"] = [r for r in file["routes"] if all(r[end] == host for end, host in wanted.items())]
        return file

    @app.get("/v1/verify", tags=["plans"], summary="Are the routes in force free of deadlock?")
    async def get_verify() -> dict[str, Any]:
        return controller.verify()

    @app.post("/v1/verify", tags=["plans"], summary="Are these routes free of deadlock?")
    async def post_verify(body: VerifyBody) -> dict[str, Any]:
        try:
            topology = controller.topology() if body.topology is None else Topology.from_json(body.topology)
            routes = finder.routes_file(topology, None) if body.routes is None else body.routes
            return finder.verify_file(topology, routes)
        except TopologyError as error:
            raise RequestError(422, str(error)) from error


def _serve_watching(app: FastAPI, controller: Controller) -> None:
    @app.get("/v1/status", tags=["watching"], summary="The controller at a glance")
    async def get_status() -> dict[str, Any]:
        return views.show_status(controller, __version__)

    @app.get(
        "/v1/events",
        tags=["watching"],
        summary="What happens, as server-sent events",
        response_class=StreamingResponse,
    )
    async def get_events(
        after: Annotated[
            int | None, Query(description="first the kept events with a greater number", ge=0)
        ] = None,
        follow: Annotated[bool, Query(description="false: the kept events as JSON, and no more")] = True,
        last_event_id: Annotated[int | None, Header(description="as `after`; browsers send it")] = None,
    ) -> Response:
        start = after if after is not None else last_event_id
        if not follow:
            events = [event.to_json() for event in controller.events.history(start or 0)]
            return Response(json.dumps({"events": events}), media_type="application/json")
        return StreamingResponse(_stream_events(controller, start), media_type="text/event-stream")

    @app.get(
        "/v1/metrics", tags=["watching"], summary="Metrics for Prometheus", response_class=PlainTextResponse
    )
    async def get_metrics() -> Response:
        return Response(await render_metrics(controller), media_type="text/plain; version=0.0.4")


async def _stream_events(controller: Controller, after: int | None) -> AsyncIterator[str]:
    def encode(event: Any) -> str:
        return f"id: {event.number}\nevent: {event.kind}\ndata: {json.dumps(event.to_json())}\n\n"

    try:
        with controller.events.watch() as watcher:
            yield ": wormcast\n\n"
            for event in controller.events.history(after) if after is not None else []:
                yield encode(event)
            async for event in watcher:
                yield encode(event)
    except WatcherLimit:
        text = json.dumps(failures.describe("as many watch as may", bound=f"{WATCHERS_MAX} watchers"))
        yield f"event: error\ndata: {text}\n\n"
