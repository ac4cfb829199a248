"""Topology files: made, checked, damaged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import wormcast_routing as native


def make(spec: str) -> dict[str, Any]:
    """The topology of a kind and its numbers, as in "testbed", "torus:4" or
    "irregular:8:1"; `kinds()` lists them. Raises `RoutingError`."""
    made: dict[str, Any] = json.loads(native.generate_topology(spec))
    return made


def check(topology: Mapping[str, Any], *, allow_split: bool = False) -> dict[str, Any]:
    """The topology, ids ascending. Raises `RoutingError` if anything is wrong with it, a
    split fabric included unless allowed."""
    checked: dict[str, Any] = json.loads(native.check_topology(json.dumps(topology), allow_split))
    return checked


def damage(
    topology: Mapping[str, Any],
    *,
    links: Iterable[tuple[int, int]] = (),
    switches: Iterable[int] = (),
    hosts: Iterable[int] = (),
) -> dict[str, Any]:
    """What remains without these links, each named by (switch, port) of either end, these
    switches and these hosts. Raises `RoutingError` for what was never there."""
    left = native.damage_topology(json.dumps(topology), list(links), list(switches), list(hosts))
    remaining: dict[str, Any] = json.loads(left)
    return remaining
