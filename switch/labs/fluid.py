"""Queues of a port as if packets were a fluid: cumulative curves of arrivals and departures.

The port serves queues in strict priority, at a constant rate, behind a token bucket. Each queue holds so much
and no more; what comes while it is full is lost. Everything is piecewise linear, so the model is exact: it goes
from one moment at which a slope changes to the next. Depth is the vertical distance between the curves of what
was let in and of what has left, delay the horizontal one (Le Boudec, Thiran: Network Calculus, 2001, section
1.1.2). Pure: no clock, no chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

NOTHING_BITS = 1e-6
"""Less than this is nothing: what rounding leaves."""
SLOPE_MIN = 1e-6
"""bit/s; a slope below this is rounding."""
INSTANT_S = 1e-9
"""Two moments nearer than this are one."""


@dataclass(frozen=True)
class Curve:
    """Bits so far, by time: straight between points, constant before the first and after the last.

    `times` in seconds, strictly increasing; `bits` never falling. Raises ValueError for anything else.
    """

    times: Numbers
    bits: Numbers

    def __post_init__(self) -> None:
        if len(self.times) != len(self.bits) or len(self.times) < 1:
            raise ValueError(f"a curve has {len(self.times)} times and {len(self.bits)} values")
        if np.any(np.diff(self.times) <= 0) or np.any(np.diff(self.bits) < 0):
            raise ValueError("times of a curve must increase, and its bits must not fall")

    @staticmethod
    def of_rates(phases: Sequence[tuple[float, float]], start_s: float = 0.0) -> Curve:
        """The curve of phases, each with its length in seconds and its rate in bit/s."""
        lengths, rates = zip(*phases, strict=True)
        times = np.concatenate([[start_s], start_s + np.cumsum(lengths)])
        return Curve(times, np.concatenate([[0.0], np.cumsum(np.multiply(lengths, rates))]))

    @staticmethod
    def of_frames(times: Sequence[float], bits: Sequence[float], start_s: float) -> Curve:
        """Frames as fluid: each flows in between the end of the one before and its own time."""
        sums = np.concatenate([[0.0], np.cumsum(np.asarray(bits, dtype=float))])
        moments = np.concatenate([[start_s], np.asarray(times, dtype=float)])
        last = np.append(np.diff(moments) > INSTANT_S, True)
        return Curve(moments[last], sums[last])

    def at(self, times: npt.ArrayLike) -> Numbers:
        """Bits so far at these times."""
        found: Numbers = np.interp(np.asarray(times, dtype=float), self.times, self.bits)
        return found

    def when(self, bits: npt.ArrayLike) -> Numbers:
        """When the curve first reaches so many bits; infinity where it never does."""
        wanted = np.asarray(bits, dtype=float) - NOTHING_BITS
        index = np.searchsorted(self.bits, wanted, side="left")
        inside = np.clip(index, 1, len(self.bits) - 1)
        before, after = self.bits[inside - 1], self.bits[inside]
        rise = np.where(after > before, after - before, 1.0)
        part = np.clip((wanted - before) / rise, 0.0, 1.0)
        found = self.times[inside - 1] + part * (self.times[inside] - self.times[inside - 1])
        found = np.where(index == 0, self.times[0], found)
        return np.where(index == len(self.bits), math.inf, found)


@dataclass(frozen=True)
class Flow:
    """What becomes of the traffic of one queue."""

    arrived: Curve
    accepted: Curve
    """What was not lost at a full queue."""
    left: Curve

    def depth_bits(self, times: npt.ArrayLike) -> Numbers:
        """What the queue holds at these times."""
        held: Numbers = np.maximum(self.accepted.at(times) - self.left.at(times), 0.0)
        return held

    def delay_s(self, times: npt.ArrayLike, before_bits: float = 0.0) -> Numbers:
        """How long what arrives at these times waits until so many bits fewer than were let in have left.

        With the length of a frame as `before_bits` it is the time until that frame begins to leave.
        """
        moments = np.asarray(times, dtype=float)
        waits: Numbers = np.maximum(self.left.when(self.accepted.at(moments) - before_bits) - moments, 0.0)
        return waits

    def lost_bits(self) -> float:
        return float(self.arrived.bits[-1] - self.accepted.bits[-1])


def serve(
    arrivals: Sequence[Curve],
    rate_bps: float,
    *,
    limits_bits: Sequence[float] | None = None,
    burst_bits: float = 0.0,
    until_s: float | None = None,
) -> list[Flow]:
    """Serve queues in strict priority, the first of `arrivals` first.

    `limits_bits`: what each queue holds at most, infinity unless given. `burst_bits`: what an idle port may catch
    up with; its token bucket is full at the start. `until_s`: when to stop; else when all has arrived and left.
    Raises ValueError for a rate that is not above 0, a negative burst, or a limit that is not above 0.
    """
    limits = list(limits_bits) if limits_bits is not None else [math.inf] * len(arrivals)
    if not rate_bps > 0 or burst_bits < 0 or not all(limit > 0 for limit in limits):
        raise ValueError(f"rate {rate_bps}, burst {burst_bits} and limits {limits} must be positive")
    if len(limits) != len(arrivals) or not arrivals:
        raise ValueError(
            f"{len(arrivals)} arrivals and {len(limits)} limits: there must be as many, and one at least"
        )
    port = _Port(rate_bps, burst_bits, limits)
    breaks = np.unique(np.concatenate([curve.times for curve in arrivals]))
    for start, end in itertools.pairwise(breaks):
        if end - start > INSTANT_S:
            flows_in = [float(curve.at(end) - curve.at(start)) / (end - start) for curve in arrivals]
            port.run(float(start), float(end), flows_in)
    last = float(breaks[-1])
    end = until_s if until_s is not None else last + port.backlog() / rate_bps
    if end - last > INSTANT_S:
        port.run(last, end, [0.0] * len(arrivals))
    return [
        Flow(arrived, Curve(*port.curve(accepted)), Curve(*port.curve(left)))
        for arrived, accepted, left in zip(arrivals, port.accepted, port.left, strict=True)
    ]


class _Port:
    """The state of the port at one moment, and the points of the curves so far."""

    def __init__(self, rate: float, burst: float, limits: Sequence[float]) -> None:
        self.rate, self.burst, self.limits = rate, burst, limits
        self.tokens = burst
        self.held = [0.0] * len(limits)
        self.times: list[float] = []
        self.accepted: list[list[float]] = [[] for _ in limits]
        self.left: list[list[float]] = [[] for _ in limits]

    def backlog(self) -> float:
        return sum(self.held)

    def curve(self, bits: Sequence[float]) -> tuple[Numbers, Numbers]:
        return np.asarray(self.times), np.asarray(bits)

    def run(self, start: float, end: float, flows_in: Sequence[float]) -> None:
        """From `start` to `end`, with constant rates of arrival."""
        if not self.times:
            self._mark(start, [0.0] * len(flows_in), [0.0] * len(flows_in))
        now = start
        while end - now > INSTANT_S:
            served = self._served(flows_in)
            kept = [self._kept(queue, flow, served[queue]) for queue, flow in enumerate(flows_in)]
            tokens = self.rate - sum(served)
            if self.tokens >= self.burst - NOTHING_BITS:
                tokens = min(tokens, 0.0)
            if self.tokens <= NOTHING_BITS and sum(served) >= self.rate * (1 - 1e-12):
                tokens = 0.0
            step = min(end - now, self._next_change(kept, served, tokens))
            for queue in range(len(flows_in)):
                self.held[queue] = max(self.held[queue] + (kept[queue] - served[queue]) * step, 0.0)
                if self.held[queue] < NOTHING_BITS:
                    self.held[queue] = 0.0
            self.tokens = min(max(self.tokens + tokens * step, 0.0), self.burst)
            now += step
            self._mark(now, [flow * step for flow in kept], [flow * step for flow in served])

    def _served(self, flows_in: Sequence[float]) -> list[float]:
        """The rate at which each queue leaves."""
        if self.tokens > NOTHING_BITS:
            return list(flows_in)  # nothing waits while there are tokens
        room = self.rate
        served = []
        for held, flow in zip(self.held, flows_in, strict=True):
            served.append(room if held > 0 else min(flow, room))
            room -= served[-1]
        return served

    def _kept(self, queue: int, flow: float, served: float) -> float:
        """The rate at which a queue is let in."""
        full = self.held[queue] >= self.limits[queue] - NOTHING_BITS
        return min(flow, served) if full else flow

    def _next_change(self, kept: Sequence[float], served: Sequence[float], tokens: float) -> float:
        """Seconds until a queue is empty or full, or the bucket is."""
        soonest = math.inf
        for held, limit, more, less in zip(self.held, self.limits, kept, served, strict=True):
            slope = more - less
            if slope < -SLOPE_MIN and held > 0:
                soonest = min(soonest, held / -slope)
            elif slope > SLOPE_MIN and limit < math.inf:
                soonest = min(soonest, (limit - held) / slope)
        if tokens < 0:
            soonest = min(soonest, self.tokens / -tokens)
        elif tokens > 0:
            soonest = min(soonest, (self.burst - self.tokens) / tokens)
        return max(soonest, INSTANT_S)

    def _mark(self, now: float, kept: Sequence[float], served: Sequence[float]) -> None:
        if self.times and now <= self.times[-1]:
            return
        self.times.append(now)
        for queue, (more, less) in enumerate(zip(kept, served, strict=True)):
            for points, gained in ((self.accepted[queue], more), (self.left[queue], less)):
                points.append((points[-1] if points else 0.0) + max(gained, 0.0))
