"""Routes and structures from the routing library (`wormcast.plan`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wormcast import plan as routing
from wormcast.fabric.groups import Parameters, Scheme
from wormcast.fabric.ids import HostId, PortId, SwitchId
from wormcast.fabric.planner import GroupShape, Routes
from wormcast.fabric.replication import SpanningTree, TreeLink
from wormcast.fabric.topology import Topology

ALGORITHM_DEFAULT = "osud"
"""Unicast: one shortest up*/down* path a pair, without in-transit hosts (ALGORITHMS §3)."""
ALGORITHM_TREE = "tree-only"


class RoutingPathfinder:
    """The `Pathfinder` of the planner, and the files of the REST API."""

    def __init__(self, algorithm: str = ALGORITHM_DEFAULT) -> None:
        self.algorithm = algorithm

    def spanning_tree(self, part: Topology) -> SpanningTree:
        """See `Pathfinder`."""
        found = routing.spanning_tree(part.to_json())
        return SpanningTree(
            SwitchId(found["root"]),
            tuple(
                TreeLink((SwitchId(a), PortId(a_port)), (SwitchId(b), PortId(b_port)))
                for a, a_port, b, b_port in found["links"]
            ),
        )

    def unicast_routes(self, part: Topology) -> Routes:
        """See `Pathfinder`."""
        return _as_routes(routing.routes(part.to_json(), algorithm=self.algorithm))

    def tree_routes(self, part: Topology) -> Routes:
        """See `Pathfinder`."""
        return _as_routes(routing.routes(part.to_json(), algorithm=ALGORITHM_TREE))

    def group_shape(
        self, part: Topology, scheme: Scheme, members: tuple[HostId, ...], parameters: Parameters
    ) -> GroupShape:
        """See `Pathfinder`."""
        order = members
        k = 0
        edges: tuple[tuple[HostId, HostId], ...] = ()
        if scheme is Scheme.K_BINOMIAL:
            order = tuple(HostId(h) for h in routing.order(part.to_json(), list(members), kind="cco"))
            k = parameters.k
            if not k and parameters.packets and len(members) > 1:
                k = routing.optimal_k(len(members), parameters.packets)[0]
        elif scheme is Scheme.TREE:
            found = routing.tree_edges(part.to_json(), list(members), fan_out=parameters.fan_out)
            edges = tuple((HostId(parent), HostId(child)) for parent, child in found)
        return GroupShape(order, k, edges)

    def routes_file(self, topology: Topology, algorithm: str | None) -> dict[str, Any]:
        """The routes file; the algorithm in force unless named. Raises `RoutingError`."""
        algorithm = algorithm or self.algorithm
        if algorithm not in (known := routing.algorithms()):
            raise routing.RoutingError(f"unknown algorithm {algorithm!r}; there are {', '.join(known)}")
        if not topology.switches:
            return {"algorithm": algorithm, "root": None, "routes": []}
        return routing.routes(topology.to_json(), algorithm=algorithm)

    def group_file(
        self,
        topology: Topology,
        scheme: Scheme,
        source: HostId,
        members: tuple[HostId, ...],
        parameters: Parameters,
    ) -> dict[str, Any]:
        """The group file, seen from one sender. Raises `RoutingError`."""
        given = {
            name: getattr(parameters, name)
            for name in ("k", "fan_out", "packets")
            if getattr(parameters, name)
        }
        return routing.group(
            topology.to_json(),
            {"scheme": scheme.value, "source": source, "members": list(members), "parameters": given},
        )

    def verify_file(
        self, topology: Topology, routes: dict[str, Any], trees: Iterable[dict[str, Any]] = ()
    ) -> dict[str, Any]:
        """The verify file for routes and the TREE routes of group files, all taken together. Raises `RoutingError`."""
        if not topology.switches:
            return {"deadlock_free": True, "order": []}
        sent = [tree for file in trees for tree in routing.trees_of(file)]
        return routing.verify(topology.to_json(), routes, trees=sent)


def _as_routes(file: dict[str, Any]) -> Routes:
    """An agent holds one route to a host: of several, the first."""
    routes: dict[tuple[HostId, HostId], bytes] = {}
    for route in file["routes"]:
        routes.setdefault((HostId(route["src"]), HostId(route["dst"])), bytes(route["ports"]))
    return routes
