"""Pictures of topologies, as SVG text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from wormcast.plan.routes import spanning_tree

Point = tuple[float, float]

SWITCH_RADIUS = 16.0
HOST_RADIUS = 9.0
HOST_DISTANCE = 46.0
SPACING = 110.0
MARGIN = 80.0
LINK, TREE, SWITCH, HOST, INK = "#b8b8b8", "#1f3d5c", "#3b6ea5", "#f2e3c2", "#222222"


def svg(topology: Mapping[str, Any], root: int | None = None) -> str:
    """A topology and its spanning tree: tori and meshes of two dimensions on a grid,
    others on a circle; links of the tree are thick. Raises `RoutingError`."""
    tree = spanning_tree(topology, root)
    at = _place_switches(topology)
    in_tree = {(a, a_port) for a, a_port, _, _ in tree["links"]}
    in_tree |= {(b, b_port) for _, _, b, b_port in tree["links"]}
    shapes: list[str] = []
    for link in topology["links"]:
        thick = (link["a"], link["a_port"]) in in_tree
        shapes.append(
            _line(at[link["a"]], at[link["b"]], TREE if thick else LINK, 3.0 if thick else 1.2)
            + f"<title>{link['a']}:{link['a_port']} to {link['b']}:{link['b_port']}</title></line>"
        )
    shapes += _draw_hosts(topology, at)
    for switch, point in at.items():
        shapes.append(_disc(point, SWITCH_RADIUS, TREE if switch in tree["roots"] else SWITCH))
        shapes.append(_label(point, str(switch), "#ffffff"))
    width = max(x for x, _ in at.values()) + MARGIN
    height = max(y for _, y in at.values()) + MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-size="11">'
    return "\n".join([head, *shapes, "</svg>\n"])


def _place_switches(topology: Mapping[str, Any]) -> dict[int, Point]:
    switches: list[int] = [switch["id"] for switch in topology["switches"]]
    radix = (topology.get("grid") or {}).get("radix", [])
    if len(radix) == 2:
        return {s: (MARGIN + SPACING * (s % radix[0]), MARGIN + SPACING * (s // radix[0])) for s in switches}
    radius = max(SPACING, SPACING * len(switches) / (2 * math.pi)) if len(switches) > 1 else 0.0
    centre = MARGIN + radius
    turns = [2 * math.pi * index / len(switches) for index in range(len(switches))]
    return {
        switch: (centre + radius * math.sin(turn), centre - radius * math.cos(turn))
        for switch, turn in zip(switches, turns, strict=True)
    }


def _draw_hosts(topology: Mapping[str, Any], at: Mapping[int, Point]) -> list[str]:
    middle = tuple(sum(point[axis] for point in at.values()) / len(at) for axis in (0, 1))
    shapes: list[str] = []
    for switch, (x, y) in at.items():
        hosts = [host for host in topology["hosts"] if host["switch"] == switch]
        outward = math.atan2(y - middle[1], x - middle[0]) if (x, y) != middle else -math.pi / 2
        spread = min(0.75, 2.6 / max(len(hosts), 1))
        for index, host in enumerate(hosts):
            angle = outward + (index - (len(hosts) - 1) / 2) * spread
            point = (x + HOST_DISTANCE * math.cos(angle), y + HOST_DISTANCE * math.sin(angle))
            shapes.append(_line((x, y), point, LINK, 1.0) + "</line>")
            shapes.append(_disc(point, HOST_RADIUS, HOST))
            shapes.append(_label(point, str(host["id"]), INK))
    return shapes


def _line(start: Point, end: Point, colour: str, width: float) -> str:
    ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}">'


def _disc(centre: Point, radius: float, colour: str) -> str:
    place = f'cx="{centre[0]:.1f}" cy="{centre[1]:.1f}"'
    return f'<circle {place} r="{radius}" fill="{colour}" stroke="{INK}" stroke-width="0.6"/>'


def _label(centre: Point, text: str, colour: str) -> str:
    place = f'x="{centre[0]:.1f}" y="{centre[1] + 4:.1f}"'
    return f'<text {place} fill="{colour}" text-anchor="middle" font-family="sans-serif">{text}</text>'
