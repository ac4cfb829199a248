"""A controller on an event loop of its own test, without switches unless given."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
from wormcast.api.app import create_app
from wormcast.network.ids import SwitchId
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.reconcile.controller import Controller
from wormcast.store.database import Database

from controller_lab.answers import Held

# Agents of tests register once and report nothing after; a slow machine must not take them away.
NEVER_S = 86400.0


@contextlib.asynccontextmanager
async def running(
    state: Path | None = None, agents: tuple[str, ...] = (), gone_after_s: float = NEVER_S
) -> AsyncIterator[Controller]:
    controller = Controller(Database(state), find_artifacts(), gone_after_s=gone_after_s)
    await controller.start(agents)
    try:
        yield controller
    finally:
        await controller.stop()


def take_for_up(controller: Controller, switch: SwitchId) -> None:
    """A switch without a session counts as up from now on, and so do its links: none is probed, so none is missed."""
    controller.monitor.connect(switch, 0.0)
    controller.monitor.suspend(switch)


@contextlib.asynccontextmanager
async def rest(controller: Controller) -> AsyncIterator[httpx.AsyncClient]:
    """Its REST API, without a socket. Every answer is held against its schema."""
    app = create_app(controller)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    held = Held(app.openapi())

    async def hold(answer: httpx.Response) -> None:
        await answer.aread()
        held.check(answer)

    hooks = {"response": [hold]}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://controller/v1", event_hooks=hooks
    ) as client:
        yield client


async def until(condition: Callable[[], object], seconds_max: float = 600.0) -> None:
    """Waits until the condition holds; fails the test if it never does."""
    try:
        async with asyncio.timeout(seconds_max):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"did not hold within {seconds_max:g} s") from None
