"""The picture of the PFC lab: what arrived, over time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from labs.pfc import Watched

POINTS_MAX = 120
"""Of a curve."""


def draw(acts: list[Watched]) -> Figure:
    """A panel for each act: frames received by flow, and what happened."""
    figure = Figure(figsize=(8, 2.9 * len(acts)), layout="constrained")
    for act, axes in zip(acts, figure.subplots(len(acts), 1, squeeze=False)[:, 0], strict=True):
        end = max(
            [at for at, _ in act.moments] + [times[-1] for times in act.flows.values() if times], default=1.0
        )
        at = np.linspace(0, end, POINTS_MAX)
        for name, times in act.flows.items():
            axes.plot(at, np.searchsorted(times, at), label=name, lw=1.4)
        for moment, what in act.moments:
            axes.axvline(moment, color="#888888", lw=0.8, ls=":")
            axes.annotate(
                what,
                (moment, 0.02),
                xycoords=("data", "axes fraction"),
                rotation=90,
                fontsize=7,
                va="bottom",
                ha="right",
            )
        axes.set_title(act.title, fontsize=9)
        axes.set_ylabel("frames received")
        axes.legend(fontsize=7, loc="upper left")
    axes.set_xlabel("time, s")
    return figure
