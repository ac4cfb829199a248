"""Who waits for a controller by its events is woken by the next one, and by a controller that starts."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from controller_lab.running import running
from controller_lab.serving import serving
from wormcast.mininet.happenings import Happenings

NEVER_S = 600.0
"""Longer than a test may take: a wait that ends was ended by what it waits for."""


def test_a_wait_ends_when_something_happens(tmp_path: Path) -> None:
    happenings = Happenings(tmp_path / "rest.sock")

    async def wait() -> None:
        await asyncio.to_thread(happenings.wait, NEVER_S)

    async def main() -> None:
        waiting = asyncio.create_task(wait())  # before there is a controller
        async with running() as controller, serving(controller, tmp_path / "rest.sock"):
            await waiting
            waiting = asyncio.create_task(wait())
            await asyncio.sleep(0)
            controller.events.add("routing_changed", time.time())
            await waiting
            happenings.stop()  # else the server would wait for the connection

    asyncio.run(main())


def test_without_a_controller_it_waits_so_long(tmp_path: Path) -> None:
    happenings = Happenings(tmp_path / "nobody.sock")
    begun = time.monotonic()
    happenings.wait(0.2)
    assert time.monotonic() - begun >= 0.2
    happenings.stop()
