"""Topologies, routes, group structures and the deadlock check, planned by the native
routing library (`wormcast_planner`).

Topologies, routes, groups and verdicts are dictionaries in the form of the files that
`wormcast topo|route|group plan|verify` write. Ids may have gaps and the fabric may be
split: what cannot be reached is listed. Everything refused raises `RoutingError`, a
`ValueError` whose text names the value, the bound and the choices. The same input gives
the same plan.
"""

from wormcast_planner import ALGORITHM_DEFAULT, RoutingError, algorithms, kinds, schemes, topology_formats

from wormcast.routing.balance import balance_report, balanced_routes
from wormcast.routing.certificate import check as check_certificate
from wormcast.routing.changes import add_links, change
from wormcast.routing.costs import cost_sets, costs, fit_costs, replay
from wormcast.routing.files import to_text
from wormcast.routing.foreign import verify_paths, verify_tables
from wormcast.routing.foreign_certificate import check_paths, check_tables
from wormcast.routing.foreign_files import Network as CheckedNetwork
from wormcast.routing.forwarding import NO_PORT, ForwardingTables, forwarding
from wormcast.routing.groups import GroupRequest, group, order
from wormcast.routing.routes import add_uses, route, route_summary, routes, spanning_tree
from wormcast.routing.topologies import check, damage, make, read, write
from wormcast.routing.verdicts import explain, plans_of, saw_nothing, trees_of, verify
from wormcast.routing.worms import Violation

__all__ = [
    "ALGORITHM_DEFAULT",
    "NO_PORT",
    "CheckedNetwork",
    "ForwardingTables",
    "GroupRequest",
    "RoutingError",
    "Violation",
    "add_links",
    "add_uses",
    "algorithms",
    "balance_report",
    "balanced_routes",
    "change",
    "check",
    "check_certificate",
    "check_paths",
    "check_tables",
    "cost_sets",
    "costs",
    "damage",
    "explain",
    "fit_costs",
    "forwarding",
    "group",
    "kinds",
    "make",
    "order",
    "plans_of",
    "read",
    "replay",
    "route",
    "route_summary",
    "routes",
    "saw_nothing",
    "schemes",
    "spanning_tree",
    "to_text",
    "topology_formats",
    "trees_of",
    "verify",
    "verify_paths",
    "verify_tables",
    "write",
]
