"""TREE routes (wire/SPEC.md §3): bytes from port paths, and back; the root for multicast."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import wormcast_planner as native


def encode_tree(paths: Iterable[tuple[int, bytes]]) -> list[tuple[bytes, list[int]]]:
    """Routes that together reach each host by its port path, and whom each one reaches;
    several where one would exceed 255 bytes or 16 branches at a switch. Raises
    `RoutingError`."""
    return native.encode_tree(list(paths))


def decode_tree(route: bytes) -> list[bytes]:
    """Port paths that a route leads along, ascending. Raises `RoutingError`."""
    return native.decode_tree(route)


def multicast_root(topology: Mapping[str, Any], members: int = 8) -> tuple[int, float]:
    """The root under which a multicast of guard B (every one climbs to the root; WORM §3) to
    so many random members crosses the fewest links between switches on average, and how
    many. Pass it as `root` to all planning. Raises `RoutingError`."""
    return native.multicast_root(json.dumps(topology), members)
