"""A model of the switches, from p4src/CONTRACT.md alone: tables in, deliveries out; and a switch that executes updates."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from wormcast.fabric.difference import MulticastGroup, Operation, Update, execute
from wormcast.fabric.ids import HostId, Mgid, PortId, SwitchId
from wormcast.fabric.state import SwitchState, TableDefault, TableEntry
from wormcast.fabric.topology import Host, PortRef, Topology

MAX_HOPS = 64


class LoopError(AssertionError):
    """A worm crossed as many switches as it may."""


@dataclass
class Walker:
    """Follows worms through switches that hold the given state."""

    topology: Topology
    states: dict[SwitchId, SwitchState]
    crossed: set[PortRef] = field(init=False, default_factory=set)
    """Switch ports that worms left by towards another switch; the caller clears it."""
    _beyond: dict[PortRef, PortRef | HostId] = field(init=False)

    def __post_init__(self) -> None:
        self._beyond = {(h.switch, h.port): h.id for h in self.topology.hosts}
        for link in self.topology.links:
            one, other = link.ends()
            self._beyond[one] = other
            self._beyond[other] = one

    def send_group(self, sender: Host, number: int) -> Counter[HostId]:
        """Who gets a GROUP worm, how often."""
        got: Counter[HostId] = Counter()
        waiting = deque([((sender.switch, sender.port), 0)])
        while waiting:
            (switch, port), hops = waiting.popleft()
            entry = self._lookup(switch, "ingress.groups", "group", number)
            if entry is None:
                continue
            mgid = Mgid(dict(entry.parameters)["mgid"])
            for out in self.states[switch].multicast.get(mgid, frozenset()) - {port}:
                self._leave((switch, out), hops, got, waiting)
        return got

    def send_class_d(self, sender: Host, address: int) -> Counter[HostId]:
        """Who gets a class D packet of a plain host."""
        role = self._lookup(
            sender.switch, "ingress.port_roles", "standard_metadata.ingress_port", sender.port
        )
        if role is None or dict(role.parameters)["role"] != 2:
            return Counter()
        hits = []
        for entry in self.states[sender.switch].entries.values():
            if entry.table == "ingress.class_d":
                (field_name, value), *_ = entry.match
                assert field_name == "hdr.ipv4.dst"
                assert isinstance(value, tuple)
                if address & value[1] == value[0]:
                    hits.append(entry)
        if not hits:
            return Counter()
        best = max(hits, key=lambda entry: entry.priority)
        return self.send_group(sender, dict(best.parameters)["group"])

    def send_broadcast(self, root: SwitchId) -> Counter[HostId]:
        """Who gets a BROADCAST worm that has reached the root."""
        got: Counter[HostId] = Counter()
        waiting: deque[tuple[PortRef, int]] = deque([((root, PortId(-1)), 0)])
        while waiting:
            (switch, _), hops = waiting.popleft()
            for out in self.states[switch].multicast.get(Mgid(1), frozenset()):
                self._leave((switch, out), hops, got, waiting)
        return got

    def send_unicast(self, sender: Host, route: bytes) -> HostId | None:
        """Where a UNICAST worm ends."""
        at: PortRef | HostId = (sender.switch, sender.port)
        for port in route:
            assert isinstance(at, tuple), "the route goes on after a host"
            if self._lookup(at[0], "ingress.ports", "port", port) is None:
                return None
            ref = (at[0], PortId(port))
            if ref not in self._beyond:
                return None
            at = self._beyond[ref]
            if isinstance(at, tuple):
                self.crossed.add(ref)
        return None if isinstance(at, tuple) else at

    def _leave(
        self, ref: PortRef, hops: int, got: Counter[HostId], waiting: deque[tuple[PortRef, int]]
    ) -> None:
        there = self._beyond.get(ref)
        if isinstance(there, tuple):
            if hops + 1 >= MAX_HOPS:
                raise LoopError(f"a worm loops at {ref}")
            self.crossed.add(ref)
            if there[0] in self.states:
                waiting.append((there, hops + 1))
        elif there is not None:
            got[there] += 1

    def _lookup(self, switch: SwitchId, table: str, field_name: str, value: int) -> TableEntry | None:
        state = self.states.get(switch, SwitchState())
        return state.entries.get((table, ((field_name, value),), 0))


class FakeSwitch:
    """Executes updates as strictly as P4Runtime asks."""

    def __init__(self, state: SwitchState | None = None) -> None:
        self.state = state or SwitchState()
        self.executed: list[Update] = []

    def write(self, update: Update) -> None:
        """Executes one update; an update that P4Runtime would refuse is an AssertionError."""
        entity, operation = update.entity, update.operation
        if isinstance(entity, TableDefault):
            assert operation is Operation.MODIFY
        elif isinstance(entity, MulticastGroup):
            assert (entity.mgid in self.state.multicast) == (operation is not Operation.INSERT), update
            assert entity.ports or operation is Operation.DELETE, "a group without ports"
            if operation is Operation.DELETE:
                assert not self._users(entity.mgid), f"{update} pulls the group from under an entry"
        else:
            assert (entity.key in self.state.entries) == (operation is not Operation.INSERT), update
            if operation is not Operation.DELETE and "mgid" in dict(entity.parameters):
                assert dict(entity.parameters)["mgid"] in self.state.multicast, f"{update} names no group"
        execute(update, self.state)
        self.executed.append(update)

    def _users(self, mgid: Mgid) -> list[TableEntry]:
        return [e for e in self.state.entries.values() if ("mgid", mgid) in e.parameters]
