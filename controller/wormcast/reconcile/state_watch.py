"""Says when the state file is lost while it is in use; until somebody looks, nothing else would."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from wormcast.reconcile.events import EventLog

LOG = logging.getLogger("wormcast.reconcile")

INTERVAL_S = 1.0


async def watch_state(problem: Callable[[], str | None], events: EventLog) -> None:
    """For ever: logs once what is wrong with it."""
    reported = None
    while True:
        if (found := problem()) is not None and found != reported:
            LOG.error("%s", found)
            events.add("state_lost", time.time(), reason=found)
        reported = found
        await asyncio.sleep(INTERVAL_S)
