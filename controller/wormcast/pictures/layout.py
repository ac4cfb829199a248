"""Where to draw switches, by kind of topology, and which links bend."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wormcast.pictures.geometry import Curve, Point, polar, raised
from wormcast.pictures.hosts import HOSTS_DRAWN_MAX
from wormcast.pictures.scene import Frame

SPACING = 110.0
GRID_SPACING = 130.0
TIER_HEIGHT = 190.0
RING_STEP = 130.0
# How much more the parent counts than other neighbours when a switch is put on its ring.
PARENT_WEIGHT = 2
UP, DOWN, LEFT, RIGHT = -math.pi / 2, math.pi / 2, math.pi, 0.0


@dataclass
class Layout:
    """Places of switches, and what goes with them."""

    switches: dict[int, Point]
    curves: dict[int, Curve] = field(default_factory=dict)
    """By place of the link in the list of links; the others are straight, or bend where a
    switch is in the way."""
    blocked: dict[int, list[float]] = field(default_factory=dict)
    """Directions from a switch that hosts keep clear of, besides those of its links."""
    outward: dict[int, float] = field(default_factory=dict)
    """The direction hosts prefer."""
    frames: list[Frame] = field(default_factory=list)
    bends: bool = True
    """Whether links may bend out of the way of switches."""
    ghosts: dict[int, Point] = field(default_factory=dict)
    """Second places of switches at which links from the other side end."""
    ghost_ends: dict[int, int] = field(default_factory=dict)
    """Links that end at a ghost: place of the link, the switch whose ghost it is."""


def place(topology: Mapping[str, Any], tree: Mapping[str, Any]) -> Layout:
    """The layout that suits the kind of topology the file says it was made from; a grid if
    it has one; else rings around the root."""
    ids: list[int] = [switch["id"] for switch in topology["switches"]]
    kind, *numbers = str(topology.get("kind") or "").split(":")
    radix = (topology.get("grid") or {}).get("radix") or []
    if len(ids) == 1:
        return Layout({ids[0]: (0.0, 0.0)})
    if radix and not (len(radix) == 1 and kind.endswith("torus")):
        return _grid(topology, ids, radix)
    parameters = [int(number) for number in numbers if number.isdecimal()]
    if kind in ("ring", "testbed", "full-mesh", "torus", "unidirectional-torus"):
        return _circle(ids)
    if kind == "line":
        return Layout(
            {switch: (SPACING * place, 0.0) for place, switch in enumerate(ids)},
            outward=dict.fromkeys(ids, DOWN),
        )
    if kind == "star":
        return _star(ids)
    tiers = _tiers(kind, parameters)
    if tiers and sum(tiers) > max(ids):
        return _in_tiers(topology, ids, tiers)
    if kind == "dragonfly" and parameters and parameters[0] > 0:
        return _groups(topology, ids, parameters[0])
    if (
        kind == "shufflenet"
        and len(parameters) > 1
        and parameters[1] * parameters[0] ** parameters[1] > max(ids)
    ):
        return _columns(topology, ids, parameters[0] ** parameters[1], parameters[1])
    return _rings(topology, tree)


def _circle(ids: list[int], spacing: float = SPACING) -> Layout:
    radius = max(90.0, spacing / (2 * math.sin(math.pi / len(ids))))
    turns = {switch: UP + 2 * math.pi * place / len(ids) for place, switch in enumerate(ids)}
    return Layout(
        {switch: polar((0, 0), turn, radius) for switch, turn in turns.items()},
        outward=turns,
    )


def _star(ids: list[int]) -> Layout:
    around = _circle(ids[1:]) if len(ids) > 2 else Layout({ids[-1]: (SPACING, 0.0)}, outward={ids[-1]: RIGHT})
    around.switches = {ids[0]: (0.0, 0.0), **around.switches}
    if len(ids) < 6:
        around.outward[ids[0]] = UP
    return around


def _grid(topology: Mapping[str, Any], ids: list[int], radix: list[int]) -> Layout:
    """Rows and columns; more dimensions as `_grid_steps` says."""
    most = max((len(found) for found in _hosts_by_switch(topology).values()), default=0)
    steps = _grid_steps(radix, GRID_SPACING + 12.0 * max(0, min(most, HOSTS_DRAWN_MAX) - 4))
    coordinates = {switch: _coordinates(switch, radix) for switch in ids}
    layout = Layout(
        {
            switch: (
                sum(step[0] * at for step, at in zip(steps, place, strict=True)),
                sum(step[1] * at for step, at in zip(steps, place, strict=True)),
            )
            for switch, place in coordinates.items()
        }
    )
    for index, link in enumerate(topology["links"]):
        a, b = coordinates[link["a"]], coordinates[link["b"]]
        apart = [dimension for dimension in range(len(radix)) if a[dimension] != b[dimension]]
        if len(apart) != 1 or abs(a[apart[0]] - b[apart[0]]) < 2:
            continue
        # Rows wrap above, columns on the left; high enough to pass the switches between.
        height = 34 + 6 * math.sqrt(abs(a[apart[0]] - b[apart[0]]))
        by = [(0.0, -height), (-height, 0.0), (-height, -height)][min(apart[0], 2)]
        layout.curves[index] = raised(layout.switches[link["a"]], layout.switches[link["b"]], by)
    if layout.curves:
        for switch in ids:
            layout.blocked[switch] = [UP, LEFT, (UP + LEFT) / 2 + math.pi, UP - 0.7, UP + 0.7, LEFT - 0.7]
    layout.outward = dict.fromkeys(ids, math.pi / 4)
    return layout


def _grid_steps(radix: list[int], spacing: float) -> list[Point]:
    """The step of every dimension. The third leads into the depth, up and to the right;
    whole cubes stand side by side, then above each other."""
    depth = radix[2] if len(radix) > 2 else 0
    side = spacing * (1 + 0.55 * depth)
    steps = [(side, 0.0), (0.0, side), (0.62 * spacing, -0.5 * spacing)][: len(radix)]
    size = [
        side * radix[0] + spacing * depth,
        side * (radix[1] if len(radix) > 1 else 1) + spacing * depth,
    ]
    for dimension in range(3, len(radix)):
        axis = (dimension - 3) % 2
        skew = 0.3 * spacing
        steps.append((size[0], skew) if axis == 0 else (skew, size[1]))
        size[axis] *= radix[dimension]
    return steps


def _coordinates(switch: int, radix: list[int]) -> list[int]:
    place = []
    for count in radix:
        place.append(switch % count)
        switch //= count
    return place


def _tiers(kind: str, numbers: list[int]) -> list[int]:
    """Switches of each tier, from the lowest."""
    if kind == "fat-tree" and numbers:
        half = numbers[0] // 2
        return [numbers[0] * half, numbers[0] * half, half * half]
    if kind == "clos2" and len(numbers) > 1:
        return numbers[:2]
    if kind == "clos3" and len(numbers) > 3:
        return [numbers[0] * numbers[1], numbers[0] * numbers[2], numbers[3]]
    return []


def _in_tiers(topology: Mapping[str, Any], ids: list[int], tiers: list[int]) -> Layout:
    """Leaves below with their hosts under them, so far apart in height that a link to the
    farthest switch passes clear of the one beside that."""
    most = max((len(found) for found in _hosts_by_switch(topology).values()), default=0)
    spacing = 64.0 if most > HOSTS_DRAWN_MAX or most < 2 else max(64.0, 20.0 * most + 22)
    width = max(spacing * tiers[0], 56.0 * max(tiers))
    height = max(TIER_HEIGHT, min(22.0 * max(tiers), width / 2.5))
    above = [UP + math.pi / 2 * share for share in (-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1)]
    layout = Layout({}, bends=False)
    present = set(ids)
    first = 0
    for tier, count in enumerate(tiers):
        for switch in range(first, first + count):
            if switch in present:
                layout.switches[switch] = (width * (switch - first + 0.5) / count, -height * tier)
                layout.outward[switch] = DOWN if tier == 0 else UP
                layout.blocked[switch] = above if tier == 0 else []
        first += count
    return layout


def _groups(topology: Mapping[str, Any], ids: list[int], a: int) -> Layout:
    """Groups on a large circle, the switches of each on a small one."""
    groups = sorted({switch // a for switch in ids})
    hosts = max((len(found) for found in _hosts_by_switch(topology).values()), default=0)
    inner = max(46.0 if a > 1 else 0.0, 74.0 / (2 * math.sin(math.pi / a)) if a > 1 else 0.0)
    reach = inner + (78.0 if hosts else 34.0)
    outer = (reach + 12) / math.sin(math.pi / len(groups)) if len(groups) > 1 else 0.0
    layout = Layout({})
    for place, group in enumerate(groups):
        turn = UP + 2 * math.pi * place / len(groups)
        centre = polar((0, 0), turn, outer)
        layout.frames.append(Frame(centre, reach, f"group {group}", polar(centre, turn, reach - 10)))
        for number in range(a):
            switch = group * a + number
            if switch in ids:
                angle = turn + 2 * math.pi * (number + 0.5) / a
                layout.switches[switch] = polar(centre, angle, inner)
                layout.outward[switch] = angle
    return layout


def _columns(topology: Mapping[str, Any], ids: list[int], rows: int, columns: int) -> Layout:
    """Columns from left to right; links of the last to the first end at a second, dashed
    picture of the first."""
    hosts = max((min(len(found), 8) for found in _hosts_by_switch(topology).values()), default=0)
    high, wide = max(64.0, 106.0 + 7.0 * hosts), max(200.0, 20.0 * rows)
    layout = Layout({switch: (wide * (switch // rows), high * (switch % rows)) for switch in ids})
    layout.ghosts = {switch: (wide * columns, high * switch) for switch in ids if switch < rows}
    for index, link in enumerate(topology["links"]):
        columns_of = {link["a"] // rows, link["b"] // rows}
        if columns > 2 and columns_of == {0, columns - 1}:
            layout.ghost_ends[index] = min(link["a"], link["b"])
    if columns == 2:
        layout.ghosts = {}
    layout.outward = dict.fromkeys(ids, UP)
    return layout


def _rings(topology: Mapping[str, Any], tree: Mapping[str, Any]) -> Layout:
    """Rings around the root, one for each level of the spanning tree. Parts of a split
    fabric stand side by side."""
    hosts = _hosts_by_switch(topology)
    counts = {switch["id"]: len(hosts.get(switch["id"], [])) for switch in topology["switches"]}
    neighbours: dict[int, set[int]] = {switch: set() for switch in counts}
    for link in topology["links"]:
        neighbours[link["a"]].add(link["b"])
        neighbours[link["b"]].add(link["a"])
    parents = {child: parent for parent, _, child, _ in tree["links"]}
    layout = Layout({})
    right = 0.0
    for root in tree["roots"]:
        part = _ring_part(root, _levels(root, neighbours), neighbours, parents, counts)
        left = min(x for x, _ in part.values())
        shift = right - left if layout.switches else 0.0
        for switch, (x, y) in part.items():
            layout.switches[switch] = (x + shift, y)
            layout.outward[switch] = math.atan2(y, x) if (x, y) != (0.0, 0.0) else UP
        right = max(x for x, _ in layout.switches.values()) + 2 * SPACING
    return layout


def _levels(root: int, neighbours: Mapping[int, set[int]]) -> dict[int, int]:
    """Distances from the root, nearest first."""
    levels = {root: 0}
    queue = [root]
    for switch in queue:
        for other in sorted(neighbours[switch]):
            if other not in levels:
                levels[other] = levels[switch] + 1
                queue.append(other)
    return levels


def _ring_part(
    root: int,
    levels: Mapping[int, int],
    neighbours: Mapping[int, set[int]],
    parents: Mapping[int, int],
    hosts: Mapping[int, int],
) -> dict[int, Point]:
    """Every level evenly on its ring, in the order of the mean direction of the neighbours
    one level up, and turned so that they are as near to it as can be."""
    at: dict[int, Point] = {root: (0.0, 0.0)}
    radius = 0.0
    for level in range(1, 1 + max(levels.values())):
        ring = sorted(switch for switch, found in levels.items() if found == level)
        wanted = {switch: UP + 2 * math.pi * place / len(ring) for place, switch in enumerate(ring)}
        if level > 1:
            for switch in ring:
                above = [other for other in sorted(neighbours[switch]) if levels[other] == level - 1]
                # The link of the spanning tree should be the shortest.
                above += [parents[switch]] * PARENT_WEIGHT
                angles = [math.atan2(at[other][1], at[other][0]) for other in above]
                wanted[switch] = _mean(angles)
            ring.sort(key=lambda switch: (wanted[switch], switch))
        room = 72.0 + 8.0 * min(HOSTS_DRAWN_MAX, max(hosts[switch] for switch in ring))
        radius = max(radius + RING_STEP, room * len(ring) / (2 * math.pi))
        step = 2 * math.pi / len(ring)
        turn = _mean([wanted[switch] - step * place for place, switch in enumerate(ring)])
        for place, switch in enumerate(ring):
            at[switch] = polar((0, 0), turn + step * place, radius)
    return at


def _mean(angles: list[float]) -> float:
    return math.atan2(sum(map(math.sin, angles)), sum(map(math.cos, angles)))


def _hosts_by_switch(topology: Mapping[str, Any]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for host in topology["hosts"]:
        found.setdefault(host["switch"], []).append(host["id"])
    return found
