"""Desired state of every switch and every agent, from topology and groups. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from wormcast.fabric.agent_plan import (
    CUT_OFF,
    NOT_LIVE,
    NOT_LOCATED,
    PLAIN,
    AgentPlanner,
    GroupShape,
    Hosts,
    RouteFinder,
    Routes,
)
from wormcast.fabric.class_d import NARROW, ClassDNumbers
from wormcast.fabric.groups import Group
from wormcast.fabric.ids import GroupId, HostId, SwitchId
from wormcast.fabric.state import FabricState
from wormcast.fabric.switch_plan import SwitchPlanner, TreeFinder
from wormcast.fabric.topology import Topology

__all__ = [
    "CUT_OFF",
    "NOT_LIVE",
    "NOT_LOCATED",
    "NOT_PLANNED",
    "PLAIN",
    "GroupShape",
    "Hosts",
    "Pathfinder",
    "Planner",
    "Routes",
    "plan",
]

NOT_PLANNED = "the plan in force is older than this group"


class Pathfinder(RouteFinder, TreeFinder, Protocol):
    """Where trees, routes and structures come from."""


def plan(
    topology: Topology,
    groups: Iterable[Group],
    agents: frozenset[HostId],
    live: frozenset[HostId],
    pathfinder: Pathfinder,
    class_d: ClassDNumbers = NARROW,
    known: Topology | None = None,
) -> FabricState:
    """What every switch and every agent must have; see `Planner.plan`."""
    return Planner(pathfinder).plan(topology, groups, Hosts(agents, live), class_d, known)


class Planner:
    """Plans one network again and again.

    It keeps what does not depend on a change: for the change of a group the routes, trees
    and all other groups stay as they are. What it gives is what a new planner would give.
    """

    def __init__(self, pathfinder: Pathfinder) -> None:
        self._pathfinder = pathfinder
        self._network: tuple[Topology, Topology] | None = None
        self._parts: tuple[frozenset[SwitchId], ...] = ()
        self._groups: dict[GroupId, Group] = {}
        self._switches = SwitchPlanner(pathfinder, [])
        self._agents = AgentPlanner(pathfinder, [], [])

    def plan(
        self,
        topology: Topology,
        groups: Iterable[Group],
        hosts: Hosts,
        class_d: ClassDNumbers = NARROW,
        known: Topology | None = None,
    ) -> FabricState:
        """What every switch and every agent must have.

        `topology` is what is up, `known` that and what is suspected to be away for a
        moment (None: nothing is). Suspicion costs nobody a membership: groups span
        `known`. It only moves routes: a pair of hosts that what is up joins has its
        route there, any other pair over all that is known. Switches that are not up
        are not planned, so that they keep what they have.

        Agents that are not live are told of their groups as if all took part, so that
        who comes back finds itself a member; nobody else hears of them. Switches
        replicate to every located member of a group, agent or not, under its id and the
        number that `class_d` gives its address. A group whose live members are not all
        connected keeps those of the part with most of them (on a tie the part with the
        lowest host); the others are `shortfalls`, and so is who cannot take a group.

        A group or a connected part that cannot be planned is named in `failures` and
        holds up nothing else: a group stays as it was planned before if it can.
        """
        wanted = {group.id: group for group in groups}
        network = (topology, topology if known is None else known)
        whole = network != self._network
        if whole:
            self._start(topology, network[1])
            changed, gone = [wanted[group] for group in sorted(wanted)], []
        else:
            before = self._groups
            changed = [g for g in wanted.values() if (old := before.get(g.id)) is not g and old != g]
            changed.sort(key=lambda group: group.id)
            gone = [group for group in before if group not in wanted]
        self._network = None  # nothing to build on, should something fail
        touched = self._switches.change(gone, changed, class_d)
        self._agents.change(gone, changed, hosts)
        self._network, self._groups = network, wanted
        return FabricState(
            switches=self._switches.switches,
            agents=self._agents.agents,
            shortfalls=self._agents.shortfalls,
            parts=self._parts,
            failures=(
                *self._switches.failures,
                *self._agents.failures,
                *self._agents.group_failures,
            ),
            touched=None if whole else touched,
        )

    def _start(self, topology: Topology, known: Topology) -> None:
        parts = topology.components()
        wholes = parts if known == topology else known.components()
        before = self._agents
        self._parts = tuple(frozenset(switch.id for switch in part.switches) for part in parts)
        self._switches = SwitchPlanner(self._pathfinder, parts)
        self._agents = AgentPlanner(self._pathfinder, wholes, parts)
        self._agents.take_over(before)
