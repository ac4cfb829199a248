"""Paced work: at once, later, or once for all calls until its turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from wormcast.reconcile.pacing import QUICK_S, Paced


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 600.0))


def test_what_may_wait_is_done_later_and_sooner_where_another_call_wants_it() -> None:
    async def main() -> None:
        done: list[float] = []
        work = Paced(lambda: done.append(time.monotonic()))
        began = time.monotonic()
        work.call(0.2)
        work.call(5.0)
        assert done == []
        while not done:
            await asyncio.sleep(0.01)
        assert done[0] - began >= 0.199
        work.call(60.0)
        work.call()
        assert len(done) == 2
        await asyncio.sleep(0.05)
        assert len(done) == 2
        work.call(0.05)
        work.cancel()
        await asyncio.sleep(0.1)
        assert len(done) == 2

    run(main())


def test_long_work_rests_and_then_is_done_once_for_all_calls() -> None:
    async def main() -> None:
        done: list[float] = []

        def long() -> None:
            done.append(time.monotonic())
            time.sleep(4 * QUICK_S)

        work = Paced(long, rest=5.0)
        work.call()
        work.call()
        work.call()
        assert len(done) == 1
        while len(done) < 2:
            await asyncio.sleep(0.005)
        assert done[1] - done[0] >= 5.0 * 4 * QUICK_S - 0.001

    run(main())
