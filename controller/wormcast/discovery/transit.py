"""Which hosts are too busy to re-inject worms of others. Pure; time is an argument.

An agent counts the worms in transit that found its buffer full. When the count has grown in `BUSY_REPORTS`
reports in a row, which come about once a second, the host is busy and routes avoid it. It is used again when
the count has stood still for `CALM_S`. So a burst moves no route, and a host changes twice in `CALM_S` at most.
"""

from __future__ import annotations

from collections.abc import Mapping

BUSY_REPORTS = 3
CALM_S = 30.0
FULL_COUNTERS = ("transit.spilled", "drops.transit_full")
"""What an agent counts when a worm in transit finds its buffer full."""


class TransitLoad:
    """What one agent's reports say of its worms in transit."""

    def __init__(self) -> None:
        self.busy = False
        self._full: int | None = None
        self._reports = 0
        self._full_at = float("-inf")

    def take_report(self, counters: Mapping[tuple[str, int], int], now: float) -> bool:
        """The agent's counters by name and group. True if `busy` has changed."""
        full = sum(counters.get((name, 0), 0) for name in FULL_COUNTERS)
        grown = self._full is not None and full > self._full  # an agent that starts anew counts from 0
        self._full = full
        self._reports = self._reports + 1 if grown else 0
        if grown:
            self._full_at = now
        before = self.busy
        self.busy = self._reports >= BUSY_REPORTS or (before and now < self._full_at + CALM_S)
        return self.busy != before
