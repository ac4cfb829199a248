"""Topologies, routes and group structures, planned by the native routing library (`wormcast_planner`).

Topologies, routes and groups are dictionaries in the form of the files that
`wormcast topo|route|group plan` write. Ids may have gaps and the fabric may be
split: what cannot be reached is listed. Everything refused raises `RoutingError`, a
`ValueError` whose text names the value, the bound and the choices. The same input gives
the same plan.
"""

from wormcast_planner import ALGORITHM_DEFAULT, RoutingError, algorithms, kinds, schemes, topology_formats

from wormcast.routing.balance import balance_report, balanced_routes
from wormcast.routing.changes import add_links, change
from wormcast.routing.costs import cost_sets, costs, fit_costs, replay
from wormcast.routing.files import to_text
from wormcast.routing.forwarding import NO_PORT, ForwardingTables, forwarding
from wormcast.routing.groups import GroupRequest, group, order
from wormcast.routing.routes import add_uses, route, route_summary, routes, spanning_tree
from wormcast.routing.topologies import check, damage, make, read, write

__all__ = [
    "ALGORITHM_DEFAULT",
    "NO_PORT",
    "ForwardingTables",
    "GroupRequest",
    "RoutingError",
    "add_links",
    "add_uses",
    "algorithms",
    "balance_report",
    "balanced_routes",
    "change",
    "check",
    "cost_sets",
    "costs",
    "damage",
    "fit_costs",
    "forwarding",
    "group",
    "kinds",
    "make",
    "order",
    "read",
    "replay",
    "route",
    "route_summary",
    "routes",
    "schemes",
    "spanning_tree",
    "to_text",
    "topology_formats",
    "write",
]
