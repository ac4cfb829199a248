"""Pictures of planned groups, as SVG text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wormcast.pictures.scene import text_width

SPACING = 44.0
LEVEL = 64.0
MARGIN = 30.0
RADIUS = 14.0
NUMBER_DISTANCE = RADIUS + 9
HALF = LEVEL / 2 - 6
"""From a sender down to where the lines to its receivers part."""
FONT_SIZE = 11.0
FONT = f'font-family="sans-serif" font-size="{FONT_SIZE:.0f}"'
AGAIN = "#"
"""Tells places of a switch apart that a worm passes twice, up to the root and down again."""
CLASS_1, CLASS_2, SOURCE, HOST, INK = "#1f3d5c", "#b3541e", "#1f3d5c", "#f2e3c2", "#222222"


def group_svg(group: Mapping[str, Any]) -> str:
    """Who sends to whom, the source on top, children from left to right in the order of
    the sends; each send with its step, those in the second buffer class in another
    colour. A group whose switches replicate has its tree of switches drawn."""
    edges = _edges(group)
    at = _places(edges, _root(group))
    beside = max(x for x, _ in at.values()) + SPACING if any(edge.get("back") for edge in edges) else 0.0
    shapes: list[str] = []
    numbers: list[str] = []
    for edge in edges:
        ends = at[edge["from"]], at[edge["to"]]
        colour = CLASS_2 if edge["class"] == 2 else CLASS_1
        back = edge.get("back", False)
        way, place = _way_back(*ends, beside) if back else _way(*ends)
        dashes = ' stroke-dasharray="4 3"' if back else ""
        shapes.append(f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="1.6"{dashes}/>')
        numbers += _number(place, str(edge["label"]), colour)
    shapes += numbers
    for name, (x, y) in at.items():
        top = name == _root(group)
        shapes.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{SOURCE if top else HOST}" stroke="{INK}"/>'
        )
        shapes.append(_label((x, y), name.partition(AGAIN)[0], "#ffffff" if top else INK))
    width = max(beside, *(x for x, _ in at.values())) + MARGIN
    height = max(y for _, y in at.values()) + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" {size} {FONT}>'
    title = f"<title>{group['scheme']} from host {group['source']}, {group['steps']} steps</title>"
    return "\n".join([head, title, *shapes, "</svg>\n"])


def _root(group: Mapping[str, Any]) -> str:
    return f"{group['source']}" if "edges" in group else f"s{group['tree']['switch']}"


def _edges(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "edges" not in group:
        return _switch_edges(group["tree"])
    reached = {str(group["source"])}
    edges = []
    for edge in group["edges"]:
        to = str(edge["to"])
        edges.append(
            {
                "from": str(edge["from"]),
                "to": to,
                "class": edge["class"],
                "label": edge["step"],
                "back": to in reached,
            }
        )
        reached.add(to)
    return edges


def _switch_edges(tree: Mapping[str, Any]) -> list[dict[str, Any]]:
    edges: list[dict[str, Any]] = []
    top = f"s{tree['switch']}"
    visits = {top: 1}
    open_trees = [(top, tree)]
    while open_trees:
        name, at = open_trees.pop()
        for branch in at["branches"]:
            to = f"{branch['host']}" if "host" in branch else f"s{branch['switch']}"
            visits[to] = visits.get(to, 0) + 1
            if visits[to] > 1:
                to += f"{AGAIN}{visits[to]}"
            edges.append({"from": name, "to": to, "class": 1, "label": branch["port"]})
            if "branches" in branch:
                open_trees.append((to, branch))
    return edges


def _places(edges: list[dict[str, Any]], root: str) -> dict[str, tuple[float, float]]:
    """Leaves side by side, every other node over the middle of its children."""
    children: dict[str, list[str]] = {}
    for edge in edges:
        if not edge.get("back"):
            children.setdefault(edge["from"], []).append(edge["to"])
    # Parents before children, so that in reverse every child is placed before its parent.
    order, depth = [root], {root: 0}
    for node in order:
        for child in children.get(node, []):
            depth[child] = depth[node] + 1
            order.append(child)
    leaves: list[str] = []
    stack = [root]
    while stack:
        node = stack.pop()
        below = children.get(node, [])
        stack.extend(reversed(below))
        if not below:
            leaves.append(node)
    x = {leaf: MARGIN + SPACING * place for place, leaf in enumerate(leaves)}
    for node in reversed(order):
        if node not in x:
            ends = [x[child] for child in children[node]]
            x[node] = (ends[0] + ends[-1]) / 2
    return {node: (x[node], MARGIN + LEVEL * depth[node]) for node in order}


def _way(sender: tuple[float, float], receiver: tuple[float, float]) -> tuple[str, tuple[float, float]]:
    """A line that passes by all other nodes, and where its number is: before the receiver, where no other line comes."""
    (x1, y1), (x2, y2) = sender, receiver
    return f"M{x1:.1f},{y1:.1f} V{y1 + HALF:.1f} H{x2:.1f} V{y2:.1f}", (x2, y2 - NUMBER_DISTANCE)


def _way_back(
    sender: tuple[float, float], receiver: tuple[float, float], beside: float
) -> tuple[str, tuple[float, float]]:
    """A line up to a node above, beside all nodes, and where its number is."""
    (x1, y1), (x2, y2) = sender, receiver
    # Below the sender is room between the levels, above the receiver within the margin.
    way = (
        f"M{x1:.1f},{y1:.1f} V{y1 + RADIUS + 6:.1f} H{beside:.1f} V{y2 - RADIUS - 6:.1f} H{x2:.1f} V{y2:.1f}"
    )
    return way, (beside, (y1 + y2) / 2)


def _number(at: tuple[float, float], text: str, colour: str) -> list[str]:
    """With a white box behind it."""
    x, y = at
    half = text_width(text, FONT_SIZE) / 2 + 1
    box = f'<rect x="{x - half:.1f}" y="{y - 6:.1f}" width="{2 * half:.1f}" height="12" fill="#ffffff"/>'
    return [box, _label(at, text, colour)]


def _label(at: tuple[float, float], text: str, colour: str) -> str:
    x, y = at
    # Lowered by hand: not every program knows dominant-baseline.
    y += 0.36 * FONT_SIZE
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="middle">{text}</text>'
