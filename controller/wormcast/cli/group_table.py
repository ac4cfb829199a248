"""A planned group as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wormcast.counted import counted


def group_table(group: Mapping[str, Any]) -> str:
    """Scheme, parameters, steps, who sends to whom in which step, and the metrics."""
    parameters = ", ".join(
        f"{name} {value}" for name, value in group["parameters"].items() if value is not None
    )
    lines = [
        f"{group['scheme']} from host {group['source']} to {counted(len(group['members']), 'member')}: "
        f"{group['steps']} steps",
        f"  {parameters}",
    ]
    if "fallback" in group:
        lines.append(f"  {group['fallback']}")
    if "edges" in group:
        lines += _sends(group)
    elif "tree" in group:
        trees = [one["tree"] for one in group.get("shared_trees", [])] or [group["tree"]]
        for number, tree in enumerate(trees, 1):
            if len(trees) > 1:
                lines.append(f"tree {number} of {len(trees)}, which messages take in turn")
            lines += [f"switch {tree['switch']}", *_branches(tree, "")]
    if "link_crossings" in group:
        lines.append(
            f"link_crossings {group['link_crossings']}; at least {group['crossings_bound']} are needed"
        )
    if "auto" in group:
        lines += ["", *_choices(group["auto"])]
    if "metrics" in group:
        lines += ["", *_metrics(group["metrics"])]
    return "\n".join(lines) + "\n"


def _choices(auto: Mapping[str, Any], most: int = 8) -> Iterator[str]:
    yield f"best of {len(auto['estimates'])} for {auto['bytes']} bytes in {auto['packets']} packets:"
    for one in auto["estimates"][:most]:
        parameters = ", ".join(f"{name} {value}" for name, value in one["parameters"].items())
        how = "replayed" if one["replayed"] else "estimated"
        yield f"  {one['microseconds']:12.1f} us {how}  {one['scheme']} ({parameters})"


def _sends(group: Mapping[str, Any]) -> Iterator[str]:
    children: dict[int, list[Mapping[str, Any]]] = {}
    edges = sorted(group["edges"], key=lambda edge: edge["step"])
    for edge in edges:
        children.setdefault(edge["from"], []).append(edge)
    yield f"{group['source']}"
    # Host and edge by edge; a host is gone through once, also if a message returns to it.
    shown = {group["source"]}
    stack = [("", edge, edge is children[group["source"]][-1]) for edge in children.get(group["source"], [])]
    stack.reverse()
    while stack:
        indent, edge, last = stack.pop()
        to = edge["to"]
        second = ", class 2" if edge["class"] == 2 else ""
        yield f"{indent}{'└─ ' if last else '├─ '}{to}  (step {edge['step']}{second})"
        if to not in shown:
            shown.add(to)
            below = children.get(to, [])
            deeper = indent + ("   " if last else "│  ")
            stack += [(deeper, child, child is below[-1]) for child in reversed(below)]


def _branches(tree: Mapping[str, Any], indent: str) -> Iterator[str]:
    for branch in tree["branches"]:
        last = branch is tree["branches"][-1]
        end = f"host {branch['host']}" if "host" in branch else f"switch {branch['switch']}"
        yield f"{indent}{'└─ ' if last else '├─ '}port {branch['port']}: {end}"
        if "branches" in branch:
            yield from _branches(branch, indent + ("   " if last else "│  "))


def _metrics(metrics: Mapping[str, Any]) -> Iterator[str]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield f"  {name}: " + ", ".join(f"{inner} {_number(number)}" for inner, number in value.items())
        elif value is not None:
            yield f"  {name}: {_number(value)}"


def _number(value: float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
