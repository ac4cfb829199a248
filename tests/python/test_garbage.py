"""Collections of all objects come at quiet times, and Python's settings stay."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref

from wormcast.reconcile.garbage import collect_at_quiet_times


class Cycle:
    """Two of them that hold each other are found by a collection alone."""

    def __init__(self) -> None:
        self.other: Cycle = self


def test_cycles_go_when_it_is_quiet_and_not_before() -> None:
    async def main() -> None:
        quiet = False
        task = asyncio.create_task(collect_at_quiet_times(lambda: quiet, interval_s=0.01))
        await asyncio.sleep(0.0)
        assert gc.get_threshold()[2] > 100
        cycle = Cycle()
        gc.collect()  # it is old now: collections of young objects leave it alone
        gone = weakref.ref(cycle)
        del cycle
        await asyncio.sleep(0.3)
        assert gone() is not None
        quiet = True
        async with asyncio.timeout(600):
            while gone() is not None:
                await asyncio.sleep(0.05)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    before = gc.get_threshold()
    asyncio.run(main())
    assert gc.get_threshold() == before
