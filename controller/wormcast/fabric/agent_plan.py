"""What every agent must have, planned again and again: only what a change concerns is made anew. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from wormcast.fabric.groups import Group, Parameters, Scheme
from wormcast.fabric.ids import GroupId, HostId
from wormcast.fabric.state import AgentGroup, AgentPlan, PlanFailure, Shortfall
from wormcast.fabric.topology import Topology

Routes = dict[tuple[HostId, HostId], bytes]
"""Source route from one host to another, as port bytes."""

NOT_LOCATED = "no place known for it, or its switch is down"
PLAIN = "it has no agent, and the group has no class D address"
NOT_LIVE = "its agent is gone"
CUT_OFF = "no known link leads to the other members"


@dataclass(frozen=True)
class GroupShape:
    """The structure of a group over its hosts."""

    order: tuple[HostId, ...]
    k: int
    tree_edges: tuple[tuple[HostId, HostId], ...]


class RouteFinder(Protocol):
    """Where routes and structures come from; works on one connected part at a time."""

    def unicast_routes(self, part: Topology) -> Routes:
        """Routes between all pairs of hosts."""

    def tree_routes(self, part: Topology) -> Routes:
        """Routes between all pairs of hosts along the spanning tree."""

    def group_shape(
        self, part: Topology, scheme: Scheme, members: tuple[HostId, ...], parameters: Parameters
    ) -> GroupShape:
        """Ordering and edges of a group's structure (ALGORITHMS §4)."""


@dataclass(frozen=True)
class Capacity:
    """What one agent takes."""

    groups: int
    members: int
    """Of one group."""
    refused: Mapping[GroupId, str] = field(default_factory=dict)
    """Groups it has refused as they are, and why."""


@dataclass(frozen=True)
class Hosts:
    """What is known of hosts apart from where they are."""

    agents: frozenset[HostId]
    """Those that have one."""
    live: frozenset[HostId]
    """Agents that take part in their groups."""
    capacities: Mapping[HostId, Capacity] = field(default_factory=dict)
    """Of agents; one that is not named takes anything."""


@dataclass
class _Planned:
    """One group as it is planned."""

    group: Group
    shortfalls: tuple[Shortfall, ...]
    told: dict[HostId, AgentGroup]
    failure: PlanFailure | None = None


class AgentPlanner:
    """Keeps the last plan of the agents of one network, and changes it."""

    def __init__(self, finder: RouteFinder, wholes: list[Topology], parts: list[Topology]) -> None:
        """`wholes` are the connected parts of all that is known, `parts` of what is up."""
        self._finder = finder
        self._wholes = wholes
        self._whole_of = {host.id: n for n, whole in enumerate(wholes) for host in whole.hosts}
        self._routes: list[_RouteTables | None] = []
        self.failures: list[PlanFailure] = []
        """Parts without routes; their agents keep what they have."""
        for whole in wholes:
            switches = {switch.id for switch in whole.switches}
            inside = [part for part in parts if part.switches[0].id in switches]
            try:
                self._routes.append(_RouteTables(finder, whole, inside))
            except Exception as error:
                named = tuple(switch.id for switch in whole.switches)
                self.failures.append(PlanFailure(f"no routes: {error}", switches=named))
                self._routes.append(None)
        self._shapes: dict[tuple[int, Scheme, Parameters, tuple[HostId, ...]], GroupShape] = {}
        """Many groups have the same members; forgotten after each change."""
        self._hosts = Hosts(frozenset(), frozenset())
        self._planned: dict[GroupId, _Planned] = {}
        self._groups_of: dict[HostId, dict[GroupId, AgentGroup]] = {}
        self._memberships: Counter[HostId] = Counter()
        """Configured groups of each host."""
        self._crowded = False
        """Some host has more groups than it takes: which of them it gets depends on all."""
        self._inherited: dict[GroupId, _Planned] = {}
        self._inherited_agents: dict[HostId, AgentPlan] = {}
        self.agents: dict[HostId, AgentPlan] = {}

    def take_over(self, before: AgentPlanner) -> None:
        """What comes out the same as before will be the same objects; a group that cannot be planned stays."""
        self._inherited, self._inherited_agents = before._planned, before.agents

    def change(self, gone: Iterable[GroupId], new: Iterable[Group], hosts: Hosts) -> None:
        """Takes groups away and adds or replaces others."""
        stale: dict[HostId, None] = {}
        replaced = dict.fromkeys([*gone, *(group.id for group in new)])
        removed = {group: self._planned.pop(group) for group in replaced if group in self._planned}
        for planned in removed.values():
            self._memberships.subtract(planned.group.members)
            for host in planned.told:
                if self._groups_of.get(host, {}).pop(planned.group.id, None) is not None:
                    stale[host] = None
        for group in new:
            self._memberships.update(group.members)
        hosts_changed, self._hosts = hosts != self._hosts, hosts
        was_crowded, self._crowded = self._crowded, self._is_crowded()
        before = {**self._inherited, **removed}
        again = list(new)
        if hosts_changed or was_crowded or self._crowded:
            before |= self._planned
            again = sorted([*new, *(p.group for p in self._planned.values())], key=lambda g: g.id)
            self._planned = {}
            self._groups_of = {}
            stale = dict.fromkeys(self._whole_of)
        for group in again:
            planned = self._planned[group.id] = self._plan(group, before.get(group.id))
            for host, described in planned.told.items():
                self._groups_of.setdefault(host, {})[group.id] = described
                stale[host] = None
        self._shapes = {}
        self._plan_agents(stale)
        self._inherited, self._inherited_agents = {}, {}

    def _is_crowded(self) -> bool:
        takes = self._hosts.capacities.items()
        return any(self._memberships[host] > capacity.groups for host, capacity in takes)

    @property
    def shortfalls(self) -> tuple[Shortfall, ...]:
        """Of all groups by id."""
        return tuple(s for group in sorted(self._planned) for s in self._planned[group].shortfalls)

    @property
    def group_failures(self) -> list[PlanFailure]:
        """Groups that cannot be planned, by id."""
        return [f for group in sorted(self._planned) if (f := self._planned[group].failure) is not None]

    def _plan(self, group: Group, before: _Planned | None) -> _Planned:
        live, shortfalls = self._assign(group)
        told: dict[HostId, AgentGroup] = {}
        failure = None
        try:
            if live:
                told.update(dict.fromkeys(live, self._describe(group, live, before)))
            for n in {self._whole_of[m]: None for m in group.members if m in self._whole_of}:
                here = tuple(m for m in group.members if self._is_told(m, n))
                if gone := [m for m in here if m not in self._hosts.live and self._takes(m, group) is None]:
                    told.update(dict.fromkeys(gone, self._describe(group, here, before)))
        except Exception as error:
            failure = PlanFailure(f"it cannot be planned: {error}", group.id)
            told = _unchanged(group, live, before)
            if not told:
                shortfalls += [Shortfall(group.id, m, failure.reason) for m in live]
        return _Planned(group, tuple(shortfalls), told, failure)

    def _assign(self, group: Group) -> tuple[tuple[HostId, ...], list[Shortfall]]:
        """The members that take part now, and why the others do not.

        Those of the part with most of them, on a tie of the part with the lowest host.
        """
        reachable: dict[int, list[HostId]] = {}
        shortfalls = []
        for member in group.members:
            if member not in self._whole_of:
                shortfalls.append(Shortfall(group.id, member, NOT_LOCATED))
            elif member not in self._hosts.agents:
                if group.class_d is None:  # else the switches serve it
                    shortfalls.append(Shortfall(group.id, member, PLAIN))
            elif member not in self._hosts.live:
                shortfalls.append(Shortfall(group.id, member, NOT_LIVE))
            elif (reason := self._takes(member, group)) is not None:
                shortfalls.append(Shortfall(group.id, member, reason))
            else:
                reachable.setdefault(self._whole_of[member], []).append(member)
        kept = min(reachable.values(), key=lambda members: (-len(members), members[0]), default=[])
        for members in reachable.values():
            if members is not kept:
                shortfalls += [Shortfall(group.id, member, CUT_OFF) for member in members]
        return tuple(kept), shortfalls

    def _takes(self, host: HostId, group: Group) -> str | None:
        """Why an agent does not take a group; None: it does."""
        capacity = self._hosts.capacities.get(host)
        if capacity is None:
            return None
        if group.id in capacity.refused:
            return f"its agent refuses the group: {capacity.refused[group.id]}"
        if len(group.members) > capacity.members:
            return f"the group has {len(group.members)} members; its agent takes at most {capacity.members}"
        if len(self._groups_of.get(host, ())) >= capacity.groups:
            return f"its agent takes at most {capacity.groups} groups"
        return None

    def _is_told(self, host: HostId, whole: int) -> bool:
        return host in self._hosts.agents and self._whole_of.get(host) == whole

    def _describe(self, group: Group, members: tuple[HostId, ...], before: _Planned | None) -> AgentGroup:
        n = self._whole_of[members[0]]
        key = (n, group.scheme, group.parameters, members)
        if key not in self._shapes:
            self._shapes[key] = self._finder.group_shape(
                self._wholes[n], group.scheme, members, group.parameters
            )
        shape = self._shapes[key]
        if sorted(shape.order) != list(members):
            raise ValueError("its order lost or added a member")
        described = AgentGroup(
            group.id, group.name, group.scheme.value, members, shape.order, shape.k, shape.tree_edges
        )
        # The same object as before says that nothing has to be encoded again.
        same = () if before is None else before.told.values()
        return next((old for old in same if old == described), described)

    def _plan_agents(self, stale: Iterable[HostId]) -> None:
        agents = {host: plan for host, plan in self.agents.items() if host in self._hosts.agents}
        for host in stale:
            tables = self._routes[self._whole_of[host]] if host in self._whole_of else None
            if tables is None or host not in self._hosts.agents:
                continue
            groups = self._groups_of.get(host, {})
            unicast, along_tree = tables.of(host)
            plan = AgentPlan(host, unicast, along_tree, tuple(groups[group] for group in sorted(groups)))
            old = self._inherited_agents.get(host, agents.get(host))
            agents[host] = old if old is not None and old == plan else plan
        self.agents = {host: agents[host] for host in sorted(agents)}


class _RouteTables:
    """Routes from every host of one connected part."""

    def __init__(self, finder: RouteFinder, whole: Topology, parts: list[Topology]) -> None:
        self._hosts = tuple(host.id for host in whole.hosts)
        self._unicast = _find(whole, parts, finder.unicast_routes) if self._hosts else {}
        self._along_tree = _find(whole, parts, finder.tree_routes) if self._hosts else {}
        self._found: dict[
            HostId, tuple[tuple[tuple[HostId, bytes], ...], tuple[tuple[HostId, bytes], ...]]
        ] = {}

    def of(self, host: HostId) -> tuple[tuple[tuple[HostId, bytes], ...], tuple[tuple[HostId, bytes], ...]]:
        """Unicast routes and routes along the tree from one host; the same objects each time."""
        if host not in self._found:
            self._found[host] = (self._from(host, self._unicast), self._from(host, self._along_tree))
        return self._found[host]

    def _from(self, host: HostId, routes: Routes) -> tuple[tuple[HostId, bytes], ...]:
        return tuple((other, routes[host, other]) for other in self._hosts if (host, other) in routes)


def _find(whole: Topology, parts: list[Topology], find: Callable[[Topology], Routes]) -> Routes:
    """Routes within what is up, and for all other pairs over everything known."""
    routes: Routes = {} if parts == [whole] else dict(find(whole))
    for part in parts:
        routes.update(find(part))
    return routes


def _unchanged(group: Group, live: tuple[HostId, ...], before: _Planned | None) -> dict[HostId, AgentGroup]:
    """A group as it was planned before, if that still fits its members."""
    if before is None:
        return {}
    fits = all(host in before.told and before.told[host].members == live for host in live)
    return dict(before.told) if fits and before.group.scheme is group.scheme else {}
