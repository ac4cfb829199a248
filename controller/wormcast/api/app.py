"""The REST API: `create_app(controller)`."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import Body, FastAPI, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.requests import ClientDisconnect

from wormcast import __version__
from wormcast.api import failures, openapi, views
from wormcast.api.body_limit import FILE_BYTES_MAX, BodyLimit
from wormcast.api.counters import show_counters
from wormcast.api.host_header import HostCheck
from wormcast.api.json_route import CONTENT_TYPE, JsonRoute, check_kind
from wormcast.api.lag import serve_lag
from wormcast.api.metrics import render_metrics
from wormcast.api.models import (
    ErrorAnswer,
    GroupKeysBody,
    HostBody,
    MembersBody,
    OneOrMoreGroups,
    OneOrMoreSwitches,
    PlanBody,
    RoutingBody,
    SwitchesBody,
    VerifyBody,
    read_grid,
    read_routing,
)
from wormcast.api.plan_requests import (
    ask_change,
    ask_group_file,
    ask_network,
    ask_routes,
    routes_in_force,
    verify_in_force,
)
from wormcast.guard.routes import serve_guard
from wormcast.metrics_page import MEDIA_TYPE
from wormcast.network.group_body import GroupBody, GroupRateBody
from wormcast.network.groups import Group
from wormcast.network.ids import SwitchId
from wormcast.offload.pool import WorkerPool
from wormcast.reconcile.chip_ports import read_device_ports
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError, unknown
from wormcast.reconcile.events import WATCHERS_MAX, WatcherLimit
from wormcast.reconcile.port_sources import read_interfaces
from wormcast.reconcile.switch_address import refuse_paths
from wormcast.store.database import SwitchSpec
from wormcast.trace.routes import serve_traces
from wormcast.transfers.routes import serve_transfers
from wormcast.wormhole.routes import serve_switching

DESCRIPTION = """Topology, hosts and groups of one Wormcast fabric.

Hosts and groups are named by id or by name. Every failure answers
`{"error": {"code", "message", "line", "column", and "value", "bound" or "choices"}}` with a
status of 400 or above.

JSON is read strictly: no NaN, no field twice, no half characters, integers of up to 32 digits, up to 64 levels. It is
declared as such (curl: `-H 'content-type: application/json'`).
"""

PIECE_BYTES = 1 << 16
GROUPS_AT_ONCE = 64
"""Groups shown before other requests and probes get their turn."""

Wait = Annotated[
    bool | None,
    Query(
        description="true: answer when the plan has been handed to the agents, 2 s at most; false: at once; "
        "absent: as true, but at once in a burst: more than 8 changes within a second, or requests that have waited for "
        "2 s of the last 4. `takes_part` of the answer is true of members in the plan in force at that moment"
    ),
]
GroupKey = Annotated[str, Path(description="group id or name")]
HostKey = Annotated[str, Path(description="host id or name")]


OPENAPI_PATH = "/v1/openapi.json"
VERIFY_PATH = "/v1/verify"
PLAN_PATH = "/v1/plan"

_REFUSALS = {
    400: "not JSON; `line` and `column` say where",
    403: "not allowed from where the client is, or to a name that may be anybody's: REST answers to addresses, names "
    "without a dot, the name of its machine and those of --allow-host",
    404: "unknown",
    405: "not with this method",
    408: "the client was too slow",
    409: "in conflict with what is there",
    413: "too large",
    415: "not declared as JSON in UTF-8",
    422: "out of bounds",
    503: "too much to do; Retry-After says when to try again",
    504: "not done in time",
    507: "no room, or the state file cannot be written",
}


def create_app(
    controller: Controller, pool: WorkerPool | None = None, allowed_hosts: Sequence[str] = ()
) -> FastAPI:
    """The application; the controller must run on the same event loop. What takes long runs in `pool`. It answers to
    `allowed_hosts` beside what `HostCheck` knows."""
    app = FastAPI(
        title="Wormcast",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=OPENAPI_PATH,
        docs_url=None,  # its pages come from elsewhere
        redoc_url=None,
        responses={
            status: {"model": ErrorAnswer, "description": meaning} for status, meaning in _REFUSALS.items()
        },
    )
    app.router.route_class = JsonRoute
    failures.install(app)
    app.add_middleware(BodyLimit, by_path={VERIFY_PATH: FILE_BYTES_MAX, PLAN_PATH: FILE_BYTES_MAX})
    app.add_middleware(HostCheck, names=allowed_hosts)
    _serve_network(app, controller)
    serve_guard(app, controller)
    serve_switching(app, controller)
    _serve_groups(app, controller)
    pool = pool or WorkerPool()
    _serve_plans(app, controller, pool)
    _serve_watching(app, controller, pool)
    serve_traces(app, controller)
    serve_lag(app, controller)
    serve_transfers(app, controller)
    _serve_index(app)
    openapi.describe(app)
    return app


def _serve_index(app: FastAPI) -> None:
    @app.get("/v1", tags=["watching"], summary="Where the API is: links to all that can be read")
    async def get_index() -> dict[str, Any]:
        readable = [path for path, methods in app.openapi()["paths"].items() if "get" in methods]
        named = {path.removeprefix("/v1/"): path for path in sorted(readable) if path != "/v1"}
        return {
            "version": __version__,
            "description": OPENAPI_PATH,
            "links": {name: path for name, path in named.items() if "{" not in path},
            "templates": {name: path for name, path in named.items() if "{" in path},
        }


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
    async def post_switches(body: OneOrMoreSwitches, request: Request) -> dict[str, Any]:
        """They are kept across restarts. Only clients on the same machine may name a path, because the controller opens
        it."""
        bodies = body.switches if isinstance(body, SwitchesBody) else [body]
        specs = [
            SwitchSpec(
                SwitchId(b.id),
                b.address,
                b.device_id,
                b.ports,
                read_interfaces(b.interfaces or {}),
                b.metrics,
                read_device_ports(b.device_ports or {}),
            )
            for b in bodies
        ]
        if not _is_local(request):
            refuse_paths(specs)
        grid = body.grid if isinstance(body, SwitchesBody) else None
        controller.put_switches(specs, read_grid(grid) if grid else None)
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

    @app.post("/v1/hosts", tags=["network"], status_code=201, summary="Declare the switch port of a host")
    async def post_host(body: HostBody) -> dict[str, Any]:
        record = controller.declare_host(body.name, body.switch, body.port, body.id)
        return views.show_host(controller, record)

    @app.get("/v1/hosts/{host}", tags=["network"], summary="One host")
    async def get_host(host: HostKey) -> dict[str, Any]:
        record = controller.find_host(host)
        return {
            **views.show_host(controller, record),
            "routes_used": views.show_route_uses(controller, record.id),
        }

    @app.delete("/v1/hosts/{host}", tags=["network"], status_code=204, summary="Forget a host without agent")
    async def delete_host(host: HostKey) -> None:
        controller.forget_host(host)


def _serve_groups(app: FastAPI, controller: Controller) -> None:
    registry = controller.groups

    @app.get("/v1/groups", tags=["groups"], summary="All groups", response_class=StreamingResponse)
    async def get_groups() -> Response:
        return StreamingResponse(_list_groups(controller), media_type=CONTENT_TYPE)

    @app.post(
        "/v1/groups", tags=["groups"], status_code=201, summary="Create one group or several: all or none"
    )
    async def post_groups(body: OneOrMoreGroups, wait: Wait = None) -> Response:
        """One group is answered by that group, `{"groups": […]}` or a bare list by `{"groups": […]}`. An error says which
        group it is about."""
        bodies = [body] if isinstance(body, GroupBody) else body if isinstance(body, list) else body.groups
        made = registry.create_all(bodies)
        await controller.announce_groups("group_created", made, wait)
        if isinstance(body, GroupBody):
            return JSONResponse(views.show_group(controller, made[0]), 201)
        return StreamingResponse(_list_groups(controller, made), 201, media_type=CONTENT_TYPE)

    @app.put("/v1/groups", tags=["groups"], summary="The group of some members, made if there is none")
    async def put_groups(body: MembersBody, wait: Wait = None) -> dict[str, Any]:
        """The group of these members and no others that is named by them, such as `to-0-1-5`. The same members give the
        same group, whoever asks. It has scheme `auto`."""
        group, is_new = registry.of_members(body.members)
        if is_new:
            await controller.announce_groups("group_created", [group], wait)
        return views.show_group(controller, group)

    @app.delete("/v1/groups", tags=["groups"], summary="Delete several groups: all or none")
    async def delete_groups(body: GroupKeysBody, wait: Wait = None) -> dict[str, Any]:
        gone = registry.delete_all(body.groups)
        await controller.announce_groups("group_deleted", gone, wait)
        return {"deleted": [group.id for group in gone]}

    @app.get("/v1/groups/{group}", tags=["groups"], summary="One group and who takes part")
    async def get_group(group: GroupKey) -> dict[str, Any]:
        return views.show_group(controller, registry.get(group))

    @app.delete("/v1/groups/{group}", tags=["groups"], status_code=204, summary="Delete a group")
    async def delete_group(group: GroupKey, wait: Wait = None) -> None:
        await controller.announce_groups("group_deleted", registry.delete_all([group]), wait)

    @app.put("/v1/groups/{group}/rate", tags=["groups"], summary="Bound what a host sends to a group")
    async def put_rate(group: GroupKey, body: GroupRateBody, wait: Wait = None) -> dict[str, Any]:
        """Messages under way go on at the new rate."""
        return await tell(registry.set_rate(group, body.rate_bits), wait)

    @app.get("/v1/groups/{group}/members", tags=["groups"], summary="Members of a group")
    async def get_members(group: GroupKey) -> dict[str, Any]:
        return {"members": list(registry.get(group).members)}

    @app.post("/v1/groups/{group}/members", tags=["groups"], summary="Add members")
    async def post_members(group: GroupKey, body: MembersBody, wait: Wait = None) -> dict[str, Any]:
        return await tell(registry.add(group, body.members), wait)

    @app.put("/v1/groups/{group}/members", tags=["groups"], summary="Set the members")
    async def put_members(group: GroupKey, body: MembersBody, wait: Wait = None) -> dict[str, Any]:
        return await tell(registry.replace_members(group, body.members), wait)

    @app.delete("/v1/groups/{group}/members", tags=["groups"], summary="Remove members: all or none")
    async def delete_members(group: GroupKey, body: MembersBody, wait: Wait = None) -> dict[str, Any]:
        return await tell(registry.remove(group, body.members), wait)

    @app.delete("/v1/groups/{group}/members/{host}", tags=["groups"], summary="Remove a member")
    async def delete_member(group: GroupKey, host: HostKey, wait: Wait = None) -> dict[str, Any]:
        return await tell(registry.remove(group, [host]), wait)

    async def tell(changed: Group, wait: bool | None) -> dict[str, Any]:
        await controller.announce_groups("group_changed", [changed], wait)
        return views.show_group(controller, changed)


async def _list_groups(controller: Controller, groups: Sequence[Group] | None = None) -> AsyncIterator[str]:
    """The given groups, or all there are at the beginning, a few at a time."""
    shown = controller.groups.groups() if groups is None else groups
    yield '{"groups": ['
    for first in range(0, len(shown), GROUPS_AT_ONCE):
        part = [views.show_group(controller, group) for group in shown[first : first + GROUPS_AT_ONCE]]
        yield (", " if first else "") + json.dumps(part)[1:-1]
        await asyncio.sleep(0)
    yield "]}"


def _is_local(request: Request) -> bool:
    """Whether the client runs on this machine: on a Unix socket it has no address."""
    if request.client is None or not request.client.host:
        return True
    try:
        return ipaddress.ip_address(request.client.host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _serve_plans(app: FastAPI, controller: Controller, pool: WorkerPool) -> None:
    async def offload(request: Request, job: str, context: dict[str, Any]) -> Response:
        with pool.admit():
            try:
                body = await request.body() if request.method == "POST" else b""
            except ClientDisconnect:
                raise RequestError(408, "the client went away") from None
            if body:
                check_kind(request.headers)
            return _file(await _while_wanted(request, pool.run(job, context, body)))

    @app.get(
        "/v1/groups/{group}/plan",
        tags=["plans"],
        summary="Structure of a group, in the form of the group file",
    )
    async def get_group_plan(
        request: Request,
        group: GroupKey,
        source: Annotated[
            str | None, Query(description="host that sends, by id or name; the lowest member if absent")
        ] = None,
    ) -> Response:
        found = controller.groups.get(group)
        sender = None if source is None else controller.find_host(source).id
        return await offload(request, "group_file", ask_group_file(controller, found, sender))

    @app.get("/v1/routes", tags=["plans"], summary="Unicast routes, in the form of the routes file")
    async def get_routes(
        request: Request,
        algorithm: Annotated[str | None, Query(description="the one in force if absent")] = None,
        src: Annotated[str | None, Query(description="only from this host")] = None,
        dst: Annotated[str | None, Query(description="only to this host")] = None,
    ) -> Response:
        """Those in force are what agents have, so hosts without an agent have none. Their `messages` say how many took each
        route, as of the agents' last reports, about one a second; `uses_unknown` names hosts that have not reported."""
        ends = {
            end: None if key is None else controller.find_host(key).id
            for end, key in (("src", src), ("dst", dst))
        }
        if algorithm is None:
            return _file(await routes_in_force(controller, ends["src"], ends["dst"]))
        return await offload(request, "routes", {**ask_routes(controller, algorithm), **ends})

    @app.get("/v1/costs", tags=["plans"], summary="What scheme auto goes by in this fabric")
    async def get_costs() -> Response:
        return _file(controller.costs.encode())

    @app.put("/v1/costs", tags=["plans"], summary="Choose by other costs")
    async def put_costs(
        body: Annotated[dict[str, Any], Body(description="a costs file: the set, and what differs from it")],
    ) -> Response:
        """Kept across restarts. `wormcast costs measure` finds costs of the running fabric and puts them."""
        await controller.put_costs(json.dumps(body))
        return _file(controller.costs.encode())

    @app.get("/v1/routing", tags=["plans"], summary="Which unicast routes are wanted, and what came of it")
    async def get_routing() -> dict[str, Any]:
        return views.show_routing(controller)

    @app.put(
        "/v1/routing",
        tags=["plans"],
        summary="Use other unicast routes, or say what they would bring",
        response_model=None,
    )
    async def put_routing(
        body: RoutingBody,
        request: Request,
        dry_run: Annotated[
            bool, Query(description="true: change nothing; loads before and after, steps, certificate")
        ] = False,
    ) -> dict[str, Any] | Response:
        """Answered when the new plan has been handed to the agents, or 2 s after it was made. Kept across restarts, until
        --algorithm, --root or --balanced of the controller replace it. With `dry_run` the answer has figures of the routes
        before and after, the `gain` (by what share the largest load is lower), the steps and a certificate."""
        wanted = read_routing(body)
        controller.check_routing(wanted)
        if dry_run:
            context = ask_change(controller, wanted)
            with pool.admit():
                return _file(await _while_wanted(request, pool.run("change_routing", context, b"")))
        await controller.put_routing(wanted)
        return views.show_routing(controller)

    @app.get(VERIFY_PATH, tags=["plans"], summary="Are the routes in force free of deadlock?")
    async def get_verify() -> Response:
        return _file(await verify_in_force(controller))

    @app.post(
        VERIFY_PATH,
        tags=["plans"],
        summary="Are these routes free of deadlock?",
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {CONTENT_TYPE: {"schema": openapi.reference(VerifyBody)}},
            }
        },
    )
    async def post_verify(request: Request) -> Response:
        return await offload(request, "verify_body", ask_network(controller))

    @app.post(
        PLAN_PATH,
        tags=["plans"],
        summary="What must switches hold that another controller programs?",
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {CONTENT_TYPE: {"schema": openapi.reference(PlanBody)}},
            }
        },
    )
    async def post_plan(request: Request) -> Response:
        """Nothing of it is kept, and switches of this controller do not change."""
        return await offload(request, "plan_switches", ask_network(controller))


async def _while_wanted(request: Request, work: Coroutine[Any, Any, bytes]) -> bytes:
    """The result of some work, which is ended if the client goes away."""

    async def wait_gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, gone = asyncio.create_task(work), asyncio.create_task(wait_gone())
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise RequestError(408, "the client went away")
        return working.result()
    finally:
        for task in (working, gone):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


def _file(content: bytes) -> Response:
    """A file in pieces, so that a large one does not go out in one go."""
    if len(content) <= PIECE_BYTES:
        return Response(content, media_type=CONTENT_TYPE)

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(content), PIECE_BYTES):
            yield content[at : at + PIECE_BYTES]

    return StreamingResponse(pieces(), media_type=CONTENT_TYPE)


def _serve_watching(app: FastAPI, controller: Controller, pool: WorkerPool) -> None:
    @app.get("/v1/igmp", tags=["watching"], summary="Addresses that hosts want, as they said by IGMP")
    async def get_igmp() -> dict[str, Any]:
        return {
            "members": [
                {"group": str(address), "switch": switch, "port": port}
                for address, (switch, port) in controller.packets.igmp.members(controller.clock.now())
            ]
        }

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
            int | None, Query(description="first the kept events with a number above this", ge=0)
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
        return Response(await render_metrics(controller, pool), media_type=MEDIA_TYPE)


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
        text = json.dumps(failures.describe("too many watchers", bound=f"{WATCHERS_MAX} watchers"))
        yield f"event: error\ndata: {text}\n\n"
