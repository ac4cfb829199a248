"""The controller's clock: the time it has lived through.

A controller that was stopped, or got no processor for seconds, heard nobody meanwhile. That time is
nobody else's silence, so it does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable

LATE_MAX_S = 1.0
"""Longest time between two readings that counts whole; the controller reads its clock four times a second at
least. Of a longer one so much counts."""


class LivedClock:
    """A monotonic clock without the pauses of its process. It has to be read often."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._read_at = monotonic()
        self._lived_s = 0.0
        self.paused_s = 0.0
        """Seconds that did not count."""

    def now(self) -> float:
        """Seconds lived since the clock was made."""
        at = self._monotonic()
        passed_s = at - self._read_at
        counted_s = min(passed_s, LATE_MAX_S)
        self._read_at = at
        self._lived_s += counted_s
        self.paused_s += passed_s - counted_s
        return self._lived_s
