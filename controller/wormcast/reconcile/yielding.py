"""Work that can wait for a moment, while routes change: hosts that were cut off wait for their new ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LOOK_AGAIN_S = 0.01


class Yielding:
    """Waits for quiet, and not again for as long as it lasts until the next: work that gives way is not given up."""

    def __init__(self, is_quiet: Callable[[], bool], most_s: float) -> None:
        self._is_quiet = is_quiet
        self._most_s = most_s
        self._busy_since: float | None = None

    async def wait(self) -> None:
        """Returns when it is quiet, or `most_s` after it was first found not to be."""
        while not self._is_quiet():
            now = time.monotonic()
            if self._busy_since is None:
                self._busy_since = now
            if now - self._busy_since >= self._most_s:
                return
            await asyncio.sleep(LOOK_AGAIN_S)
        self._busy_since = None
