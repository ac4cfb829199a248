"""From the routes in force to new ones, safe while worms of both are in the network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import wormcast_planner as native


def change(
    topology: Mapping[str, Any],
    new: Mapping[str, Any],
    algorithm: str = "osud",
    root: int | None = None,
    *,
    routes: Mapping[str, Any] | None = None,
    new_root: int | None = None,
    planned: bool = False,
) -> dict[str, Any]:
    """The change file: steps to make one after the other, each free of deadlock with the
    one before. Between two steps the worms of the routes before the last one have to have
    left the network.

    The routes in force are those of a routes file, or of `algorithm` with this `root` on
    `topology`. `new_root` asks for the plan from scratch with that root. `planned` says
    that links that go carry worms until the change is done; else they have failed. Raises
    `RoutingError`.
    """
    file = None if routes is None else json.dumps(routes)
    answer = native.plan_change(
        json.dumps(topology), json.dumps(new), algorithm, root, file, new_root, planned
    )
    steps: dict[str, Any] = json.loads(answer)
    return steps


def add_links(
    topology: Mapping[str, Any], links: Iterable[tuple[tuple[int, int], tuple[int, int]]]
) -> dict[str, Any]:
    """The topology with these links more, each from (switch, port) to (switch, port). A
    switch that is not there is added, with as many ports as the largest there is. Raises
    `RoutingError` for ports that are in use or not there."""
    grown = dict(topology)
    switches = list(topology["switches"])
    added = list(topology["links"])
    known = {switch["id"] for switch in switches}
    ports = max(switch["ports"] for switch in switches)
    for (a, a_port), (b, b_port) in links:
        for switch in (a, b):
            if switch not in known:
                known.add(switch)
                switches.append({"id": switch, "ports": ports})
        added.append({"a": a, "a_port": a_port, "b": b, "b_port": b_port})
    # A grid says what is wired to what, which the new links need not keep to.
    grown.pop("grid", None)
    grown.update(switches=switches, links=added)
    checked: dict[str, Any] = json.loads(native.check_topology(json.dumps(grown), True))
    return checked
