"""Pictures of a topology, its spanning tree and a group's structures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from wormcast import pictures, routing

Point = tuple[float, float]
HOST_COLOUR, TREE_COLOUR = "#f2e3c2", "#1f3d5c"
HOST_DISTANCE = 0.55
ARC_BEND = 0.15


def place(topology: dict[str, Any]) -> tuple[dict[int, Point], dict[int, Point]]:
    """Where to draw switches (on a circle) and hosts (fanned out beyond their switch)."""
    switches = [s["id"] for s in topology["switches"]]
    radius = max(1.0, len(switches) * 0.28)
    at_switch: dict[int, Point] = {}
    for index, switch in enumerate(switches):
        angle = math.pi / 2 - 2 * math.pi * index / len(switches)
        at_switch[switch] = (
            (0.0, 0.0) if len(switches) == 1 else (radius * math.cos(angle), radius * math.sin(angle))
        )
    at_host: dict[int, Point] = {}
    for switch in switches:
        hosts = [h["id"] for h in topology["hosts"] if h["switch"] == switch]
        x, y = at_switch[switch]
        outward = math.atan2(y, x)
        spread = 2 * math.pi if len(switches) == 1 else math.radians(min(110, 38 * len(hosts)))
        for index, host in enumerate(hosts):
            share = (index + 0.5) / len(hosts) - 0.5
            angle = outward - share * spread
            at_host[host] = (x + HOST_DISTANCE * math.cos(angle), y + HOST_DISTANCE * math.sin(angle))
    return at_switch, at_host


def draw_fabric(topology: dict[str, Any], path: Path) -> None:
    """The topology with its spanning tree, into a PNG."""
    path.write_bytes(pictures.png(topology))


def draw_groups(topology: dict[str, Any], schemes: list[str], source: int, packets: int, path: Path) -> None:
    """Who sends to whom under each scheme for a message of so many packets, into a PNG."""
    columns = min(3, len(schemes))
    rows = math.ceil(len(schemes) / columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(4.2 * columns, 4.0 * rows), squeeze=False, layout="constrained"
    )
    for index in range(rows * columns):
        axes = panels[index // columns][index % columns]
        if index < len(schemes):
            _draw_group(axes, topology, schemes[index], source, packets)
        else:
            axes.set_axis_off()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_group(axes: Axes, topology: dict[str, Any], scheme: str, source: int, packets: int) -> None:
    at_switch, at_host = place(topology)
    members = sorted(h["id"] for h in topology["hosts"])
    parameters = {"packets": packets} if scheme == "k-binomial" else {}
    group = routing.group(
        topology, {"scheme": scheme, "source": source, "members": members, "parameters": parameters}
    )
    for link in topology["links"]:
        _line(axes, at_switch[link["a"]], at_switch[link["b"]], "#dddddd", 1.0)
    for host in topology["hosts"]:
        _line(axes, at_switch[host["switch"]], at_host[host["id"]], "#dddddd", 1.0)
    for x, y in at_switch.values():
        axes.plot(x, y, "s", color="#dddddd", markersize=7)
    arrows = (
        _tree_arrows(group["tree"], at_switch, at_host)
        if group.get("tree")
        else [(at_host[edge["from"]], at_host[edge["to"]], edge.get("step")) for edge in group["edges"]]
    )
    if group.get("tree"):
        first = next(h for h in topology["hosts"] if h["id"] == source)
        arrows.insert(0, (at_host[source], at_switch[first["switch"]], None))
    for start, end, step in arrows:
        axes.annotate(
            "",
            xy=end,
            xytext=start,
            arrowprops={
                "arrowstyle": "-|>",
                "color": TREE_COLOUR,
                "shrinkA": 8,
                "shrinkB": 8,
                "connectionstyle": "arc3,rad=0" if group.get("tree") else f"arc3,rad={ARC_BEND}",
            },
        )
        if step is not None and len(arrows) <= 40:
            axes.text(
                *_beside_arc(start, end), str(step), fontsize=7, color="#a53b3b", ha="center", va="center"
            )
    for host, point in at_host.items():
        _host(axes, host, point, marked=host == source)
    axes.set_title(scheme)
    _tidy(axes, [*at_switch.values(), *at_host.values()])


def _tree_arrows(
    tree: dict[str, Any], at_switch: dict[int, Point], at_host: dict[int, Point]
) -> list[tuple[Point, Point, int | None]]:
    arrows: list[tuple[Point, Point, int | None]] = []
    for branch in tree["branches"]:
        if "host" in branch:
            arrows.append((at_switch[tree["switch"]], at_host[branch["host"]], None))
        else:
            arrows.append((at_switch[tree["switch"]], at_switch[branch["switch"]], None))
            arrows += _tree_arrows(branch, at_switch, at_host)
    return arrows


def _beside_arc(start: Point, end: Point) -> Point:
    """A place just outside the middle of the arc that arc3 with ARC_BEND draws."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy) or 1.0
    outward = ARC_BEND / 2 + 0.09 / length
    return (start[0] + end[0]) / 2 + outward * dy, (start[1] + end[1]) / 2 - outward * dx


def _line(axes: Axes, start: Point, end: Point, colour: str, width: float) -> None:
    axes.plot(
        [start[0], end[0]],
        [start[1], end[1]],
        color=colour,
        linewidth=width,
        zorder=1,
        solid_capstyle="round",
    )


def _host(axes: Axes, host: int, point: Point, *, marked: bool = False) -> None:
    axes.text(
        *point,
        f"h{host}",
        ha="center",
        va="center",
        fontsize=7,
        zorder=3,
        fontweight="bold" if marked else "normal",
        bbox={
            "boxstyle": "circle,pad=0.25",
            "facecolor": "#e0a83c" if marked else HOST_COLOUR,
            "edgecolor": "#8a7a50",
        },
    )


def _tidy(axes: Axes, points: list[Point]) -> None:
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    axes.set_xlim(min(xs) - 0.3, max(xs) + 0.3)
    axes.set_ylim(min(ys) - 0.3, max(ys) + 0.3)
    axes.set_aspect("equal")
    axes.set_axis_off()
