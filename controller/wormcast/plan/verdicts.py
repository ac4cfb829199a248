"""The deadlock check."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import wormcast_routing as native


def verify(
    topology: Mapping[str, Any],
    routes: Mapping[str, Any] | None = None,
    *,
    algorithm: str | None = None,
    trees: Iterable[tuple[int, bytes]] = (),
    branching: str = "independent",
    root: int | None = None,
) -> dict[str, Any]:
    """The verify file for the routes of a file, those of an algorithm, and TREE routes
    (source, route), all taken together.

    `branching` says what a worm that branches does while one branch is blocked:
    "independent", the others go on (packet mode; WORM §3 scheme B); "coupled", they
    stop and hold their channels (scheme A). Raises `RoutingError`.
    """
    file = None if routes is None else json.dumps(routes)
    answer = native.verify(json.dumps(topology), file, algorithm, list(trees), branching, root)
    verdict: dict[str, Any] = json.loads(answer)
    return verdict


def trees_of(group: Mapping[str, Any]) -> list[tuple[int, bytes]]:
    """TREE routes of a group file, as `verify` takes them; none if hosts forward."""
    return [(group["source"], bytes.fromhex(part["route"])) for part in group.get("routes", [])]
