"""Routes and structures from the routing library (`wormcast.routing`)."""

from __future__ import annotations

from typing import Any

from wormcast import routing
from wormcast.fabric.groups import Group, Parameters, Scheme
from wormcast.fabric.ids import HostId, PortId, SwitchId
from wormcast.fabric.planner import GroupShape, Routes
from wormcast.fabric.replication import SpanningTree, TreeLink
from wormcast.fabric.topology import Topology

ALGORITHM_DEFAULT = "osud"
"""Unicast: one shortest up*/down* path a pair, without in-transit hosts (ALGORITHMS §3)."""
ALGORITHM_TREE = "tree-only"
PARTS_KEPT_MAX = 64
"""Connected parts whose order of hosts is kept."""


class RoutingPathfinder:
    """The `Pathfinder` of the planner, and the routes file of the REST API."""

    def __init__(self, algorithm: str = ALGORITHM_DEFAULT) -> None:
        self.algorithm = algorithm
        self._ranks: dict[int, tuple[Topology, dict[HostId, int]]] = {}
        """By the identity of a part, which is kept with them."""

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
            order = tuple(sorted(members, key=self._cco_ranks(part).__getitem__))
            k = parameters.k
            if not k and parameters.packets and len(members) > 1:
                k = routing.optimal_k(len(members), parameters.packets)[0]
        elif scheme is Scheme.TREE:
            found = routing.tree_edges(part.to_json(), list(members), fan_out=parameters.fan_out)
            edges = tuple((HostId(parent), HostId(child)) for parent, child in found)
        return GroupShape(order, k, edges)

    def _cco_ranks(self, part: Topology) -> dict[HostId, int]:
        """Places of all hosts in the CCO; that of some hosts is the same with the others left out."""
        kept = self._ranks.get(id(part))
        if kept is None:
            if len(self._ranks) >= PARTS_KEPT_MAX:
                self._ranks.clear()
            hosts = [host.id for host in part.hosts]
            order = routing.order(part.to_json(), hosts, kind="cco")
            kept = self._ranks[id(part)] = (part, {HostId(h): n for n, h in enumerate(order)})
        return kept[1]

    def routes_file(
        self, topology: Topology, algorithm: str | None, src: HostId | None = None, dst: HostId | None = None
    ) -> dict[str, Any]:
        """The routes file, or those of one source or to one destination; the algorithm in force unless named.
        Raises `RoutingError`."""
        algorithm = algorithm or self.algorithm
        if algorithm not in (known := routing.algorithms()):
            raise routing.RoutingError(f"unknown algorithm {algorithm!r}; there are {', '.join(known)}")
        if not topology.switches:
            return {"algorithm": algorithm, "root": None, "routes": []}
        return routing.routes(topology.to_json(), algorithm=algorithm, src=src, dst=dst)


def group_request(group: Group, source: HostId, members: tuple[HostId, ...]) -> dict[str, Any]:
    """What the group file of these members is planned from, seen from one sender."""
    given = {
        name: value for name in ("k", "fan_out", "packets") if (value := getattr(group.parameters, name))
    }
    return {
        "scheme": group.scheme.value,
        "source": source,
        "members": list(members),
        "parameters": given,
    }


def _as_routes(file: dict[str, Any]) -> Routes:
    """An agent holds one route to a host: of several, the first."""
    routes: dict[tuple[HostId, HostId], bytes] = {}
    for route in file["routes"]:
        routes.setdefault((HostId(route["src"]), HostId(route["dst"])), bytes(route["ports"]))
    return routes
