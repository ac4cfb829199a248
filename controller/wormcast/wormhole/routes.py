"""REST of the way in which switches pass worms on."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Literal

from fastapi import FastAPI
from pydantic import ConfigDict, Field

from wormcast.network.body import Body
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.reconciler import SETTLE_TIMEOUT_S
from wormcast.reconcile.route_steps import LOOK_AGAIN_S
from wormcast.wormhole.switching import PLAIN, WORMHOLE, Switching


class SwitchingBody(Body):
    """How all switches pass worms on."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"mode": "wormhole", "scheme": "flush"}]}
    )
    mode: Annotated[
        Literal["packet", "wormhole"],
        Field(
            description="packet: each frame as soon as it can; wormhole: a worm has its channels for itself"
        ),
    ]
    scheme: Annotated[
        Literal["plain", "flush", "interrupt"] | None,
        Field(
            description="of wormhole mode, plain if absent: worms wait; or flush: unicast gives way to a multicast that "
            "waits elsewhere; or interrupt: a multicast that waits gives up all that it has, and goes on later (WORM §3). On "
            "Tofino 2 plain alone, of UNICAST worms"
        ),
    ] = None


def serve_switching(app: FastAPI, controller: Controller) -> None:
    @app.get("/v1/switching", tags=["plans"], summary="How switches pass worms on")
    async def get_switching() -> dict[str, Any]:
        return _show(controller)

    @app.put("/v1/switching", tags=["plans"], summary="Set packet mode, or wormhole mode with a scheme")
    async def put_switching(body: SwitchingBody) -> dict[str, Any]:
        """Kept across restarts. Wormhole mode is refused on Tofino, and on Tofino 2 where ports of a switch are in several
        pipes."""
        scheme = PLAIN if body.mode == WORMHOLE and body.scheme is None else body.scheme
        try:
            switching = Switching(body.mode, scheme)
        except ValueError as error:
            raise RequestError(422, str(error), value=scheme) from None
        if controller.switching.set(switching):
            controller.events.add("switching_changed", time.time(), **switching.to_json())
        await controller.reconciler.settle()
        until = time.monotonic() + SETTLE_TIMEOUT_S
        while not (is_settled := controller.switching.is_settled) and time.monotonic() < until:
            await asyncio.sleep(LOOK_AGAIN_S)
        if is_settled:
            await controller.reconciler.settle()
        return _show(controller)


def _show(controller: Controller) -> dict[str, Any]:
    """How switches pass worms on, what agents send, and what worms may run into with the routes wanted."""
    switching = controller.switching.switching
    plans = controller.planning.state.agents.values()
    unicast_alone = controller.artifacts.holds_unicast_alone
    return {
        **switching.to_json(),
        "train_frames": max((plan.unicast_train_frames for plan in plans), default=1),
        "tree_train_frames": max((plan.train_frames for plan in plans), default=1),
        "settled": controller.switching.is_settled,
        "warnings": switching.warnings(controller.routing.algorithm, unicast_alone),
    }
