"""Source routes and the spanning tree they keep to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import wormcast_routing as native


def routes(topology: Mapping[str, Any], algorithm: str = "osud", root: int | None = None) -> dict[str, Any]:
    """The routes file: all pairs of hosts. In a split fabric "unreachable" lists the
    pairs without a route. Raises `RoutingError`."""
    planned: dict[str, Any] = json.loads(native.plan_all_routes(json.dumps(topology), algorithm, root))
    return planned


def route(
    topology: Mapping[str, Any], src: int, dst: int, algorithm: str = "osud", root: int | None = None
) -> dict[str, Any]:
    """One entry of the routes file. Raises `RoutingError`, also if there is no way."""
    planned: dict[str, Any] = json.loads(native.plan_route(json.dumps(topology), src, dst, algorithm, root))
    return planned


def spanning_tree(topology: Mapping[str, Any], root: int | None = None) -> dict[str, Any]:
    """The up*/down* spanning tree: "root", "roots" (one for each part of a split fabric),
    "links" ([a, a_port, b, b_port], the parent's side first, from the root outward) and
    "levels". Raises `RoutingError`."""
    tree: dict[str, Any] = json.loads(native.spanning_tree(json.dumps(topology), root))
    return tree
