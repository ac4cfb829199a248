"""A cycle of channels, drawn with letters as a person would draw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NODES_MAX = 40
"""Larger rings are not drawn."""
BOX_LINES, GAP_LINES = 3, 3


@dataclass(frozen=True)
class Hop:
    """A node, and how the next one around is reached."""

    name: str
    port_out: str
    port_in: str


def hops_of(cycle: Sequence[Mapping[str, Any]]) -> list[Hop] | None:
    """The nodes around a cycle of a verify file; None if it is not one of links between nodes."""
    if any("from" not in wait["channel"] for wait in cycle):
        return None
    ends = [(wait["channel"]["from"], wait["channel"]["to"]) for wait in cycle]
    names = [(node_name(start), node_name(end)) for start, end in ends]
    if any(names[place - 1][1] != start for place, (start, _) in enumerate(names)):
        return None
    return [
        Hop(name, str(start.get("port", "")), str(end.get("port", "")))
        for (start, end), (name, _) in zip(ends, names, strict=True)
    ]


def node_name(end: Mapping[str, Any]) -> str:
    """What a verify file calls the node at an end of a channel."""
    if "node" in end:
        return str(end["node"])
    return f"switch {end['switch']}" if "switch" in end else f"host {end['host']}"


def draw_ring(hops: Sequence[Hop]) -> list[str]:
    """Lines of text: the first node at the top left, the others clockwise. Edges are numbered
    from 1; port numbers stand at their ends. No lines where there are too few or too many nodes."""
    if not 2 <= len(hops) <= NODES_MAX:
        return []
    return _Drawing(hops).lines()


class _Drawing:
    """Characters by place. Nodes stand in two columns: down the right one, up the left one."""

    def __init__(self, hops: Sequence[Hop]) -> None:
        self.hops = hops
        self.cells: dict[tuple[int, int], str] = {}
        right = (len(hops) + 1) // 2
        widest = max(len(hop.name) for hop in hops)
        self.width = max(7, widest + 4)
        across = max(len(hop.port_out) + len(hop.port_in) for hop in hops)
        self.right = self.width + max(14, across + 6)
        # For each node the line and the column of its box.
        self.places = [(0, 0)]
        step = BOX_LINES + GAP_LINES
        self.places += [(step * row, self.right) for row in range(right)]
        self.places += [(step * row, 0) for row in range(len(hops) - right - 1, 0, -1)]

    def lines(self) -> list[str]:
        for hop, place in zip(self.hops, self.places, strict=True):
            self.box(hop.name, *place, tall=len(self.hops) == 2)
        for number in range(len(self.hops)):
            self.edge(number)
        height = 1 + max(line for line, _ in self.cells)
        width = 1 + max(column for _, column in self.cells)
        rows = (
            "".join(self.cells.get((line, column), " ") for column in range(width)) for line in range(height)
        )
        return [row.rstrip() for row in rows]

    def put(self, line: int, column: int, text: str) -> None:
        for at, letter in enumerate(text):
            self.cells[line, column + at] = letter

    def box(self, name: str, line: int, column: int, *, tall: bool) -> None:
        inner = self.width - 2
        self.put(line, column, f"┌{'─' * inner}┐")
        self.put(line + 1, column, f"│{name:^{inner}}│")
        if tall:
            self.put(line + 2, column, f"│{'':^{inner}}│")
        self.put(line + BOX_LINES - 1 + tall, column, f"└{'─' * inner}┘")

    def edge(self, number: int) -> None:
        hop = self.hops[number]
        start, end = self.places[number], self.places[(number + 1) % len(self.hops)]
        if number == 0:
            self.to_the_right(hop, start[0] + 1)
        elif len(self.hops) == 2:
            self.to_the_left(number, hop, start[0] + 2)
        elif start[1] == end[1] == self.right:
            self.down(number, hop, start[0])
        elif start[1] == end[1]:
            self.up(number, hop, end[0], start[0])
        elif start[0] == end[0]:
            self.to_the_left(number, hop, start[0] + 1)
        else:
            self.around_the_corner(number, hop, start[0] + 1, end[0])

    def to_the_right(self, hop: Hop, line: int) -> None:
        gap = self.right - self.width
        self.put(line, self.width - 1, "├" + f"{_label(0):─^{gap - 1}}" + "▶")
        self.put(line - 1, self.width + 1, hop.port_out)
        self.put(line - 1, self.right - 1 - len(hop.port_in), hop.port_in)

    def to_the_left(self, number: int, hop: Hop, line: int) -> None:
        gap = self.right - self.width
        self.put(line, self.width, "◀" + f"{_label(number):─^{gap - 1}}" + "┤")
        self.put(line + 1, self.width + 1, hop.port_in)
        self.put(line + 1, self.right - 1 - len(hop.port_out), hop.port_out)

    def down(self, number: int, hop: Hop, top: int) -> None:
        column = self.right + self.width // 2
        self.put(top + 2, column, "┬")
        self.put(top + 3, column, f"│ {hop.port_out}")
        self.put(top + 4, column - 1, _label(number))
        self.put(top + 5, column, f"▼ {hop.port_in}")

    def up(self, number: int, hop: Hop, top: int, bottom: int) -> None:
        column = self.width // 2
        self.put(top + 3, column, f"▲ {hop.port_in}")
        self.put(top + 4, column - 1, _label(number))
        self.put(top + 5, column, f"│ {hop.port_out}")
        self.put(bottom, column, "┴")

    def around_the_corner(self, number: int, hop: Hop, line: int, top: int) -> None:
        column = self.width // 2
        self.put(top + 3, column, f"▲ {hop.port_in}")
        for between in range(top + 4, line):
            self.put(between, column, "│")
        self.put(line, column, "└" + f"{_label(number):─^{self.right - column - 1}}" + "┤")
        self.put(line + 1, self.right - 1 - len(hop.port_out), hop.port_out)


def _label(number: int) -> str:
    return f"[{number + 1}]"
