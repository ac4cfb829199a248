"""How often, and until when, files are sent again to members that failed, and how long others wait for slow ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

PAUSE_S = 1.0
"""Before the second try; then twice as long each time."""
PAUSE_MOST_S = 30.0


@dataclass(frozen=True)
class Slow:
    """What becomes of members whose receivers take files slower than they come."""

    lag_bytes: int | None = None
    """So many bytes may wait for a receiver; None: others wait for it."""
    late: bool = False
    """Who is slower than that gets the rest when the others have all of it."""


@dataclass
class Tries:
    """What the options say: how often more, how long one may take, and until when all may."""

    more: int = 0
    timeout_s: float | None = None
    deadline_s: float | None = None
    """From when the command began."""

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._end = None if self.deadline_s is None else self._began + self.deadline_s
        self._pause_s = PAUSE_S
        self._try_ends: float | None = None

    @property
    def end(self) -> float | None:
        """When all tries end (time.monotonic()), if they do."""
        return self._end

    def begin(self) -> float | None:
        """A try begins; when it ends (time.monotonic()), if it does."""
        own = None if self.timeout_s is None else time.monotonic() + self.timeout_s
        ends = [end for end in (own, self._end) if end is not None]
        self._try_ends = min(ends, default=None)
        return self._try_ends

    @property
    def passed(self) -> tuple[str, float]:
        """The option by which a try has ended, and its seconds."""
        if self._end is not None and self._try_ends == self._end:
            return "--deadline", self.deadline_s or 0.0
        return "--timeout", self.timeout_s or 0.0

    def go_on(self, note: Callable[[str], None]) -> bool:
        """Whether there is another try, after a pause; `note` is told."""
        if self.more == 0:
            return False
        if self._end is not None and time.monotonic() + self._pause_s >= self._end:
            return False
        more = f"; {self.more - 1} more after that" if self.more > 1 else ""
        note(f"again in {self._pause_s:g} s{more}")
        time.sleep(self._pause_s)
        self.more -= 1
        self._pause_s = min(self._pause_s * 2, PAUSE_MOST_S)
        return True
