"""The steps from the routes of a fabric to others, as the running controller would take them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from wormcast_planner import ClassDNumbers, FabricState, Planner

from wormcast.network.topology import Topology
from wormcast.offload.switch_plan import read_network

Json = dict[str, Any]


def planned_steps(topology: Json, order: str, now: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """Steps from the routes of one setting to those of another, by the planner that the controller runs, and a
    certificate of the routes in the end. `order` is the order of switches in force; empty: that of a plan from
    scratch. Raises `RoutingError`.
    """
    network, text = read_network(topology), json.dumps(topology)
    planner = Planner(**now)
    if order:
        planner.restore_order(order)
    before = _plan(planner, network)
    if before.bridge is not None:
        planner.settle()
    planner.set_routing(**new)
    after = _plan(planner, network)
    steps = []
    if after.bridge is not None:
        step = _step("bridge", None, after.routes_bridged, before.verify(text, [(after, True)]))
        steps += [{**step, "waiting": after.stopped}]
        steps += [
            _step(after.method, after.roots[0], after.routes_changed, after.verify(text, [(after, True)]))
        ]
    elif after.routes_changed:
        verdict = after.verify(text, [(before, False)])
        steps = [_step(after.method, after.roots[0], after.routes_changed, verdict)]
    return {"steps": steps, "certificate": json.loads(after.verify(text))}


def _plan(planner: Planner, network: Topology) -> FabricState:
    hosts = frozenset(host.id for host in network.hosts)
    return planner.plan(network, network, (), hosts, hosts, {}, ClassDNumbers())


def _step(method: str, root: int | None, routes_changed: int, verdict: str) -> Json:
    free = json.loads(verdict)["deadlock_free"]
    return {
        "method": method,
        "root": root,
        "routes_changed": routes_changed,
        "drain": [],
        "waiting": 0,
        "deadlock_free_with_previous": free,
    }
