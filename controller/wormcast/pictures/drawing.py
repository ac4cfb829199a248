"""From a topology to the shapes of its picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wormcast_planner import RoutingError

from wormcast.counted import counted
from wormcast.pictures.cycles import draw_cycle
from wormcast.pictures.geometry import Curve, Point, bowed, direction, line
from wormcast.pictures.hosts import HOST_DISTANCE_MAX, HOST_RADIUS, HOSTS_DRAWN_MAX, place_hosts
from wormcast.pictures.layout import Layout, place
from wormcast.pictures.overlay import draw_group, draw_routes
from wormcast.pictures.scene import Disc, Label, Scene, Stroke, text_width
from wormcast.pictures.sketch import Sketch
from wormcast.routing.routes import spanning_tree

SWITCH_RADIUS = 16.0
LINK, TREE, SWITCH, ROOT, HOST = "#b3b9c1", "#1f3d5c", "#3b6ea5", "#b5402f", "#f2e3c2"
FADED_LINK, FADED_TREE = "#e3e6ea", "#b1bbc6"
"""Below what is drawn over them."""
# Port numbers are written on pictures of at most so many links.
PORTS_SHOWN_MAX = 40
# How far links bend out of the way of a switch, in the order tried.
BENDS = (0.0, 0.1, -0.1, 0.18, -0.18, 0.28, -0.28, 0.4, -0.4)
CLEARANCE = SWITCH_RADIUS + 4
CELL = 120.0


def draw(
    topology: Mapping[str, Any],
    root: int | None,
    routes: Sequence[Mapping[str, Any]] = (),
    group: Mapping[str, Any] | None = None,
    cycle: Mapping[str, Any] | None = None,
) -> Scene:
    """The picture of a topology, of its spanning tree unless something is drawn over it,
    and of routes, a group and a cycle of channels. Raises `RoutingError`."""
    tree = spanning_tree(topology, root)
    sketch = _sketch(topology, place(topology, tree))
    over = bool(routes) or group is not None or cycle is not None
    scene = Scene(frames=list(sketch.layout.frames))
    _draw_links(scene, sketch, tree, faded=over)
    legend = [("disc", SWITCH, "switch"), ("disc", ROOT, "root")]
    if topology["hosts"]:
        legend.append(("disc", HOST, "host"))
    of_tree, other = _link_colours(faded=over)
    legend += [("line", of_tree, "spanning tree"), ("line", other, "other link")]
    legend += draw_routes(scene, sketch, routes)
    if group is not None:
        legend += _draw_group(scene, sketch, group)
    if cycle is not None:
        legend += draw_cycle(scene, sketch, cycle)
    _draw_nodes(scene, sketch, tree)
    if len(topology["links"]) <= PORTS_SHOWN_MAX:
        _draw_ports(scene, sketch)
    for frame in sketch.layout.frames:
        scene.labels.append(Label(frame.text_at, frame.text, "#66707c", 10.0))
    _draw_legend(scene, legend)
    return scene


def _draw_group(scene: Scene, sketch: Sketch, group: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """A group file may be of another topology, or damaged."""
    if not group.get("edges") and not group.get("tree"):
        raise RoutingError('group: there is nothing to draw; wanted a group file with "edges" or "tree"')
    try:
        strangers = [host for host in group.get("members") or [] if host not in sketch.hosts]
        if strangers:
            raise RoutingError(f"group: member {strangers[0]!r} is not a host of this topology")
        return draw_group(scene, sketch, group)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        text = f"{error} is missing, or not in this topology" if isinstance(error, KeyError) else str(error)
        raise RoutingError(f"group: {text}") from error


def _sketch(topology: Mapping[str, Any], layout: Layout) -> Sketch:
    curves = _curves(topology, layout)
    directions: dict[int, list[float]] = {switch: [] for switch in layout.switches}
    for link, curve in zip(topology["links"], curves, strict=True):
        directions[link["a"]].append(direction(curve.start, curve.from_start(38)))
        if curve.end == layout.switches[link["b"]]:
            directions[link["b"]].append(direction(curve.end, curve.reversed().from_start(38)))
    on: dict[int, list[int]] = {}
    for host in topology["hosts"]:
        on.setdefault(host["switch"], []).append(host["id"])
    hosts: dict[int, Point] = {}
    badges: dict[int, list[int]] = {}
    for switch, found in on.items():
        at, outward = layout.switches[switch], layout.outward.get(switch)
        links = directions[switch] + layout.blocked.get(switch, [])
        places = place_hosts(at, len(found), links, outward)
        if len(found) > HOSTS_DRAWN_MAX or math.dist(at, places[0]) > HOST_DISTANCE_MAX:
            badges[switch] = found
            places = place_hosts(at, 1, links, outward) * len(found)
        hosts.update(zip(found, places, strict=True))
    return Sketch(topology, layout, curves, hosts, badges)


def _curves(topology: Mapping[str, Any], layout: Layout) -> list[Curve]:
    """The curve of every link. One whose line would cross a switch bends; links between
    the same two switches bend apart."""
    near = _Nearby(layout.switches.values())
    parallel: dict[tuple[int, int], int] = {}
    curves = []
    for index, link in enumerate(topology["links"]):
        start, end = layout.switches[link["a"]], layout.switches[link["b"]]
        if index in layout.ghost_ends:
            ghost = layout.ghost_ends[index]
            ends = [
                layout.ghosts[node] if node == ghost else layout.switches[node]
                for node in (link["a"], link["b"])
            ]
            curves.append(line(ends[0], ends[1]))
            continue
        pair = (min(link["a"], link["b"]), max(link["a"], link["b"]))
        number = parallel[pair] = parallel.get(pair, -1) + 1
        given = layout.curves.get(index)
        if given is not None and number == 0:
            curves.append(given)
            continue
        # Of links to and fro between two switches, each bends from the lower one.
        sign = 1 if link["a"] <= link["b"] else -1
        bends = BENDS[number:] if layout.bends else BENDS[number : number + 1]
        curves.append(near.clear_curve(start, end, bends, sign))
    return curves


class _Nearby:
    """Finds switches near a point."""

    def __init__(self, places: Iterable[Point]) -> None:
        self.cells: dict[tuple[int, int], list[Point]] = {}
        for point in places:
            self.cells.setdefault(self._cell(point), []).append(point)

    def _cell(self, point: Point) -> tuple[int, int]:
        return math.floor(point[0] / CELL), math.floor(point[1] / CELL)

    def clear_curve(self, start: Point, end: Point, bends: Sequence[float], sign: int) -> Curve:
        """The least bent curve that keeps clear of all other switches; the first if none does."""
        curves = [bowed(start, end, sign * bend) for bend in bends or BENDS]
        return next((curve for curve in curves if self._is_clear(curve)), curves[0])

    def _is_clear(self, curve: Curve) -> bool:
        count = min(200, max(8, int(math.dist(curve.start, curve.end) / 8)))
        for point in curve.samples(count):
            column, row = self._cell(point)
            for cell in ((column + dx, row + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)):
                for switch in self.cells.get(cell, ()):
                    if switch not in (curve.start, curve.end) and math.dist(switch, point) < CLEARANCE:
                        return False
        return True


def _link_colours(*, faded: bool) -> tuple[str, str]:
    """Of the links of the spanning tree, and of the others."""
    return (FADED_TREE, FADED_LINK) if faded else (TREE, LINK)


def _draw_links(scene: Scene, sketch: Sketch, tree: Mapping[str, Any], *, faded: bool) -> None:
    in_tree = {(a, a_port) for a, a_port, _, _ in tree["links"]}
    in_tree |= {(b, b_port) for _, _, b, b_port in tree["links"]}
    thick, thin = [], []
    of_tree, other = _link_colours(faded=faded)
    for link, curve in zip(sketch.topology["links"], sketch.curves, strict=True):
        title = f"{link['a']}:{link['a_port']} to {link['b']}:{link['b_port']}"
        if (link["a"], link["a_port"]) in in_tree:
            thick.append(Stroke(curve, of_tree, 1.8 if faded else 3.0, title=title))
        else:
            thin.append(Stroke(curve, other, 1.3, title=title))
    for host in sketch.topology["hosts"]:
        if host["switch"] in sketch.badges and host["id"] != sketch.badges[host["switch"]][0]:
            continue
        title = f"{host['switch']}:{host['port']} to host {host['id']}"
        thin.append(
            Stroke(
                line(sketch.layout.switches[host["switch"]], sketch.hosts[host["id"]]), LINK, 1.0, title=title
            )
        )
    scene.strokes += thin + thick


def _draw_nodes(scene: Scene, sketch: Sketch, tree: Mapping[str, Any]) -> None:
    roots = set(tree["roots"])
    names = {switch["id"]: switch.get("name") for switch in sketch.topology["switches"]}
    for switch, point in sketch.layout.ghosts.items():
        scene.discs.append(
            Disc(point, SWITCH_RADIUS, "#ffffff", str(switch), SWITCH, SWITCH, 1.2, dashed=True)
        )
    for switch, point in sketch.layout.switches.items():
        title = f"switch {switch}" + (f": {names[switch]}" if names[switch] else "")
        fill = ROOT if switch in roots else SWITCH
        scene.discs.append(Disc(point, SWITCH_RADIUS, fill, str(switch), "#ffffff", title=title))
    for host in sketch.topology["hosts"]:
        badge = sketch.badges.get(host["switch"])
        point = sketch.hosts[host["id"]]
        if badge is None:
            title = f"host {host['id']}" + (f": {host['name']}" if host.get("name") else "")
            scene.discs.append(Disc(point, HOST_RADIUS, HOST, str(host["id"]), title=title))
        elif host["id"] == badge[0]:
            text = counted(len(badge), "host")
            title = "hosts " + ", ".join(map(str, badge))
            scene.discs.append(
                Disc(point, HOST_RADIUS, HOST, text, half_width=text_width(text) / 1.7 + 1, title=title)
            )


def _draw_ports(scene: Scene, sketch: Sketch) -> None:
    """Port numbers near the ends of links, farther out where another number is."""
    taken: list[Point] = []
    for link, curve in zip(sketch.topology["links"], sketch.curves, strict=True):
        for end, port in ((curve, link["a_port"]), (curve.reversed(), link["b_port"])):
            places = [end.from_start(SWITCH_RADIUS + distance) for distance in (9, 20, 31, 42)]
            free = [point for point in places if all(math.dist(point, other) > 10 for other in taken)]
            taken.append(free[0] if free else places[0])
            scene.labels.append(Label(taken[-1], str(port), "#555555", 8.0, backed=True))


def _draw_legend(scene: Scene, entries: Sequence[tuple[str, str, str]]) -> None:
    """Rows below the picture."""
    left, top, width, height = scene.extent(0)
    x, y = left, top + height + 30
    for shape, colour, text in entries:
        room = 40 + text_width(text)
        if x > left and x + room > left + max(width, 520):
            x, y = left, y + 20
        if shape == "disc":
            scene.discs.append(Disc((x + 8, y), 6.0, colour))
        else:
            scene.strokes.append(Stroke(line((x, y), (x + 17, y)), colour, 3.0))
        scene.labels.append(Label((x + 22, y), text, anchor="start"))
        x += room
