"""Topologies, routes, group structures and the deadlock check, planned by the native
routing library (`wormcast_planner`).

Topologies, routes, groups and verdicts are dictionaries in the form of the files that
`wormcast topo|route|group plan|verify` write. Ids may have gaps and the fabric may be
split: what cannot be reached is listed. Everything refused raises `RoutingError`, a
`ValueError` whose text names the value, the bound and the choices. The same input gives
the same plan.
"""

from wormcast_planner import RoutingError, algorithms, kinds, schemes, topology_formats

from wormcast.plan.balance import balance_report, balanced_routes
from wormcast.plan.certificate import check as check_certificate
from wormcast.plan.changes import add_links, change
from wormcast.plan.costs import cost_sets, costs, replay
from wormcast.plan.files import to_text
from wormcast.plan.forwarding import NO_PORT, ForwardingTables, forwarding
from wormcast.plan.group_pictures import group_svg
from wormcast.plan.groups import GroupRequest, find_buffer_cycle, group, optimal_k, order, tree_edges
from wormcast.plan.pictures import png, svg
from wormcast.plan.routes import route, route_summary, routes, spanning_tree
from wormcast.plan.topologies import check, damage, make, read, write
from wormcast.plan.tree_routes import decode_tree, encode_tree, multicast_root, walk_tree
from wormcast.plan.verdicts import explain, plans_of, trees_of, verify
from wormcast.plan.worms import Violation

__all__ = [
    "NO_PORT",
    "ForwardingTables",
    "GroupRequest",
    "RoutingError",
    "Violation",
    "add_links",
    "algorithms",
    "balance_report",
    "balanced_routes",
    "change",
    "check",
    "check_certificate",
    "cost_sets",
    "costs",
    "damage",
    "decode_tree",
    "encode_tree",
    "explain",
    "find_buffer_cycle",
    "forwarding",
    "group",
    "group_svg",
    "kinds",
    "make",
    "multicast_root",
    "optimal_k",
    "order",
    "plans_of",
    "png",
    "read",
    "replay",
    "route",
    "route_summary",
    "routes",
    "schemes",
    "spanning_tree",
    "svg",
    "to_text",
    "topology_formats",
    "tree_edges",
    "trees_of",
    "verify",
    "walk_tree",
    "write",
]
