"""Desired and actual state: what a switch holds, what an agent is told."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from wormcast.fabric.ids import GroupId, HostId, Mgid, PortId, SwitchId

MatchValue: TypeAlias = int | tuple[int, int]
"""An exact value, or value and mask of a ternary field."""

EntryKey: TypeAlias = tuple[str, tuple[tuple[str, MatchValue], ...], int]
"""Identifies a table entry within a switch: table, match, priority."""

Place: TypeAlias = EntryKey | Mgid
"""Where a switch holds something: a table entry or a replication group."""


@dataclass(frozen=True)
class TableEntry:
    """One entry of a match-action table, named as in the P4Info."""

    table: str
    match: tuple[tuple[str, MatchValue], ...]
    action: str
    parameters: tuple[tuple[str, int], ...] = ()
    priority: int = 0
    """Ternary tables only, greater wins; 0 elsewhere."""

    @property
    def key(self) -> EntryKey:
        """What P4Runtime identifies the entry by."""
        return self.table, self.match, self.priority


@dataclass(frozen=True)
class TableDefault:
    """What a table does on a miss."""

    table: str
    action: str
    parameters: tuple[tuple[str, int], ...] = ()


@dataclass
class SwitchState:
    """Tables and replication groups of one switch."""

    entries: dict[EntryKey, TableEntry] = field(default_factory=dict)
    multicast: dict[Mgid, frozenset[PortId]] = field(default_factory=dict)
    defaults: dict[str, TableDefault] = field(default_factory=dict)
    """Tables whose default action the controller sets."""

    def add(self, entry: TableEntry) -> None:
        """Adds an entry; two entries with one key are a bug of the planner."""
        assert entry.key not in self.entries, f"entry {entry.key} planned twice"
        self.entries[entry.key] = entry

    def copy(self) -> SwitchState:
        """A copy that can change on its own."""
        return SwitchState(dict(self.entries), dict(self.multicast), dict(self.defaults))


@dataclass(frozen=True)
class AgentGroup:
    """A group as one agent has to know it (`Group` of agent.proto)."""

    id: GroupId
    name: str
    scheme: str
    members: tuple[HostId, ...]
    order: tuple[HostId, ...]
    k: int
    tree_edges: tuple[tuple[HostId, HostId], ...]

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint: equal groups, equal digest, in every run."""
        return hashlib.sha256(repr(self).encode()).digest()


@dataclass(frozen=True)
class AgentPlan:
    """Everything one agent has to know, without the epoch (`Plan` of agent.proto)."""

    host: HostId
    routes: tuple[tuple[HostId, bytes], ...]
    tree_routes: tuple[tuple[HostId, bytes], ...]
    groups: tuple[AgentGroup, ...]

    @cached_property
    def groups_by_id(self) -> dict[GroupId, AgentGroup]:
        """The groups by number."""
        return {group.id: group for group in self.groups}

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint: equal plans, equal digest, in every run."""
        digest = hashlib.sha256()
        for routes in (self.routes, self.tree_routes):
            digest.update(b"%d:%d:" % (self.host, len(routes)))
            digest.update(b"".join(b"%d,%d," % (other, len(ports)) + ports for other, ports in routes))
        digest.update(b"".join(group.digest for group in self.groups))
        return digest.digest()


@dataclass
class FabricState:
    """What every switch and every agent must have."""

    switches: dict[SwitchId, SwitchState] = field(default_factory=dict)
    agents: dict[HostId, AgentPlan] = field(default_factory=dict)
    shortfalls: tuple[Shortfall, ...] = ()
    parts: tuple[frozenset[SwitchId], ...] = ()
    """Switches that are joined, by their lowest."""
    failures: tuple[PlanFailure, ...] = ()
    """What could not be planned and is left out or as it was."""
    touched: dict[SwitchId, tuple[Place, ...]] | None = None
    """Where this state differs from the one the same planner gave before; None: anywhere."""

    @cached_property
    def shortfalls_by_group(self) -> dict[GroupId, dict[HostId, str]]:
        """Why members do not take part, by group and host."""
        found: dict[GroupId, dict[HostId, str]] = {}
        for shortfall in self.shortfalls:
            found.setdefault(shortfall.group, {})[shortfall.host] = shortfall.reason
        return found


@dataclass(frozen=True)
class PlanFailure:
    """A group, or the switches of one connected part, that cannot be planned."""

    reason: str
    group: GroupId | None = None
    switches: tuple[SwitchId, ...] = ()

    def __str__(self) -> str:
        if self.group is not None:
            return f"group {self.group}: {self.reason}"
        return f"switches {', '.join(map(str, self.switches))}: {self.reason}"


@dataclass(frozen=True)
class Shortfall:
    """A member that a group has and its plan cannot serve, and why."""

    group: GroupId
    host: HostId
    reason: str


def digest_agents(agents: dict[HostId, AgentPlan]) -> str:
    """A fingerprint of all agent plans: equal plans, equal digest, in every run."""
    return hashlib.sha256(b"".join(agents[host].digest for host in sorted(agents))).hexdigest()
