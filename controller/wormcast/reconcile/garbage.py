"""Python's collection of cycles of objects, at quiet times.

With 256 agents it stopped the program for 0.06 to 0.16 s. Python begins one after so many new objects, and these come
where a plan is made: when a link has failed and agents wait for their new routes.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

from wormcast.reconcile.yielding import Yielding

INTERVAL_S = 30.0
"""Between collections of all objects."""
WAIT_MAX_S = 30.0
"""A collection waits so long for a quiet time at most."""
YOUNG_COLLECTIONS_MAX = 1000
"""Collections of young objects after which Python collects all, should the time never come."""


async def collect_at_quiet_times(is_quiet: Callable[[], bool], interval_s: float = INTERVAL_S) -> None:
    """Collects for ever; leaves Python's settings as it found them."""
    before, way = gc.get_threshold(), Yielding(is_quiet, WAIT_MAX_S)
    gc.set_threshold(before[0], before[1], YOUNG_COLLECTIONS_MAX)
    try:
        while True:
            await asyncio.sleep(interval_s)
            await way.wait()
            gc.collect()
    finally:
        gc.set_threshold(*before)
