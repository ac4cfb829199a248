"""The picture of the queue lab: measured over modelled."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from labs import fluid
from labs.queues_model import NAMES, URGENT, Run, Setup, measured_rates, windows

COLOURS = {True: "#c0392b", False: "#1f5a8c"}
POINTS_MAX = 90
"""Of packets; more would only make the file large."""


def draw(setup: Setup, run: Run, model: dict[int, fluid.Flow]) -> Figure:
    """Rate, depth and delay over time: points are measured, lines are the model."""
    figure = Figure(figsize=(8, 7.5), layout="constrained")
    rate, depth, delay = figure.subplots(3, 1, sharex=True)
    edges = windows(setup)
    times = np.linspace(0, edges[-1], 300)
    for priority, flow in model.items():
        colour = COLOURS[priority == URGENT]
        name = NAMES[priority]
        packets = run.of(priority)
        packets = packets[:: max(len(packets) // POINTS_MAX, 1)]
        sent = [packet.sent_s for packet in packets]
        middles = (edges[:-1] + edges[1:]) / 2
        rate.plot(middles, measured_rates(run.of(priority), setup) / 1e6, "o", color=colour, ms=4)
        rate.plot(
            middles, np.diff(flow.left.at(edges)) / np.diff(edges) / 1e6, color=colour, label=f"{name}, model"
        )
        depth.plot(sent, [packet.depth_before for packet in packets], ".", color=colour, ms=4)
        depth.plot(times, flow.depth_bits(times) / setup.frame_bits, color=colour)
        delay.plot(sent, [packet.waited_s * 1e3 for packet in packets], ".", color=colour, ms=4)
        inside = times < flow.arrived.times[-1]
        delay.plot(times[inside], flow.delay_s(times[inside], setup.frame_bits) * 1e3, color=colour)
    start = 0.0
    for seconds, urgent, bulk in setup.phases:
        for axes in (rate, depth, delay):
            axes.axvline(start, color="#cccccc", lw=0.8, zorder=0)
        rate.annotate(
            f"{urgent:g} + {bulk:g}",
            (start + seconds / 2, 1.12 * setup.rate_bps / 1e6),
            ha="center",
            fontsize=8,
        )
        start += seconds
    rate.set_ylim(0, 1.25 * setup.rate_bps / 1e6)
    rate.set_ylabel("rate out, Mbit/s")
    rate.legend(loc="center right", fontsize=8)
    rate.set_title(
        f"Port of {setup.rate}, frames of {setup.frame_bytes} bytes: measured (points) and fluid model (lines)\n"
        "above: offered, urgent + bulk, in parts of the port's rate",
        fontsize=9,
    )
    depth.set_ylabel("depth, packets")
    delay.set_ylabel("delay, ms")
    delay.set_xlabel("time, s")
    return figure
