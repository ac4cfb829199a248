"""Replication groups of every switch: broadcast, tree sets, groups along the spanning tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from wormcast.fabric.ids import (
    MGID_BROADCAST,
    MGID_GROUP_FIRST,
    MGID_GROUP_LAST,
    MGID_TREE_ALL,
    MGID_TREE_SET,
    TREE_SET_PORTS,
    GroupId,
    HostId,
    Mgid,
    PortId,
    SwitchId,
)
from wormcast.fabric.topology import Host, PortRef, Topology

MGID_GROUPS_MAX = MGID_GROUP_LAST - MGID_GROUP_FIRST + 1


class CapacityError(ValueError):
    """More groups than a switch has replication groups for."""


@dataclass(frozen=True)
class TreeLink:
    """A link of the spanning tree, seen from the end nearer to the root."""

    parent: PortRef
    child: PortRef


@dataclass(frozen=True)
class SpanningTree:
    """The multicast spanning tree of one connected part (ALGORITHMS §2)."""

    root: SwitchId
    links: tuple[TreeLink, ...]

    def neighbours(self) -> dict[SwitchId, list[tuple[PortId, SwitchId]]]:
        """For every switch with a tree link: its tree ports and what they lead to."""
        found: dict[SwitchId, list[tuple[PortId, SwitchId]]] = {}
        for link in self.links:
            found.setdefault(link.parent[0], []).append((link.parent[1], link.child[0]))
            found.setdefault(link.child[0], []).append((link.child[1], link.parent[0]))
        return found


def allocate_mgids(numbers: Iterable[GroupId]) -> dict[GroupId, Mgid]:
    """One replication group for each group number, in [MGID_GROUP_FIRST, MGID_GROUP_LAST].

    A number keeps its place while numbers of a different residue come and go;
    equal residues probe upwards in ascending order of number.
    """
    ordered = sorted(set(numbers))
    if len(ordered) > MGID_GROUPS_MAX:
        raise CapacityError(f"{len(ordered)} groups; a switch has room for {MGID_GROUPS_MAX}")
    taken: set[int] = set()
    mgids: dict[GroupId, Mgid] = {}
    for number in ordered:
        slot = number % MGID_GROUPS_MAX
        while slot in taken:
            slot = (slot + 1) % MGID_GROUPS_MAX
        taken.add(slot)
        mgids[number] = Mgid(MGID_GROUP_FIRST + slot)
    return mgids


def tree_set_groups(ports: int) -> dict[Mgid, frozenset[PortId]]:
    """One replication group for each non-empty set of ports, where the switch has few enough."""
    if ports > TREE_SET_PORTS:
        return {}
    return {
        Mgid(MGID_TREE_SET + bits): frozenset(PortId(p) for p in range(ports) if bits >> p & 1)
        for bits in range(1, 1 << ports)
    }


def fixed_groups(part: Topology, tree: SpanningTree) -> dict[SwitchId, dict[Mgid, frozenset[PortId]]]:
    """BROADCAST (down tree links and hosts) and TREE_ALL (every port in use) of every switch."""
    down: dict[SwitchId, set[PortId]] = {s.id: set() for s in part.switches}
    used: dict[SwitchId, set[PortId]] = {s.id: set() for s in part.switches}
    for link in tree.links:
        down[link.parent[0]].add(link.parent[1])
    for host in part.hosts:
        down[host.switch].add(host.port)
        used[host.switch].add(host.port)
    for link_end in (end for link in part.links for end in link.ends()):
        used[link_end[0]].add(link_end[1])
    return {
        s.id: {
            mgid: frozenset(ports)
            for mgid, ports in ((MGID_BROADCAST, down[s.id]), (MGID_TREE_ALL, used[s.id]))
            if ports
        }
        for s in part.switches
    }


class GroupTree:
    """The spanning tree of one connected part, made ready to plan many groups on it."""

    def __init__(self, part: Topology, tree: SpanningTree) -> None:
        self._hosts: Mapping[HostId, Host] = {h.id: h for h in part.hosts}
        self._switches = [s.id for s in part.switches]
        self._leaves_first = _leaves_first(tree)

    def ports(self, members: Iterable[HostId]) -> dict[SwitchId, frozenset[PortId]]:
        """Ports a group's worms leave each switch by, wherever they entered.

        A port belongs to the set if a member hangs on it, or if it is a tree link
        beyond which there is a member. As a switch never sends a copy back to the
        port it came from, a worm that enters anywhere reaches every member once.
        Members that are not in this part are left out.
        """
        here = [self._hosts[m] for m in members if m in self._hosts]
        if not here:
            return {}
        wanted: dict[SwitchId, set[PortId]] = {s: set() for s in self._switches}
        below: dict[SwitchId, int] = dict.fromkeys(self._switches, 0)
        for member in here:
            wanted[member.switch].add(member.port)
            below[member.switch] += 1
        for link in self._leaves_first:
            count = below[link.child[0]]
            if count:
                below[link.parent[0]] += count
                wanted[link.parent[0]].add(link.parent[1])
            if count < len(here):
                wanted[link.child[0]].add(link.child[1])
        return {switch: frozenset(ports) for switch, ports in wanted.items() if ports}


def _leaves_first(tree: SpanningTree) -> list[TreeLink]:
    children: dict[SwitchId, list[TreeLink]] = {}
    for link in tree.links:
        children.setdefault(link.parent[0], []).append(link)
    order: list[TreeLink] = []
    stack = [tree.root]
    while stack:
        for link in children.get(stack.pop(), ()):
            order.append(link)
            stack.append(link.child[0])
    assert len(order) == len(tree.links), "the spanning tree does not hang together"
    order.reverse()
    return order
