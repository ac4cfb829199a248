"""Source routes and the spanning tree they keep to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import wormcast_planner as native

from wormcast.routing.fallback import runs_as

SEED_DEFAULT = 1


def routes(
    topology: Mapping[str, Any],
    algorithm: str = native.ALGORITHM_DEFAULT,
    root: int | None = None,
    *,
    seed: int = SEED_DEFAULT,
    src: int | None = None,
    dst: int | None = None,
    balanced: bool = False,
) -> dict[str, Any]:
    """The routes file: all pairs of hosts, or those from `src`, or to `dst`, or that pair.

    In a split fabric "unreachable" lists the pairs without a route. Where the algorithm
    keeps several routes for a pair (rmit, rrmit, pit, rrmit-min) they follow each other in
    the order in which they take turns, each with its "share" (0 to 1) of the pair's
    messages; `seed` decides which are drawn where there are more than ten. Routes of
    algorithms that use in-transit hosts say whether they are "minimal"; where no host re-injects, "runs_as" says
    what they are then. `balanced` takes the
    paths, and unless it is given the root, that lower the largest load. Raises
    `RoutingError`, for a single pair also if there is no path.
    """
    text = native.plan_all_routes(json.dumps(topology), algorithm, root, seed, src, dst, balanced)
    planned: dict[str, Any] = json.loads(text)
    if (fallback := runs_as(topology, algorithm)) is not None:
        planned["runs_as"] = fallback
    return planned


def route(
    topology: Mapping[str, Any],
    src: int,
    dst: int,
    algorithm: str = native.ALGORITHM_DEFAULT,
    root: int | None = None,
    *,
    seed: int = SEED_DEFAULT,
) -> dict[str, Any]:
    """One entry of the routes file, the first of the pair. Raises `RoutingError`, also if
    there is no path."""
    text = native.plan_route(json.dumps(topology), src, dst, algorithm, root, seed)
    planned: dict[str, Any] = json.loads(text)
    return planned


def route_summary(
    topology: Mapping[str, Any],
    algorithm: str = native.ALGORITHM_DEFAULT,
    root: int | None = None,
    *,
    seed: int = SEED_DEFAULT,
    balanced: bool = False,
) -> dict[str, Any]:
    """Figures over the routes of all pairs: "pairs", "unreachable", "minimal" (share of
    routes that no path undercuts), means and maxima of links, switches crossed and
    in-transit hosts, "in_transit_load" (pairs a host re-injects for) and "link_load" (pairs
    over a link); alternatives count by their share. "lengthened_pairs" have longer routes
    because some hosts do not re-inject. Raises `RoutingError`."""
    text = native.summarize_routes(json.dumps(topology), algorithm, root, seed, balanced)
    figures: dict[str, Any] = json.loads(text)
    return figures


def add_uses(routes: Iterable[dict[str, Any]], uses: Mapping[int, Mapping[int, Sequence[int]]]) -> None:
    """Adds to routes how many messages took each ("messages"), from what agents say: by host that sends and host
    that receives, the messages by each route. Where an agent does not count the same routes, nothing is added."""
    rows: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in routes:
        rows.setdefault((row["src"], row["dst"]), []).append(row)
    for (src, dst), alternatives in rows.items():
        messages = uses.get(src, {}).get(dst, ())
        if len(messages) == len(alternatives):
            for row, count in zip(alternatives, messages, strict=True):
                row["messages"] = count


def spanning_tree(topology: Mapping[str, Any], root: int | None = None) -> dict[str, Any]:
    """The up*/down* spanning tree: "root", "roots" (one for each part of a split fabric),
    "links" ([a, a_port, b, b_port], the parent's side first, from the root outward) and
    "levels". Raises `RoutingError`."""
    tree: dict[str, Any] = json.loads(native.spanning_tree(json.dumps(topology), root))
    return tree
