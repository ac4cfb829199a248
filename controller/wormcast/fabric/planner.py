"""The plan: desired state of every switch and every agent, from topology and groups. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from wormcast.fabric.class_d import NARROW, ClassDNumbers, fabric_members
from wormcast.fabric.groups import Group, Parameters, Scheme
from wormcast.fabric.ids import GROUP_BROADCAST, GroupId, HostId, Mgid
from wormcast.fabric.replication import (
    SpanningTree,
    allocate_mgids,
    fixed_groups,
    group_ports,
    members_by_host,
    tree_set_groups,
)
from wormcast.fabric.state import AgentGroup, AgentPlan, FabricState, Shortfall, SwitchState, TableEntry
from wormcast.fabric.switch_entries import (
    class_d_entries,
    group_entry,
    port_entries,
    tree_set_default,
    tree_set_entries,
)
from wormcast.fabric.topology import Topology, ports_in_use

Routes = dict[tuple[HostId, HostId], bytes]
"""Source route from one host to another, as port bytes."""

NOT_LOCATED = "no place known for it, or its switch is down"
PLAIN = "it has no agent, and the group has no class D address"
NOT_LIVE = "its agent is gone"
CUT_OFF = "no known link leads to the other members"
NOT_PLANNED = "the plan in force is older than this group"


@dataclass(frozen=True)
class GroupShape:
    """The structure of a group over its hosts."""

    order: tuple[HostId, ...]
    k: int
    tree_edges: tuple[tuple[HostId, HostId], ...]


class Pathfinder(Protocol):
    """Where routes and structures come from; works on one connected part at a time."""

    def spanning_tree(self, part: Topology) -> SpanningTree:
        """The multicast spanning tree (ALGORITHMS §2)."""

    def unicast_routes(self, part: Topology) -> Routes:
        """Routes between all pairs of hosts."""

    def tree_routes(self, part: Topology) -> Routes:
        """Routes between all pairs of hosts along the spanning tree."""

    def group_shape(
        self, part: Topology, scheme: Scheme, members: tuple[HostId, ...], parameters: Parameters
    ) -> GroupShape:
        """Ordering and edges of a group's structure (ALGORITHMS §4)."""


@dataclass(frozen=True)
class Membership:
    """A group with those of its members that take part now."""

    group: Group
    live: tuple[HostId, ...]


def plan(
    topology: Topology,
    groups: Iterable[Group],
    agents: frozenset[HostId],
    live: frozenset[HostId],
    pathfinder: Pathfinder,
    class_d: ClassDNumbers = NARROW,
    known: Topology | None = None,
) -> FabricState:
    """What every switch and every agent must have.

    `topology` is what is up, `known` that and what is suspected to be away for a
    moment (None: nothing is). Suspicion costs nobody a membership: groups span
    `known`. It only moves routes: a pair of hosts that what is up joins has its
    route there, any other pair over all that is known. Switches that are not up
    are not planned, so that they keep what they have.

    `agents` are the hosts that have one, `live` those of them that take part in
    their groups. The others are told of their groups as if all took part, so that
    who comes back finds itself a member; nobody else hears of them. Switches replicate
    to every located member of a group, agent or not, under its id and the number
    that `class_d` gives its address. A group whose live members
    are not all connected keeps those of the part with most of them (on a tie
    the part with the lowest host); the others are `shortfalls`.
    """
    ordered = sorted(groups, key=lambda g: g.id)
    parts = topology.components()
    wholes = parts if known is None or known == topology else known.components()
    memberships, shortfalls = _assign_members(ordered, wholes, agents, live)
    state = FabricState(shortfalls=tuple(shortfalls))
    numbers = fabric_members(ordered, class_d)
    entries = class_d_entries(ordered, class_d)
    mgids = allocate_mgids([*numbers, GROUP_BROADCAST])
    for part in parts:
        tree = pathfinder.spanning_tree(part)
        _plan_switches(state, part, tree, entries, numbers, mgids)
    for whole in wholes:
        switches = {switch.id for switch in whole.switches}
        inside = [part for part in parts if part.switches[0].id in switches]
        _plan_agents(state, whole, inside, memberships, agents, live, pathfinder)
    return state


def _assign_members(
    groups: list[Group], parts: list[Topology], agents: frozenset[HostId], live: frozenset[HostId]
) -> tuple[list[Membership], list[Shortfall]]:
    part_of = {host.id: n for n, part in enumerate(parts) for host in part.hosts}
    memberships = []
    shortfalls = []
    for group in groups:
        reachable: dict[int, list[HostId]] = {}
        for member in group.members:
            if member not in part_of:
                shortfalls.append(Shortfall(group.id, member, NOT_LOCATED))
            elif member not in agents:
                if group.class_d is None:  # else the switches serve it
                    shortfalls.append(Shortfall(group.id, member, PLAIN))
            elif member not in live:
                shortfalls.append(Shortfall(group.id, member, NOT_LIVE))
            else:
                reachable.setdefault(part_of[member], []).append(member)
        kept = min(reachable.values(), key=lambda members: (-len(members), members[0]), default=[])
        for members in reachable.values():
            if members is not kept:
                shortfalls += [Shortfall(group.id, member, CUT_OFF) for member in members]
        memberships.append(Membership(group, tuple(kept)))
    return memberships, shortfalls


def _plan_switches(
    state: FabricState,
    part: Topology,
    tree: SpanningTree,
    class_d: list[TableEntry],
    numbers: dict[GroupId, tuple[HostId, ...]],
    mgids: dict[GroupId, Mgid],
) -> None:
    uses = ports_in_use(part)
    fixed = fixed_groups(part, tree)
    for switch in part.switches:
        planned = state.switches[switch.id] = SwitchState()
        links, hosts = uses[switch.id]
        for entry in [*port_entries(switch.ports, links, hosts), *tree_set_entries(switch.ports), *class_d]:
            planned.add(entry)
        default = tree_set_default(switch.ports)
        planned.defaults[default.table] = default
        planned.multicast.update(fixed[switch.id])
        planned.multicast.update(tree_set_groups(switch.ports))
    everyone = tuple(host.id for host in part.hosts)
    for number, members in [*numbers.items(), (GROUP_BROADCAST, everyone)]:
        for switch_id, ports in group_ports(part, tree, members_by_host(part, members)).items():
            state.switches[switch_id].multicast[mgids[number]] = ports
            state.switches[switch_id].add(group_entry(number, mgids[number]))


def _plan_agents(
    state: FabricState,
    whole: Topology,
    parts: list[Topology],
    memberships: list[Membership],
    agents: frozenset[HostId],
    live: frozenset[HostId],
    pathfinder: Pathfinder,
) -> None:
    """`parts` are what is up of `whole`."""
    hosts = tuple(host.id for host in whole.hosts)
    told = [host for host in hosts if host in agents]
    if not told:
        return
    unicast = _routes(whole, parts, pathfinder.unicast_routes)
    along_tree = _routes(whole, parts, pathfinder.tree_routes)
    groups: dict[HostId, list[AgentGroup]] = {host: [] for host in told}
    for membership in memberships:
        if membership.live and membership.live[0] in groups:
            described = _describe(whole, membership.group, membership.live, pathfinder)
            for member in membership.live:
                groups[member].append(described)
        here = tuple(member for member in membership.group.members if member in groups)
        if gone := [member for member in here if member not in live]:
            described = _describe(whole, membership.group, here, pathfinder)
            for member in gone:
                groups[member].append(described)
    for host in told:
        state.agents[host] = AgentPlan(
            host,
            _routes_from(host, hosts, unicast),
            _routes_from(host, hosts, along_tree),
            tuple(groups[host]),
        )


def _describe(
    part: Topology, group: Group, members: tuple[HostId, ...], pathfinder: Pathfinder
) -> AgentGroup:
    shape = pathfinder.group_shape(part, group.scheme, members, group.parameters)
    assert sorted(shape.order) == list(members), f"group {group.id}: order lost or added a member"
    return AgentGroup(
        group.id, group.name, group.scheme.value, members, shape.order, shape.k, shape.tree_edges
    )


def _routes(whole: Topology, parts: list[Topology], find: Callable[[Topology], Routes]) -> Routes:
    """Routes within what is up, and for all other pairs over everything known."""
    routes: Routes = {} if parts == [whole] else dict(find(whole))
    for part in parts:
        routes.update(find(part))
    return routes


def _routes_from(host: HostId, hosts: tuple[HostId, ...], routes: Routes) -> tuple[tuple[HostId, bytes], ...]:
    return tuple((other, routes[host, other]) for other in hosts if (host, other) in routes)
