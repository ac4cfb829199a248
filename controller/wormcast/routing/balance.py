"""Roots and paths that lower the load of the busiest channel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import wormcast_planner as native


def balance_report(
    topology: Mapping[str, Any], algorithm: str = "osud", root: int | None = None
) -> dict[str, Any]:
    """Loads of all channels, in pairs of hosts, under the plain routes and under the
    balanced ones: "plain" and "chosen" with "root", "largest", "mean", "p99", "gini" and
    so on, "gain" (the share by which the largest is lower) and "links", with the loads
    [a to b, b to a] of each. A root that is given stays; then only paths are chosen anew.
    For osud and tree-only. Raises `RoutingError`."""
    report: dict[str, Any] = json.loads(native.balance_report(json.dumps(topology), algorithm, root))
    return report


def balanced_routes(
    topology: Mapping[str, Any], algorithm: str = "osud", root: int | None = None
) -> dict[str, Any]:
    """The routes file of the balanced choice. Raises `RoutingError`."""
    planned: dict[str, Any] = json.loads(native.plan_balanced_routes(json.dumps(topology), algorithm, root))
    return planned
