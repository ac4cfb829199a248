"""Routes and groups over a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wormcast.pictures.geometry import Curve, Point, bowed, line
from wormcast.pictures.scene import Disc, Label, Scene, Stroke
from wormcast.pictures.sketch import Sketch

ROUTE_COLOURS = ("#d1492e", "#2e8b57", "#8b4fb0", "#c98a14", "#1687a7", "#a8326d")
GROUP_COLOUR = "#d1492e"
MEMBER = "#e0a83c"
# Steps are written beside at most so many edges.
STEPS_SHOWN_MAX = 60
EDGE_BEND = 0.16
LegendEntry = tuple[str, str, str]


def draw_routes(scene: Scene, sketch: Sketch, routes: Sequence[Mapping[str, Any]]) -> list[LegendEntry]:
    """Each route as a coloured line along its links; gives its entries of the legend."""
    legend = []
    for number, route in enumerate(routes):
        colour = ROUTE_COLOURS[number % len(ROUTE_COLOURS)]
        # Routes that share a link lie beside each other.
        width = 4.0 + 2.0 * ((len(routes) - 1 - number) % 4)
        curves = list(_curves_of_route(sketch, route))
        for index, curve in enumerate(curves):
            scene.strokes.append(Stroke(curve, colour, width, arrow=index == len(curves) - 1, opacity=0.85))
        in_transit = route.get("in_transit") or []
        via = f" by host {', '.join(map(str, in_transit))}" if in_transit else ""
        legend.append(("line", colour, f"route {route['src']} to {route['dst']}{via}"))
    return legend


def _curves_of_route(sketch: Sketch, route: Mapping[str, Any]) -> Iterator[Curve]:
    """From the source over all switches to the destination; a port without a link leads to
    a host, at which the worm is taken in transit if it is not the destination."""
    switch_of = {host["id"]: host["switch"] for host in sketch.topology["hosts"]}
    at_port = {(host["switch"], host["port"]): host["id"] for host in sketch.topology["hosts"]}
    places = sketch.layout.switches
    yield line(sketch.hosts[route["src"]], places[switch_of[route["src"]]])
    for switch, port in zip(route["switches"], route["ports"], strict=True):
        found = sketch.curve_from(switch, port)
        if found is not None:
            yield found[0]
        elif (switch, port) in at_port:
            yield line(places[switch], _edge_of(sketch.hosts[at_port[switch, port]], places[switch]))


def _edge_of(centre: Point, other: Point, radius: float = 9.0) -> Point:
    """Where the line from `other` meets the disc of a host."""
    length = math.dist(centre, other) or 1.0
    return (
        centre[0] + (other[0] - centre[0]) * radius / length,
        centre[1] + (other[1] - centre[1]) * radius / length,
    )


def draw_group(scene: Scene, sketch: Sketch, group: Mapping[str, Any]) -> list[LegendEntry]:
    """Who sends to whom, or over which links switches copy; the source and members stand
    out. Gives its entries of the legend."""
    edges = group.get("edges") or []
    if group.get("tree"):
        _draw_copies(scene, sketch, group["tree"])
        text = f"{group.get('scheme', 'group')}: copies"
    else:
        for edge in edges:
            _draw_edge(scene, sketch, edge, steps=len(edges) <= STEPS_SHOWN_MAX)
        text = f"{group.get('scheme', 'group')}: who sends to whom, in which step"
    for member in group.get("members") or []:
        if member in sketch.hosts:
            is_source = member == group.get("source")
            scene.discs.append(
                Disc(sketch.hosts[member], 13.0 if is_source else 11.5, GROUP_COLOUR if is_source else MEMBER)
            )
    return [("line", GROUP_COLOUR, text), ("disc", GROUP_COLOUR, "source"), ("disc", MEMBER, "member")]


def _draw_edge(scene: Scene, sketch: Sketch, edge: Mapping[str, Any], *, steps: bool) -> None:
    start, end = sketch.hosts.get(edge["from"]), sketch.hosts.get(edge["to"])
    if start is None or end is None or start == end:
        return
    whole = bowed(start, end, EDGE_BEND)
    tip = _edge_of(end, whole.second, 12.0)
    curve = Curve(start, whole.first, whole.second, tip)
    scene.strokes.append(Stroke(curve, GROUP_COLOUR, 1.8, arrow=True, opacity=0.9))
    if steps and edge.get("step") is not None:
        scene.labels.append(Label(curve.at(0.5), str(edge["step"]), GROUP_COLOUR, 10.0, backed=True))


def _draw_copies(scene: Scene, sketch: Sketch, tree: Mapping[str, Any]) -> None:
    places = sketch.layout.switches
    stack: list[Mapping[str, Any]] = [tree]
    while stack:
        node = stack.pop()
        switch = node["switch"]
        for branch in node.get("branches") or []:
            if "host" in branch:
                end = _edge_of(sketch.hosts[branch["host"]], places[switch], 12.0)
                scene.strokes.append(Stroke(line(places[switch], end), GROUP_COLOUR, 2.4, arrow=True))
                continue
            found = sketch.curve_from(switch, branch["port"]) if "port" in branch else None
            curve = found[0] if found else line(places[switch], places[branch["switch"]])
            scene.strokes.append(Stroke(curve, GROUP_COLOUR, 4.0))
            stack.append(branch)
