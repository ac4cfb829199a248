"""A picture as PNG bytes, painted by matplotlib."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import patches
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.path import Path

from wormcast.pictures.scene import Disc, Label, Scene, arrow_head, disc_font

# Of the longer side; larger pictures are scaled down to it.
PIXELS_MAX = 8000
POINTS_AN_INCH = 72.0
SCALE = 1.5


def to_png(scene: Scene) -> bytes:
    """The picture as PNG bytes, one and a half pixels a unit of the scene."""
    left, top, width, height = scene.extent()
    scale = min(SCALE, PIXELS_MAX / max(width, height))
    figure = Figure(figsize=(width / POINTS_AN_INCH, height / POINTS_AN_INCH), dpi=POINTS_AN_INCH * scale)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(left, left + width)
    axes.set_ylim(top + height, top)
    axes.set_axis_off()
    for frame in scene.frames:
        ring = patches.Circle(frame.centre, frame.radius, facecolor="#f4f6f9", edgecolor="#d4dae3", zorder=0)
        axes.add_patch(ring)
    for stroke in scene.strokes:
        curve = stroke.curve
        path = Path(
            [curve.start, curve.first, curve.second, curve.end],
            [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
        )
        axes.add_patch(
            patches.PathPatch(
                path,
                facecolor="none",
                edgecolor=stroke.colour,
                linewidth=stroke.width,
                linestyle=(0, (4, 3)) if stroke.dashed else "solid",
                alpha=stroke.opacity,
                zorder=1,
            )
        )
        if stroke.arrow:
            head = patches.Polygon(arrow_head(curve, stroke.width), color=stroke.colour, zorder=1)
            axes.add_patch(head)
    for disc in scene.discs:
        axes.add_patch(_disc(disc))
        if disc.text:
            _write(axes, Label(disc.centre, disc.text, disc.text_colour, disc_font(disc)), scale, 3)
    for label in scene.labels:
        _write(axes, label, scale, 4)
    file = io.BytesIO()
    # No creation date, so that the same picture has the same bytes.
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _disc(disc: Disc) -> patches.Patch:
    paint: dict[str, Any] = {
        "facecolor": disc.fill,
        "edgecolor": disc.edge,
        "linewidth": disc.edge_width,
        "linestyle": "dashed" if disc.dashed else "solid",
        "zorder": 2,
    }
    if disc.half_width is None:
        return patches.Circle(disc.centre, disc.radius, **paint)
    corner = (disc.centre[0] - disc.half_width, disc.centre[1] - disc.radius)
    paint["boxstyle"] = "round,pad=0,rounding_size=4"
    return patches.FancyBboxPatch(corner, 2 * disc.half_width, 2 * disc.radius, **paint)


def _write(axes: Axes, label: Label, scale: float, zorder: int) -> None:
    # What is too small to read is left out; the painter refuses sizes below a pixel.
    if label.size * scale > 2:
        axes.text(*label.at, label.text, **_style(label), zorder=zorder)


def _style(label: Label) -> dict[str, Any]:
    style: dict[str, Any] = {
        "color": label.colour,
        "fontsize": label.size * 0.95,
        "ha": "center" if label.anchor == "middle" else "left",
        "va": "center",
    }
    if label.backed:
        style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
    return style
