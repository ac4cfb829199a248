"""One direction of a link: the probes that left into it, and whether it can be that they are only late. Pure.

A link that is cut answers no probe. Nor does one for a while that loses frames, or whose queue is full. What tells
them apart is how many probes in a row stay unanswered, beside how many this direction has lost lately: as many as
all get lost on it once in `ALARMS_APART` rows. So a clean link is down after six, one that loses every second frame
after 34. As soon as one probe is late, the next ones follow quickly. What is late goes by how long probes took lately:
a queue of seconds, in front of a switch that gets no processor, is not a cut.
"""

from __future__ import annotations

import math
from collections import deque

from wormcast.network.topology import PortRef

LATE_S = 0.012
"""A probe that is unanswered for so long is late, at least; further ones follow at this interval."""
LATE_DELAYS = 2.0
"""Nor is one late before it has taken so many times as long as the slowest one lately."""
ALARMS_APART = 1e10
"""Rows of probes until a link that is only lossy is taken for down."""
LOSS_MIN = 0.01
LOSS_MAX = 0.65
"""Bounds of the share of probes that a direction is taken to lose."""
LOSS_GAIN = 1 / 8
"""Weight of a probe in that share, which is a moving average."""
AWAITED_MAX = 64
"""Unanswered probes that are remembered. A direction that loses `LOSS_MAX` needs 54 of them."""
SILENCE_MIN_S = 0.1
"""A direction that is down was silent for so long at least."""
SILENCE_DELAYS = 4.0
"""And for so many times as long as the slowest probe took lately, or the slowest echo of its switches."""
SILENCE_MAX_S = 20.0
"""But this is silence in any case. Intervals of probes that are longer than in a small fabric make it longer, too."""
HALF_LIFE_S = 5.0
"""In this time half of a delay is forgotten."""


class Slowest:
    """The longest delay lately. It fades."""

    def __init__(self) -> None:
        self._delay_s = 0.0
        self._at = 0.0

    def note(self, delay_s: float, now: float) -> None:
        self._delay_s, self._at = max(delay_s, self.value(now)), now

    def value(self, now: float) -> float:
        """In seconds."""
        return float(self._delay_s * 0.5 ** ((now - self._at) / HALF_LIFE_S))


class Direction:
    """What is known of what is behind one port."""

    def __init__(self, far: PortRef) -> None:
        self.far = far
        self.sent_at = float("-inf")
        """When the last probe left."""
        self._unanswered: deque[float] = deque(maxlen=AWAITED_MAX)
        self._waits_since = 0.0
        """When the oldest unanswered one left, remembered or not."""
        self._loss = LOSS_MIN
        self._slowest = Slowest()
        self._forgiven_at = float("-inf")

    def send(self, now: float) -> None:
        self.sent_at = now
        if not self._unanswered:
            self._waits_since = now
        self._unanswered.append(now)

    def hear(self, sent_at: float, now: float) -> None:
        """A probe that left at `sent_at` has come through. Those that left before it are lost."""
        if sent_at >= self._forgiven_at:
            self._slowest.note(now - sent_at, now)
        while self._unanswered and self._unanswered[0] <= sent_at:
            lost = self._unanswered.popleft() < sent_at
            self._loss += (lost - self._loss) * LOSS_GAIN
        if self._unanswered:
            self._waits_since = self._unanswered[0]
        self._loss = min(max(self._loss, LOSS_MIN), LOSS_MAX)

    def forgive(self, now: float) -> None:
        """What left until now says nothing."""
        self._unanswered.clear()
        self._forgiven_at = now

    def is_late(self, now: float, stretch: float) -> bool:
        """Whether further probes should follow quickly: not for ever, where they get no answer for another reason."""
        waiting = len(self._unanswered)
        return 0 < waiting < 2 * self.needed() and now - self._waits_since >= max(
            LATE_S * stretch, LATE_DELAYS * self._slowest.value(now)
        )

    def needed(self) -> int:
        """So many unanswered in a row mean that it is down."""
        return math.ceil(math.log(ALARMS_APART) / -math.log(self._loss))

    def is_down(self, sure_until: float, silence_s: float, echo_s: float, stretch: float, now: float) -> bool:
        """Whether enough probes are unanswered of those that left until `sure_until`: both switches have
        shown since then that they forward, by echoes that took up to `echo_s` lately. And for `silence_s` at least."""
        needed = min(self.needed(), AWAITED_MAX)
        delay_s = max(self._slowest.value(now), echo_s)
        silence_s = max(silence_s, min(SILENCE_DELAYS * delay_s, SILENCE_MAX_S * stretch))
        if len(self._unanswered) < needed or now - self._waits_since < silence_s:
            return False
        return sum(left <= sure_until for left in self._unanswered) >= needed
