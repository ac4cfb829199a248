"""What the queue lab sends and measures, and what a fluid would do."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from labs import fluid
from labs.packets import Packet
from labs.rig import LabError

URGENT, BULK = 5, 1
"""The two priorities; the higher goes first."""
NAMES = {URGENT: "urgent", BULK: "bulk"}
PHASES = ((1.5, 0.3, 0.3), (3.0, 0.5, 0.8), (1.0, 1.2, 0.2), (2.0, 0.0, 0.0))
"""Seconds, and what each priority is offered, in parts of the port's rate. In turn: there is room for all; the
bulk does not fit; the urgent traffic alone does not fit; nothing comes, and the queues run empty."""
BURST_S, BURST_BITS_MIN = 1e-3, 1_518 * 8
"""What an idle port may catch up with (switch/flow/src/rate.rs)."""
WINDOW_S, WINDOW_FRAMES = 0.25, 60
"""Over which rates are taken, at least: in fewer frames a single one counts for much."""
PEAK_FRAMES_MIN = 25
"""A queue that is never deeper in the model than a few frames is measured by this, for the same reason."""


@dataclass(frozen=True)
class Setup:
    rate: str
    rate_bps: float
    frame_bytes: int
    queue_frames: int
    phases: tuple[tuple[float, float, float], ...] = PHASES

    @property
    def frame_bits(self) -> int:
        return self.frame_bytes * 8

    @property
    def frame_s(self) -> float:
        return self.frame_bits / self.rate_bps

    @property
    def window_s(self) -> float:
        return max(WINDOW_S, WINDOW_FRAMES * self.frame_s)

    @property
    def seconds(self) -> float:
        return sum(phase[0] for phase in self.phases)

    def offered(self, priority: int) -> fluid.Curve:
        """The traffic of a priority as it is meant."""
        column = 1 if priority == URGENT else 2
        return fluid.Curve.of_rates([(phase[0], phase[column] * self.rate_bps) for phase in self.phases])

    def schedule(self) -> list[tuple[float, int]]:
        """When to send a frame of which priority: when the fluid has brought all of its bits."""
        merged = heapq.merge(*(self._times(priority) for priority in (URGENT, BULK)))
        return list(merged)

    def _times(self, priority: int) -> Iterator[tuple[float, int]]:
        curve = self.offered(priority)
        for number in itertools.count(1):
            bits = number * self.frame_bits
            if bits > curve.bits[-1] + fluid.NOTHING_BITS:
                return
            yield float(curve.when(bits)), priority

    def model(self, arrivals: Sequence[fluid.Curve]) -> dict[int, fluid.Flow]:
        """What the fluid model says about these arrivals, by priority."""
        flows = fluid.serve(
            arrivals,
            self.rate_bps,
            limits_bits=[self.queue_frames * self.frame_bits] * 2,
            burst_bits=max(BURST_S * self.rate_bps, BURST_BITS_MIN),
        )
        return dict(zip((URGENT, BULK), flows, strict=True))


@dataclass(frozen=True)
class Run:
    """What came out: the packets that arrived, how many were sent and dropped, by priority."""

    packets: list[Packet]
    sent: dict[int, list[float]]
    """Times, s."""
    dropped: dict[int, int]
    """At a full queue."""
    dropped_before: int = 0
    """Before the switch looked at them; of either priority."""

    def of(self, priority: int) -> list[Packet]:
        return [packet for packet in self.packets if packet.priority == priority]


@dataclass(frozen=True)
class Comparison:
    """How far the measured is from the modelled for one priority: the worst and the mean, as parts.

    Of rates in parts of the port's rate, of depth and delay in parts of the largest that the model has. `lost` is the
    difference of the parts lost.
    """

    rate: tuple[float, float]
    depth: tuple[float, float]
    delay: tuple[float, float]
    lost: float

    @property
    def worst(self) -> float:
        return max(self.rate[0], self.depth[0], self.delay[0], self.lost)


def arrivals_of(run: Run, setup: Setup) -> list[fluid.Curve]:
    """The arrival curves as they were, not as they were meant: a sender may be late."""
    return [
        fluid.Curve.of_frames(run.sent[priority], [setup.frame_bits] * len(run.sent[priority]), 0.0)
        for priority in (URGENT, BULK)
    ]


def compare(run: Run, setup: Setup, model: dict[int, fluid.Flow]) -> dict[int, Comparison]:
    """The measured beside the modelled, by priority."""
    found = {}
    for priority, flow in model.items():
        packets = run.of(priority)
        if not packets:
            raise LabError(f"no packet of priority {priority} arrived")
        rate = np.abs(measured_rates(packets, setup) - modelled_rates(flow, setup)) / setup.rate_bps
        sent = np.array([packet.sent_s for packet in packets])
        depth = np.array([packet.depth_before for packet in packets], dtype=float)
        delay = np.array([packet.waited_s for packet in packets])
        depth_model = flow.depth_bits(sent) / setup.frame_bits
        delay_model = flow.delay_s(sent, setup.frame_bits)
        # A fluid knows no frames: one frame sooner or later is no deviation. It matters where a queue is
        # about to be starved; there the next frame waits far longer.
        sooner, later = flow.delay_s(sent, 2 * setup.frame_bits), flow.delay_s(sent)
        depth_off = np.abs(depth - depth_model) / max(float(depth_model.max()), PEAK_FRAMES_MIN)
        off = np.maximum(np.maximum(sooner - delay, delay - later), 0.0)
        delay_off = off / max(float(delay_model.max()), PEAK_FRAMES_MIN * setup.frame_s)
        offered = len(run.sent[priority])
        lost = abs(run.dropped[priority] / offered - flow.lost_bits() / (offered * setup.frame_bits))
        found[priority] = Comparison(_pair(rate), _pair(depth_off), _pair(delay_off), lost)
    return found


def _pair(parts: fluid.Numbers) -> tuple[float, float]:
    return float(parts.max()), float(parts.mean())


def windows(setup: Setup) -> fluid.Numbers:
    """The ends of the windows over which rates are taken."""
    return np.arange(0.0, setup.seconds + 2 * setup.window_s, setup.window_s)


def measured_rates(packets: Sequence[Packet], setup: Setup) -> fluid.Numbers:
    """Bit/s that left, by window."""
    counts, _ = np.histogram([packet.received_s for packet in packets], windows(setup))
    return counts * setup.frame_bits / setup.window_s


def modelled_rates(flow: fluid.Flow, setup: Setup) -> fluid.Numbers:
    """The same in the model."""
    rates: fluid.Numbers = np.diff(flow.left.at(windows(setup))) / setup.window_s
    return rates
