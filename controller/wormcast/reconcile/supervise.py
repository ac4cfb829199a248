"""Background tasks that outlive their failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

LOG = logging.getLogger("wormcast.reconcile")

PAUSE_FIRST_S = 0.1
PAUSE_MAX_S = 5.0
"""Longest pause before a task that failed is started again."""
LIVED_S = 30.0
"""A task that lived so long has recovered: the next failure is reported and paused for as a first one."""


async def supervise(
    name: str, work: Callable[[], Awaitable[None]], note: Callable[[str, BaseException], None]
) -> None:
    """Runs `work` for ever. A failure ends nothing but itself: it is reported once, and the work begins again."""
    loop = asyncio.get_running_loop()
    pause_s, reported = PAUSE_FIRST_S, ""
    while True:
        began = loop.time()
        try:
            await work()
            error: BaseException = RuntimeError("it ended")
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as failure:  # a panic of the routing library is no Exception
            error = failure
        if loop.time() - began > LIVED_S:
            pause_s, reported = PAUSE_FIRST_S, ""
        if reported != repr(error):
            reported = repr(error)
            LOG.error("task %s failed and is started again", name, exc_info=error)
        note(name, error)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, PAUSE_MAX_S)
