"""REST: files that hosts send."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Path, Query

from wormcast.network.ids import HostId
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError, as_number
from wormcast.transfers.registry import Transfer


def serve_transfers(app: FastAPI, controller: Controller) -> None:
    """GET /v1/transfers and /v1/transfers/{number}."""

    @app.get("/v1/transfers", tags=["watching"], summary="Files that hosts send, under way and ended")
    async def get_transfers(
        after: Annotated[int, Query(description="only those with a number above this", ge=0)] = 0,
        group: Annotated[str | None, Query(description="only to this group, by id or name")] = None,
        origin: Annotated[str | None, Query(description="only from this host, by id or name")] = None,
    ) -> dict[str, Any]:
        """The last 1,000 are kept, until the controller ends. One that is under way keeps its number when it ends; an event
        `transfer` tells of that."""
        to = None if group is None else _find_group(controller, group)
        sender = None if origin is None else _find_origin(controller, origin)
        shown = [
            controller.transfers.show(record)
            for record in controller.transfers
            if record.number > after
            and (to is None or to in (record.group, record.group_name))
            and sender in (None, record.origin)
        ]
        return {"transfers": shown, "not_recorded": controller.transfers.missing()}

    @app.get("/v1/transfers/{number}", tags=["watching"], summary="A transfer, with its members")
    async def get_transfer(number: Annotated[int, Path(ge=0)]) -> dict[str, Any]:
        record: Transfer = controller.transfers.get(number)
        return {**controller.transfers.show(record), "members": record.members()}


def _find_group(controller: Controller, key: str) -> int | str:
    """A group that is there, or that a file was sent to. Raises `RequestError`."""
    number = as_number(key)
    wanted = key if number is None else number
    if not any(wanted in (record.group, record.group_name) for record in controller.transfers):
        return controller.groups.get(key).id
    return wanted


def _find_origin(controller: Controller, key: str) -> HostId:
    """A host that is known, or that has sent a file. Raises `RequestError`."""
    number = as_number(key)
    try:
        return controller.find_host(key).id
    except RequestError:
        found = [record.origin for record in controller.transfers if record.origin == number]
        if not found:
            raise
        return found[0]
