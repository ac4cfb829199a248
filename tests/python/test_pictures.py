"""Pictures: everything is on them, nothing lies on something else, the same every time."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from wormcast import pictures, routing
from wormcast.pictures import draw
from wormcast.pictures.hosts import HOST_RADIUS
from wormcast.pictures.scene import Disc, Scene

SVG = "{http://www.w3.org/2000/svg}"
SPECS = [
    "testbed",
    "line:6:3",
    "ring:3:4",
    "ring:20:2",
    "star:9:3",
    "full-mesh:8:4",
    "torus:4",
    "torus:8x3:3",
    "torus:3x3x3",
    "torus:2x3x2x2",
    "torus:5:8",
    "unidirectional-torus:4",
    "mesh:4x3:4",
    "fat-tree:4",
    "fat-tree:8",
    "clos2:6:3:5",
    "clos3:4:4:4:16:12",
    "dragonfly:4:2:2",
    "dragonfly:3:2:2:2",
    "shufflenet:2:3:2",
    "shufflenet:2:2",
    "irregular:4:1",
    "irregular:16:1",
    "irregular:64:2",
]
CLEAR_OF_LINKS = ["testbed", "line:6:3", "ring:20:2", "star:9:3", "torus:4", "torus:3x3x3", "mesh:4x3:4",
                  "fat-tree:4", "fat-tree:8", "clos2:6:3:5", "irregular:16:1"]  # fmt: skip


def nodes(scene: Scene) -> list[Disc]:
    """Switches and hosts, the legend left out."""
    bottom = max(disc.centre[1] for disc in scene.discs if disc.title)
    return [disc for disc in scene.discs if disc.centre[1] <= bottom and (disc.title or disc.dashed)]


def apart(one: Disc, other: Disc) -> bool:
    dx, dy = abs(one.centre[0] - other.centre[0]), abs(one.centre[1] - other.centre[1])
    if one.half_width is None and other.half_width is None:
        return math.hypot(dx, dy) >= one.radius + other.radius
    wide = (one.half_width or one.radius) + (other.half_width or other.radius)
    return dx >= wide or dy >= one.radius + other.radius


@pytest.mark.parametrize("spec", SPECS)
def test_nothing_lies_on_something_else(spec: str) -> None:
    topology = routing.make(spec)
    scene = draw(topology, None)
    found = nodes(scene)
    badges = [disc for disc in found if disc.half_width is not None]
    switches = [disc for disc in found if disc.radius > HOST_RADIUS and not disc.dashed]
    assert len(switches) == len(topology["switches"])
    hosts = [disc for disc in found if disc.radius == HOST_RADIUS and disc.half_width is None]
    assert len(hosts) + sum(int(disc.text.split()[0]) for disc in badges) == len(topology["hosts"])
    for index, one in enumerate(found):
        for other in found[index + 1 :]:
            assert apart(one, other), f"{one.title} on {other.title}"
    left, top, width, height = scene.extent(0)
    for disc in found:
        assert left <= disc.centre[0] <= left + width
        assert top <= disc.centre[1] <= top + height


@pytest.mark.parametrize("spec", CLEAR_OF_LINKS)
def test_no_link_crosses_a_switch(spec: str) -> None:
    topology = routing.make(spec)
    scene = draw(topology, None)
    switches = [disc for disc in nodes(scene) if disc.radius > HOST_RADIUS]
    for stroke in scene.strokes:
        if "host" in stroke.title or not stroke.title:
            continue
        for disc in switches:
            if disc.centre in (stroke.curve.start, stroke.curve.end):
                continue
            nearest = min(math.dist(point, disc.centre) for point in stroke.curve.samples(60))
            assert nearest > disc.radius, f"{stroke.title} crosses {disc.title}"


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_links_of_the_tree_root_and_ports_are_marked() -> None:
    topology = routing.make("testbed")
    scene = draw(topology, 2)
    widths = {stroke.title: stroke.width for stroke in scene.strokes if stroke.title}
    tree = routing.spanning_tree(topology, 2)
    thick = {title for title, width in widths.items() if width == 3.0}
    assert len(thick) == len(tree["links"]) == 3
    for a, a_port, b, b_port in tree["links"]:
        assert thick & {f"{a}:{a_port} to {b}:{b_port}", f"{b}:{b_port} to {a}:{a_port}"}
    roots = [disc.text for disc in scene.discs if disc.title and disc.fill == "#b5402f"]
    assert roots == ["2"]
    svg = pictures.svg(topology, 2)
    assert svg == pictures.svg(topology, 2)
    for legend in ("switch", "root", "host", "spanning tree", "other link"):
        assert legend in texts(svg)
    # Ports 4 and 5 of every switch, besides host or switch 4 and 5.
    assert texts(svg).count("4") == texts(svg).count("5") == 5
    assert "group 0" in texts(pictures.svg(routing.make("dragonfly:4:2:2")))


def test_names_are_told() -> None:
    topology = routing.make("line:2")
    topology["switches"][1]["name"] = "leaf <2>"
    topology["hosts"][0]["name"] = "a&b"
    titles = [title.text for title in ET.fromstring(pictures.svg(topology)).iter(f"{SVG}title")]
    assert "switch 1: leaf <2>" in titles
    assert "host 0: a&b" in titles


def test_a_topology_whose_kind_says_something_else_is_drawn() -> None:
    """A kind is a hint; ids that do not fit it fall back to rings."""
    topology = routing.make("irregular:12:1")
    for kind in [
        "fat-tree:2",
        "clos3:1:1",
        "shufflenet:2:2",
        "dragonfly:0:1",
        "star",
        "torus:x",
        "ring",
        ":::",
        "star:3",
    ]:
        topology["kind"] = kind
        assert "<svg" in pictures.svg(topology)
    split = routing.damage(routing.make("testbed"), links=[(0, 4), (2, 4)])
    assert "<svg" in pictures.svg(split)
    lone = routing.damage(routing.make("torus:3"), switches=range(1, 9))
    assert "<svg" in pictures.svg(lone)


def test_routes_lie_on_their_links() -> None:
    topology = routing.make("irregular:16:1")
    routes = [routing.route(topology, 0, 47), routing.route(topology, 8, 21)]
    scene = draw(topology, None, routes)
    plain = draw(topology, None)
    curves = {}
    for stroke in plain.strokes:
        curves[stroke.curve] = stroke.title
        curves[stroke.curve.reversed()] = stroke.title
    for route, colour in zip(routes, ("#d1492e", "#2e8b57"), strict=True):
        drawn = [stroke for stroke in scene.strokes if stroke.colour == colour and stroke.opacity < 1]
        assert len(drawn) == len(route["switches"]) + 1
        assert drawn[-1].arrow
        for stroke, switch, port in zip(drawn[1:-1], route["switches"], route["ports"], strict=False):
            assert f"{switch}:{port}" in curves[stroke.curve].split(" to ")
    assert "route 0 to 47" in texts(pictures.svg(topology, routes=routes))


@pytest.mark.parametrize("pairs", [[], [(0, 5)]])
def test_the_legend_shows_lines_as_they_are_drawn(pairs: list[tuple[int, int]]) -> None:
    """Links are paler below routes."""
    topology = routing.make("testbed")
    scene = draw(topology, None, [routing.route(topology, src, dst) for src, dst in pairs])
    links = [stroke.colour for stroke in scene.strokes if stroke.title and "host" not in stroke.title]
    shown = [stroke for stroke in scene.strokes if not stroke.title and stroke.opacity == 1]
    assert {stroke.colour for stroke in shown} >= set(links)
    assert len(set(links)) == 2


@pytest.mark.parametrize("scheme", routing.schemes())
def test_groups_are_drawn(scheme: str) -> None:
    topology = routing.make("testbed")
    try:
        group = routing.group(topology, {"scheme": scheme, "source": 1, "members": [1, 3, 4, 6]})
    except routing.RoutingError as error:
        pytest.skip(str(error))
    scene = draw(topology, None, group=group)
    arrows = [stroke for stroke in scene.strokes if stroke.arrow]
    copied = len(topology["hosts"]) if scheme == "broadcast" else 3
    wanted = copied if group.get("tree") else len(group["edges"])
    assert len(arrows) == wanted
    assert "source" in texts(pictures.svg(topology, group=group))


def test_png() -> None:
    topology = routing.make("torus:3")
    image = pictures.png(topology, routes=[routing.route(topology, 0, 5)])
    assert image.startswith(b"\x89PNG")
    assert image == pictures.png(topology, routes=[routing.route(topology, 0, 5)])


@pytest.mark.parametrize(
    ("scheme", "more"),
    [
        ("repeat", {}),
        ("tree", {"fan_out": 3}),
        ("k-binomial", {}),
        ("switch", {}),
        ("circuit", {"variant": "return"}),
    ],
)
def test_lines_of_a_group_pass_by_all_other_hosts(scheme: str, more: dict[str, object]) -> None:
    asked = {"scheme": scheme, "source": 0, "members": list(range(64)), **more}
    shapes = list(ET.fromstring(pictures.group_svg(routing.group(routing.make("torus:8"), asked))))
    circles = [(float(it.get("cx", 0)), float(it.get("cy", 0))) for it in shapes if it.tag.endswith("circle")]
    ways = [it.get("d", "") for it in shapes if it.tag.endswith("path")]
    assert len(circles) >= 64 <= len(ways) + 1
    for way in ways:
        points = _corners(way)
        assert {points[0], points[-1]} <= set(circles)
        for x, y in set(circles) - {points[0], points[-1]}:
            for (x1, y1), (x2, y2) in pairwise(points):
                assert x1 == x2 or y1 == y2
                near = min(max(x, min(x1, x2)), max(x1, x2)), min(max(y, min(y1, y2)), max(y1, y2))
                assert math.dist(near, (x, y)) > 14, f"{way} crosses the host at {x}, {y}"


def _corners(way: str) -> list[tuple[float, float]]:
    """Of a path of M, H and V."""
    points: list[tuple[float, float]] = []
    for step in way.split():
        kind, at = step[0], step[1:]
        x, y = points[-1] if points else (0.0, 0.0)
        if kind == "M":
            x, y = (float(part) for part in at.split(","))
        elif kind == "H":
            x = float(at)
        else:
            assert kind == "V"
            y = float(at)
        points.append((x, y))
    return points


def test_numbers_of_a_group_lie_on_no_line() -> None:
    """Each has a white box behind it, in front of all lines."""
    topology = routing.make("irregular:16:1")
    for scheme in ("tree", "repeat", "switch"):
        members = list(range(64))
        group = routing.group(topology, {"scheme": scheme, "source": 0, "members": members})
        shapes = list(ET.fromstring(pictures.group_svg(group)))
        tags = [shape.tag.rsplit("}", 1)[-1] for shape in shapes]
        boxes = [place for place, tag in enumerate(tags) if tag == "rect"]
        assert len(boxes) == tags.count("path") >= 63
        assert min(boxes) > max(place for place, tag in enumerate(tags) if tag == "path")
        for place in boxes:
            box, number = shapes[place], shapes[place + 1]
            x, y = float(number.get("x", 0)), float(number.get("y", 0))
            left, top = float(box.get("x", 0)), float(box.get("y", 0))
            assert left < x < left + float(box.get("width", 0))
            assert top < y <= top + float(box.get("height", 0))
