"""What a plan is made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from wormcast_planner import ClassDNumbers, complete_costs

from wormcast.guard.state import Guard
from wormcast.network.groups import Group
from wormcast.network.ids import GroupId, HostId, SwitchId
from wormcast.network.routing import Routing
from wormcast.network.topology import PortRef, Topology
from wormcast.reconcile.agent_status import Capacity
from wormcast.reconcile.bring_out import Part
from wormcast.wormhole.switching import Switching

COSTS_DEFAULT: Final = complete_costs('"agents"')
"""What groups of scheme auto go by unless the operator says otherwise: a costs file."""


@dataclass(frozen=True)
class View:
    """What a plan is made from."""

    topology: Topology
    known: Topology
    """What is up, and what is suspected to be away for a moment."""
    groups: tuple[Group, ...]
    agents: frozenset[HostId]
    live: frozenset[HostId]
    routing: Routing = field(default_factory=Routing)
    class_d: ClassDNumbers = field(default_factory=ClassDNumbers)
    capacities: dict[HostId, Capacity] = field(default_factory=dict)
    costs: str = COSTS_DEFAULT
    """By which groups of scheme auto choose: a costs file."""
    mtu_limited: Mapping[PortRef, int] = field(default_factory=dict)
    """What links carry less than the longest frames that hosts send, by both ends: bytes after the Ethernet header."""
    ends_down: frozenset[PortRef] = frozenset()
    """Both ends of known links that carry nothing, because a port is down."""
    guard: Guard = field(default_factory=Guard)
    switching: Switching = field(default_factory=Switching)
    trains: bool = False
    """Whether agents are to send trains."""
    away: Mapping[HostId, str] = field(default_factory=dict)
    """Why agents are gone, where it is known since when."""

    @cached_property
    def by_id(self) -> dict[GroupId, Group]:
        """The groups by number."""
        return {group.id: group for group in self.groups}

    def parts(self, switches: Iterable[frozenset[SwitchId]]) -> list[Part]:
        """Joined switches with the hosts on them."""
        hosts: dict[SwitchId, list[HostId]] = {}
        for host in self.topology.hosts:
            hosts.setdefault(host.switch, []).append(host.id)
        return [Part(part, frozenset(h for s in part for h in hosts.get(s, ()))) for part in switches]
