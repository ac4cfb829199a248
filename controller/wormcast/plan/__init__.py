"""Topologies, routes, group structures and the deadlock check, planned by the native
routing library (`wormcast_routing`).

Topologies, routes, groups and verdicts are dictionaries in the form of the files that
`wormcast topo|route|group plan|verify` write. Ids may have gaps and the fabric may be
split: what cannot be reached is listed. Everything refused raises `RoutingError`, a
`ValueError` whose text names the value, the bound and the choices. The same input gives
the same plan.
"""

from wormcast_routing import RoutingError, algorithms, kinds, schemes, topology_formats

from wormcast.plan.files import to_text
from wormcast.plan.groups import GroupRequest, find_buffer_cycle, group, optimal_k, order, tree_edges
from wormcast.plan.pictures import png, svg
from wormcast.plan.routes import route, routes, spanning_tree
from wormcast.plan.topologies import check, damage, make, read, write
from wormcast.plan.tree_routes import decode_tree, encode_tree, walk_tree
from wormcast.plan.verdicts import trees_of, verify

__all__ = [
    "GroupRequest",
    "RoutingError",
    "algorithms",
    "check",
    "damage",
    "decode_tree",
    "encode_tree",
    "find_buffer_cycle",
    "group",
    "kinds",
    "make",
    "optimal_k",
    "order",
    "png",
    "read",
    "route",
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
