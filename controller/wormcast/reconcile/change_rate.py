"""How fast requests change groups."""

from __future__ import annotations

from collections import deque

CHANGES_CALM = 8
WINDOW_S = 1.0
WAITING_S_MAX = 2.0
WAITING_WINDOW_S = 4.0


class ChangeRate:
    """Requests wait for the plan that follows from them, at most `CHANGES_CALM` of them in `WINDOW_S`: a burst of
    changes would wait for a plan each, where one plan serves them all. And they wait `WAITING_S_MAX` in
    `WAITING_WINDOW_S`: while plans are held up, by a switch that does not answer, waiting is of little use."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=CHANGES_CALM)
        self._waits: deque[tuple[float, float]] = deque(maxlen=CHANGES_CALM * 8)

    def calm(self, now: float) -> bool:
        """Counts a change; whether it may wait for its plan."""
        calm = len(self._times) < CHANGES_CALM or now - self._times[0] > WINDOW_S
        self._times.append(now)
        waited_s = sum(seconds for end, seconds in self._waits if now - end < WAITING_WINDOW_S)
        return calm and waited_s < WAITING_S_MAX

    def waited(self, now: float, seconds: float) -> None:
        """A change has waited for its plan."""
        self._waits.append((now, seconds))
