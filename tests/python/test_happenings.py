"""Who waits for a controller is woken by its next event and by its start, and does not take the start for an answer."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from controller_lab.running import running
from controller_lab.serving import serving
from wormcast.mininet import fabric as fabrics
from wormcast.mininet import topologies
from wormcast.mininet.happenings import Happenings

NEVER_S = 600.0
"""Longer than a test may take: a wait that ends was ended by what it waits for."""


def test_a_wait_ends_when_something_happens(tmp_path: Path) -> None:
    async def main() -> None:
        with Happenings(tmp_path / "rest.sock") as happenings:
            waiting = asyncio.create_task(asyncio.to_thread(happenings.wait, NEVER_S))
            # Before there is a controller.
            await asyncio.sleep(0)
            async with running() as controller, serving(controller, tmp_path / "rest.sock"):
                await waiting
                waiting = asyncio.create_task(asyncio.to_thread(happenings.wait, NEVER_S))
                await asyncio.sleep(0)
                controller.events.add("routing_changed", time.time())
                await waiting
                happenings.__exit__()  # else the server would wait for the connection

    asyncio.run(main())


def test_nobody_is_followed_when_nobody_waits(tmp_path: Path) -> None:
    async def main() -> None:
        async with running() as controller, serving(controller, tmp_path / "rest.sock"):
            with Happenings(tmp_path / "rest.sock") as happenings:
                await asyncio.to_thread(happenings.wait, NEVER_S)
                assert controller.events._queues
            while controller.events._queues:
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_without_a_controller_it_waits_so_long(tmp_path: Path) -> None:
    begun = time.monotonic()
    with Happenings(tmp_path / "nobody.sock") as happenings:
        happenings.wait(0.2)
    assert time.monotonic() - begun >= 0.2


def test_the_start_of_the_controller_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took the controller 4 s to open its socket and 3 ms to answer: who waits rests for milliseconds."""
    clock = SimpleNamespace(now=0.0, rested=[])

    def sleep(seconds: float) -> None:
        clock.now += seconds
        clock.rested.append(seconds)

    def request(*_: object, **__: object) -> httpx.Response:
        if clock.now < 4.0:
            raise httpx.ConnectError("it starts")
        clock.now += 0.003
        return httpx.Response(200, json={})

    def wait(_: Happenings, seconds_max: float) -> None:
        sleep(seconds_max)

    fabric: Any = fabrics.Fabric(fabrics.Options(topologies.load_topology("line:2")), tmp_path)
    monkeypatch.setattr(fabrics, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))
    monkeypatch.setattr(Happenings, "wait", wait)
    monkeypatch.setattr(fabric, "controller", object())
    monkeypatch.setattr(fabric, "check_alive", lambda: None)
    monkeypatch.setattr(fabric, "api", SimpleNamespace(request=request))
    looks = iter(fabric._poll(NEVER_S))
    next(looks)
    fabric.get("status")
    clock.rested.clear()
    next(looks)
    assert sum(clock.rested) < 0.2
