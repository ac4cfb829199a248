"""Work on the event loop that must not be most of what the loop does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

QUICK_S = 0.005
"""Work that takes no longer is never put off."""
REST = 5.0
"""From the start of longer work until the next, as a multiple of its time."""


class Paced:
    """Does something at once, or, where that takes long, when the others had their turn: once for all calls until then."""

    def __init__(self, work: Callable[[], object], rest: float = REST) -> None:
        self._work = work
        self._rest = rest
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._after = 0.0

    def call(self, after_s: float = 0.0) -> None:
        """Has it done, in so many seconds at the earliest unless another call wants it sooner."""
        now = time.monotonic()
        due = max(now + after_s, self._after)
        if self._timer is not None and self._due <= due:
            return
        self.cancel()
        if due > now:
            self._due = due
            self._timer = asyncio.get_running_loop().call_later(due - now, self._do)
        else:
            self._do()

    def cancel(self) -> None:
        """Drops what was put off."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _do(self) -> None:
        self._timer = None
        began = time.monotonic()
        self._work()
        took_s = time.monotonic() - began
        self._after = began + self._rest * took_s if took_s > QUICK_S else 0.0
