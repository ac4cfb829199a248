"""How fast requests change groups."""

from __future__ import annotations

from collections import deque

CHANGES_CALM = 8
WINDOW_S = 1.0


class ChangeRate:
    """Requests wait for the plan that follows from them, at most `CHANGES_CALM` of them in `WINDOW_S`: a burst of
    changes would wait for a plan each, where one plan serves them all."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=CHANGES_CALM)

    def calm(self, now: float) -> bool:
        """Counts a change; whether it may wait for its plan."""
        calm = len(self._times) < CHANGES_CALM or now - self._times[0] > WINDOW_S
        self._times.append(now)
        return calm
