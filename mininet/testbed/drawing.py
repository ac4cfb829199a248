"""Pictures of a topology, its spanning tree and a group's structures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from wormcast import pictures, routing

Point = tuple[float, float]
Arrow = tuple[Point, Point, int | None]
HOST_COLOUR, TREE_COLOUR = "#f2e3c2", "#1f3d5c"
ARC_BEND = 0.15
HOST_ROOM = 0.33
"""Along the ring for a host with its name. All lengths are inches on the picture."""
GAP_ROOM = 0.2
"""Between the hosts of one switch and those of the next."""
RADIUS_MIN, RADIUS_MAX = 1.5, 4.2
"""Of the ring of hosts. Where the greatest is too small for names, hosts are dots."""
SWITCHES_INSIDE = 0.6
MARGIN = 0.3
NUMBERS_MAX = 40
"""Most arrows of a picture that have the numbers of their steps."""
NUMBER_ROOM = 0.17
ALONG_ARC = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)
BESIDE_ARC = (0.0, 0.16, -0.16)


@dataclass(frozen=True)
class Places:
    """Where switches and hosts are: hosts on a ring, those of one switch side by side, switches inside of it."""

    switches: dict[int, Point]
    hosts: dict[int, Point]
    radius: float
    named: bool
    """Whether hosts have room for their names."""


def place(topology: dict[str, Any]) -> Places:
    """The same input gives the same places."""
    hosts = {switch["id"]: [] for switch in topology["switches"]}  # type: dict[int, list[int]]
    for host in topology["hosts"]:
        hosts[host["switch"]].append(host["id"])
    # A switch without hosts has the room of one.
    rooms = {switch: HOST_ROOM * max(1, len(own)) + GAP_ROOM for switch, own in hosts.items()}
    around = sum(rooms.values())
    wanted = around / (2 * math.pi)
    radius = min(max(wanted, RADIUS_MIN), RADIUS_MAX)
    at_switch: dict[int, Point] = {}
    at_host: dict[int, Point] = {}
    begun = 0.0

    def at(along: float, distance: float) -> Point:
        angle = math.pi / 2 - 2 * math.pi * along / around
        return distance * math.cos(angle), distance * math.sin(angle)

    for switch, own in hosts.items():
        middle = begun + rooms[switch] / 2
        inside = 0.0 if len(hosts) == 1 else radius - SWITCHES_INSIDE
        at_switch[switch] = at(middle, inside)
        for index, host in enumerate(own):
            at_host[host] = at(middle + HOST_ROOM * (index - (len(own) - 1) / 2), radius)
        begun += rooms[switch]
    return Places(at_switch, at_host, radius, wanted <= RADIUS_MAX)


def draw_fabric(topology: dict[str, Any], path: Path) -> None:
    """The topology with its spanning tree, into a PNG."""
    path.write_bytes(pictures.png(topology))


def draw_groups(topology: dict[str, Any], schemes: list[str], source: int, packets: int, path: Path) -> None:
    """Who sends to whom under each scheme for a message of so many packets, into a PNG."""
    places = place(topology)
    columns = min(3, len(schemes))
    rows = math.ceil(len(schemes) / columns)
    side = 2 * (places.radius + MARGIN)
    figure, panels = plt.subplots(rows, columns, figsize=(side * columns, (side + 0.3) * rows), squeeze=False)
    figure.subplots_adjust(
        left=0, right=1, bottom=0, top=1 - 0.3 / ((side + 0.3) * rows), wspace=0, hspace=0.3 / side
    )
    for index in range(rows * columns):
        axes = panels[index // columns][index % columns]
        if index < len(schemes):
            _draw_group(axes, topology, places, schemes[index], source, packets)
        else:
            axes.set_axis_off()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_group(
    axes: Axes, topology: dict[str, Any], places: Places, scheme: str, source: int, packets: int
) -> None:
    at_switch, at_host = places.switches, places.hosts
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
    arrows: list[Arrow] = (
        _tree_arrows(group["tree"], at_switch, at_host)
        if group.get("tree")
        else [(at_host[edge["from"]], at_host[edge["to"]], edge.get("step")) for edge in group["edges"]]
    )
    if group.get("tree"):
        first = next(h for h in topology["hosts"] if h["id"] == source)
        arrows.insert(0, (at_host[source], at_switch[first["switch"]], None))
    bend = 0.0 if group.get("tree") else ARC_BEND
    for start, end, _ in arrows:
        axes.annotate(
            "",
            xy=end,
            xytext=start,
            arrowprops={
                "arrowstyle": "-|>",
                "color": TREE_COLOUR,
                "shrinkA": 8 if places.named else 2,
                "shrinkB": 8 if places.named else 2,
                "connectionstyle": f"arc3,rad={bend}",
            },
        )
    if len(arrows) <= NUMBERS_MAX:
        _number(axes, arrows, [*at_host.values()])
    for host, point in at_host.items():
        _host(axes, host, point, places.named, marked=host == source)
    axes.set_title(scheme, pad=2)
    reach = places.radius + MARGIN
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _number(axes: Axes, arrows: list[Arrow], hosts: list[Point]) -> None:
    """Writes the step of each arrow on its arc, where no other arc, number or host is near."""
    arcs = [[_on_arc(start, end, step / 12, 0.0) for step in range(13)] for start, end, _ in arrows]
    taken = list(hosts)
    for number, (start, end, step) in enumerate(arrows):
        if step is None:
            continue
        others = [point for other, arc in enumerate(arcs) if other != number for point in arc]
        best, most = start, -1.0
        for beside in BESIDE_ARC:
            for along in ALONG_ARC:
                spot = _on_arc(start, end, along, beside)
                room = min((math.dist(spot, point) for point in taken), default=NUMBER_ROOM)
                free = min((math.dist(spot, point) for point in others), default=NUMBER_ROOM)
                score = min(room, NUMBER_ROOM) * 2 + min(free, NUMBER_ROOM) - abs(beside)
                if score > most + 1e-9:
                    best, most = spot, score
        taken.append(best)
        box = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"}
        axes.text(*best, str(step), fontsize=7, color="#a53b3b", ha="center", va="center", zorder=4, bbox=box)


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


def _on_arc(start: Point, end: Point, along: float, beside: float) -> Point:
    """A place on the arc that arc3 with ARC_BEND draws, or so far beside it."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy) or 1.0
    control = (start[0] + end[0]) / 2 + ARC_BEND * dy, (start[1] + end[1]) / 2 - ARC_BEND * dx
    shares = (1 - along) ** 2, 2 * along * (1 - along), along**2
    x, y = (
        sum(share * point[axis] for share, point in zip(shares, (start, control, end), strict=True))
        for axis in (0, 1)
    )
    return x + beside * dy / length, y - beside * dx / length


def _line(axes: Axes, start: Point, end: Point, colour: str, width: float) -> None:
    axes.plot(
        [start[0], end[0]],
        [start[1], end[1]],
        color=colour,
        linewidth=width,
        zorder=1,
        solid_capstyle="round",
    )


def _host(axes: Axes, host: int, point: Point, named: bool, *, marked: bool = False) -> None:
    colour = "#e0a83c" if marked else HOST_COLOUR
    if not named:
        axes.plot(
            *point, "o", color=colour, markeredgecolor="#8a7a50", markersize=5 if marked else 3, zorder=3
        )
        return
    axes.text(
        *point,
        f"h{host}",
        ha="center",
        va="center",
        fontsize=7 if host < 100 else 5.5,
        zorder=5,
        fontweight="bold" if marked else "normal",
        bbox={"boxstyle": "circle,pad=0.2", "facecolor": colour, "edgecolor": "#8a7a50"},
    )
