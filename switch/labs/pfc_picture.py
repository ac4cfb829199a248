"""The picture of the PFC lab: what arrived, over time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from labs.watched import Watched

POINTS_MAX = 120
"""Of a curve."""
STYLES = ("-", (0, (7, 4)), (0, (4, 4)), (0, (1.5, 2.5)))
"""Of the curves in turn, and each thinner than the one before: those that lie on each other are all seen."""


def draw(acts: list[Watched]) -> Figure:
    """A panel for each act: frames received by flow, and what happened."""
    figure = Figure(figsize=(8, 2.9 * len(acts)), layout="constrained")
    for act, axes in zip(acts, figure.subplots(len(acts), 1, squeeze=False)[:, 0], strict=True):
        end = max(
            [at for at, _ in act.moments] + [times[-1] for times in act.flows.values() if times], default=1.0
        )
        at = np.linspace(0, end, POINTS_MAX)
        for number, (name, times) in enumerate(act.flows.items()):
            style = STYLES[number % len(STYLES)]
            width = 2.6 - 0.35 * min(number, 4)
            axes.plot(at, np.searchsorted(times, at), label=name, lw=width, ls=style)
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
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
            )
        axes.set_title(act.title, fontsize=9)
        axes.set_ylabel("frames received")
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))  # beside the curves
    axes.set_xlabel("time, s")
    return figure
