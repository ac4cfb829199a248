"""A cycle of channels as a picture: alone, or over its topology."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from wormcast_planner import RoutingError

from wormcast.pictures.geometry import Curve, Point, bowed, line
from wormcast.pictures.overlay import LegendEntry
from wormcast.pictures.scene import Disc, Label, Scene, Stroke, text_width
from wormcast.pictures.sketch import Sketch
from wormcast.verify.ring import Hop, hops_of
from wormcast.verify.verdicts import waits

CYCLE_COLOUR = "#c0202f"
NODE, NODE_TEXT = "#3b6ea5", "#ffffff"
NODE_RADIUS = 18.0
SPACE_BETWEEN = 110.0
"""From one node of a ring to the next."""
LINES_MAX = 60
"""Waits that are written below a picture."""


def cycle_scene(verdict: Mapping[str, Any]) -> Scene:
    """The ring of a verify file that shows a deadlock, and below it who waits for whom.
    Raises `RoutingError` if there is none, or if it leads through hosts' buffers."""
    hops = _hops(verdict)
    radius = max(80.0, len(hops) * SPACE_BETWEEN / math.tau)
    # The first node is at the top, the others follow clockwise.
    turns = [math.tau * place / len(hops) - math.pi / 2 for place in range(len(hops))]
    points = [(radius * math.cos(turn), radius * math.sin(turn)) for turn in turns]
    scene = Scene()
    for number, hop in enumerate(hops):
        start, end = points[number], points[(number + 1) % len(hops)]
        _draw_edge(scene, bowed(start, end, -0.12), hop, number + 1)
    for hop, point in zip(hops, points, strict=True):
        half = max(NODE_RADIUS, text_width(hop.name) / 2 + 8)
        scene.discs.append(Disc(point, NODE_RADIUS, NODE, hop.name, NODE_TEXT, half_width=half))
    _write_waits(scene, verdict)
    return scene


def draw_cycle(scene: Scene, sketch: Sketch, verdict: Mapping[str, Any]) -> list[LegendEntry]:
    """The channels of the cycle as numbered arrows along their links. Raises `RoutingError`
    if the cycle is of another topology."""
    _hops(verdict)
    found = next(filter(None, (_curves(sketch, verdict["cycle"], first) for first in (0, 1))), None)
    if found is None:
        raise RoutingError("cycle: its channels are not in this topology")
    for number, curve in enumerate(found, 1):
        scene.strokes.append(Stroke(_shortened(curve, NODE_RADIUS + 2), CYCLE_COLOUR, 4.0, arrow=True))
        scene.labels.append(Label(curve.at(0.5), str(number), CYCLE_COLOUR, 12.0, backed=True))
    return [("line", CYCLE_COLOUR, text) for text in waits(verdict)[:LINES_MAX]]


def _hops(verdict: Mapping[str, Any]) -> list[Hop]:
    if verdict.get("deadlock_free", True) or not (hops := hops_of(verdict["cycle"])):
        raise RoutingError("cycle: this file shows no cycle of channels")
    return hops


def _curves(sketch: Sketch, cycle: Sequence[Mapping[str, Any]], first_port: int) -> list[Curve] | None:
    """Where the links of the cycle are, if ports are numbered from `first_port` in it."""
    ids = {switch.get("name", f"s{switch['id']}"): switch["id"] for switch in sketch.topology["switches"]}
    curves = []
    for wait in cycle:
        start, end = wait["channel"]["from"], wait["channel"]["to"]
        if "switch" in start and "switch" in end:
            switch, port, to = start["switch"], start["port"], end["switch"]
        else:
            switch, to = ids.get(start.get("node")), ids.get(end.get("node"))
            digits = str(start.get("port", ""))
            port = int(digits) - first_port if digits.isdecimal() else None
        curve = _curve(sketch, switch, port, to)
        if curve is None:
            return None
        curves.append(curve)
    return curves


def _curve(sketch: Sketch, switch: int | None, port: int | None, to: int | None) -> Curve | None:
    """A link by its port; without a port the only one between two switches."""
    if switch is None or to is None:
        return None
    ports = [
        mine
        for link in sketch.topology["links"]
        for a, mine, b in ((link["a"], link["a_port"], link["b"]), (link["b"], link["b_port"], link["a"]))
        if (a, b) == (switch, to) and port in (None, mine)
    ]
    found = sketch.curve_from(switch, ports[0]) if ports else None
    return found[0] if found else None


def _draw_edge(scene: Scene, curve: Curve, hop: Hop, number: int) -> None:
    scene.strokes.append(Stroke(_shortened(curve, NODE_RADIUS + 5), CYCLE_COLOUR, 3.0, arrow=True))
    scene.labels.append(Label(curve.at(0.5), str(number), CYCLE_COLOUR, 12.0, backed=True))
    ends: Sequence[tuple[Point, str]] = (
        (curve.from_start(NODE_RADIUS + 16), hop.port_out),
        (curve.reversed().from_start(NODE_RADIUS + 22), hop.port_in),
    )
    for point, port in ends:
        if port:
            scene.labels.append(Label(point, port, "#555555", 9.0, backed=True))


def _shortened(curve: Curve, by: float) -> Curve:
    """The curve, ended so far before its end."""
    end = curve.reversed().from_start(by)
    return line(curve.start, end) if curve.is_straight else Curve(curve.start, curve.first, curve.second, end)


def _write_waits(scene: Scene, verdict: Mapping[str, Any]) -> None:
    left, top, _, height = scene.extent(0)
    for place, text in enumerate(waits(verdict)[:LINES_MAX]):
        scene.labels.append(Label((left, top + height + 30 + 17 * place), text, anchor="start"))
