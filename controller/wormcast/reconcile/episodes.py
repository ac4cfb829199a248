"""What is reported once, not each time it happens. Pure; time is an argument."""

from __future__ import annotations

from collections.abc import Hashable

QUIET_S = 60.0
"""What has not happened for so long is news again."""
KEYS_MAX = 1024
"""Of more, those that happened longest ago are news again."""


class Episodes:
    def __init__(self) -> None:
        self._last: dict[Hashable, float] = {}

    def is_news(self, what: Hashable, now: float) -> bool:
        """It happens now. Whether that is to be reported."""
        before = self._last.pop(what, float("-inf"))
        self._last[what] = now
        if len(self._last) > KEYS_MAX:
            del self._last[next(iter(self._last))]
        return now - before >= QUIET_S
