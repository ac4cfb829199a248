"""REST of the guard: what hosts may send."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Path
from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr

from wormcast.api import views
from wormcast.api.models import GROUPS_MAX
from wormcast.guard.state import RATE_BOUND
from wormcast.network.body import Body
from wormcast.reconcile.controller import Controller


class GuardBody(Body):
    """What the guard of all switches is to do; what is absent stays."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"on": True, "closed": [7]}]})
    on: Annotated[
        StrictBool | None, Field(description="whether switches refuse worms that no plan gives a host")
    ] = None
    closed: Annotated[
        list[StrictInt | StrictStr] | None,
        Field(
            max_length=GROUPS_MAX,
            description="groups with an IP multicast address to which members alone may send, by id or name. "
            "Groups of scheme table without an address are closed in any case",
        ),
    ] = None


class RateBody(Body):
    """How fast a host may send."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"bps": 100_000_000}]})
    bps: Annotated[StrictInt | None, Field(description=f"{RATE_BOUND}; null: any rate")]


class PortBody(Body):
    """What a port leads to."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"leads_to": "link"}]})
    leads_to: Annotated[
        Literal["link", "host"] | None,
        Field(
            description="link: another switch, although a host is known there; host: never another switch; "
            "null: what is found"
        ),
    ]


def serve_guard(app: FastAPI, controller: Controller) -> None:
    @app.get("/v1/guard", tags=["network"], summary="What the guard of the switches refuses")
    async def get_guard() -> dict[str, Any]:
        return _show(controller)

    @app.put("/v1/guard", tags=["network"], summary="Turn the guard on or off, and close groups")
    async def put_guard(body: GuardBody) -> dict[str, Any]:
        """Kept across restarts."""
        controller.guard.set(body.on, body.closed)
        await _apply_guard(controller)
        return _show(controller)

    @app.put("/v1/hosts/{host}/rate", tags=["network"], summary="Say how fast a host may send")
    async def put_rate(
        host: Annotated[str, Path(description="host id or name")], body: RateBody
    ) -> dict[str, Any]:
        """`rate_kept_by` of the answer says who holds the host to it: `agent` paces what it sends, `switch` drops what is
        above while the guard is on; empty: nobody does. Worms of others are not routed through a host with a rate."""
        record = controller.find_host(host)
        controller.guard.limit(record.id, body.bps)
        await _apply_guard(controller)
        return views.show_host(controller, record)

    @app.put("/v1/switches/{switch}/ports/{port}", tags=["network"], summary="Say what a port leads to")
    async def put_port(switch: int, port: int, body: PortBody) -> dict[str, Any]:
        """It holds with the guard off too. `/v1/guard` lists these ports."""
        controller.guard.set_port(*controller.find_port(switch, port), body.leads_to)
        controller.events.add("port_told", time.time(), switch=switch, port=port, leads_to=body.leads_to)
        controller.network.notice()
        return {"switch": switch, "port": port, "leads_to": body.leads_to}


async def _apply_guard(controller: Controller) -> None:
    guard = controller.guard.guard
    controller.events.add(
        "guard_changed", time.time(), on=guard.on, closed=sorted(guard.closed), limited=sorted(guard.rates)
    )
    await controller.reconciler.settle()


def _show(controller: Controller) -> dict[str, Any]:
    """What is asked of the guard."""
    return controller.guard.guard.to_json()
