"""Work gives way to a change of routes, for a bounded time, once."""

from __future__ import annotations

import asyncio
import time

from wormcast.reconcile.giving_way import GivingWay


def test_it_waits_for_quiet_but_not_for_ever_and_not_again() -> None:
    async def main() -> None:
        quiet = True
        way = GivingWay(lambda: quiet, most_s=0.2)
        await way.wait()

        quiet, began = False, time.monotonic()
        await way.wait()
        assert time.monotonic() - began >= 0.2
        # Still not quiet: it has given way already.
        again = asyncio.create_task(way.wait())
        await asyncio.sleep(0)
        assert again.done()

        quiet = True
        await way.wait()
        quiet = False
        waiting = asyncio.create_task(way.wait())
        await asyncio.sleep(0.02)
        assert not waiting.done()
        quiet = True
        async with asyncio.timeout(5.0):
            await waiting

    asyncio.run(main())
