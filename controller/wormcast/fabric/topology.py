"""Switches, hosts and links as the planner sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wormcast.fabric.ids import PORT_MAX, HostId, PortId, SwitchId

PortRef: TypeAlias = tuple[SwitchId, PortId]
"""A port of a switch."""


class TopologyError(ValueError):
    """A topology that contradicts itself; the text names the value, the bound and the choices."""


@dataclass(frozen=True, order=True)
class Switch:
    """A switch with ports 0..ports-1."""

    id: SwitchId
    ports: int


@dataclass(frozen=True, order=True)
class Host:
    """A host on one switch port."""

    id: HostId
    switch: SwitchId
    port: PortId


@dataclass(frozen=True, order=True)
class Link:
    """A full-duplex link between two switch ports; `(a, a_port)` is the smaller end."""

    a: SwitchId
    a_port: PortId
    b: SwitchId
    b_port: PortId

    @staticmethod
    def between(one: PortRef, other: PortRef) -> Link:
        """The link between two ports, in canonical orientation."""
        low, high = sorted((one, other))
        return Link(low[0], low[1], high[0], high[1])

    def ends(self) -> tuple[PortRef, PortRef]:
        """Both ends, the smaller first."""
        return (self.a, self.a_port), (self.b, self.b_port)


@dataclass(frozen=True)
class Topology:
    """A consistent network: every port has at most one use, every id is known.

    Raises `TopologyError` when built from parts that contradict each other.
    It may be disconnected and its ids may have holes.
    """

    switches: tuple[Switch, ...] = ()
    hosts: tuple[Host, ...] = ()
    links: tuple[Link, ...] = ()
    _ports: dict[PortRef, Host | Link] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "switches", tuple(sorted(self.switches)))
        object.__setattr__(self, "hosts", tuple(sorted(self.hosts)))
        object.__setattr__(self, "links", tuple(sorted(self.links)))
        ports: dict[SwitchId, int] = {}
        for switch in self.switches:
            if switch.id in ports:
                raise TopologyError(f"switch {switch.id} is listed twice")
            if not 1 <= switch.ports <= PORT_MAX + 1:
                raise TopologyError(
                    f"switch {switch.id} has {switch.ports} ports; 1 to {PORT_MAX + 1} are possible"
                )
            ports[switch.id] = switch.ports
        seen: set[HostId] = set()
        for host in self.hosts:
            if host.id in seen:
                raise TopologyError(f"host {host.id} is listed twice")
            seen.add(host.id)
            self._occupy(ports, (host.switch, host.port), host)
        for link in self.links:
            for end in link.ends():
                self._occupy(ports, end, link)

    def _occupy(self, ports: dict[SwitchId, int], ref: PortRef, user: Host | Link) -> None:
        switch, port = ref
        if switch not in ports:
            raise TopologyError(f"{user} names switch {switch}; there are {sorted(ports)}")
        if not 0 <= port < ports[switch]:
            raise TopologyError(
                f"{user} names port {port}; switch {switch} has ports 0 to {ports[switch] - 1}"
            )
        if ref in self._ports:
            raise TopologyError(f"port {port} of switch {switch} is used by {self._ports[ref]} and by {user}")
        self._ports[ref] = user

    def host(self, host: HostId) -> Host | None:
        """The host with this id."""
        return next((h for h in self.hosts if h.id == host), None)

    def components(self) -> list[Topology]:
        """The connected parts, by their smallest switch."""
        neighbours: dict[SwitchId, list[SwitchId]] = {s.id: [] for s in self.switches}
        for link in self.links:
            neighbours[link.a].append(link.b)
            neighbours[link.b].append(link.a)
        part: dict[SwitchId, int] = {}
        count = 0
        for switch in self.switches:
            if switch.id in part:
                continue
            stack = [switch.id]
            part[switch.id] = count
            while stack:
                for other in neighbours[stack.pop()]:
                    if other not in part:
                        part[other] = count
                        stack.append(other)
            count += 1
        return [
            Topology(
                tuple(s for s in self.switches if part[s.id] == n),
                tuple(h for h in self.hosts if part[h.switch] == n),
                tuple(link for link in self.links if part[link.a] == n),
            )
            for n in range(count)
        ]

    def to_json(self) -> dict[str, Any]:
        """The `topology` file form."""
        return {
            "switches": [{"id": s.id, "ports": s.ports} for s in self.switches],
            "hosts": [{"id": h.id, "switch": h.switch, "port": h.port} for h in self.hosts],
            "links": [
                {"a": link.a, "a_port": link.a_port, "b": link.b, "b_port": link.b_port}
                for link in self.links
            ],
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> Topology:
        """Reads the `topology` file form; raises `TopologyError`."""
        try:
            return Topology(
                tuple(Switch(SwitchId(int(s["id"])), int(s["ports"])) for s in value["switches"]),
                tuple(_host(h) for h in value.get("hosts", ())),
                tuple(
                    Link.between(
                        (SwitchId(int(link["a"])), PortId(int(link["a_port"]))),
                        (SwitchId(int(link["b"])), PortId(int(link["b_port"]))),
                    )
                    for link in value.get("links", ())
                ),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise TopologyError(f"not a topology: {error!r}; wanted switches, hosts and links") from error


def _host(value: dict[str, Any]) -> Host:
    return Host(HostId(int(value["id"])), SwitchId(int(value["switch"])), PortId(int(value["port"])))


def ports_in_use(topology: Topology) -> dict[SwitchId, tuple[set[PortId], set[PortId]]]:
    """For every switch: ports that lead to a switch, ports that lead to a host."""
    uses: dict[SwitchId, tuple[set[PortId], set[PortId]]] = {s.id: (set(), set()) for s in topology.switches}
    for link in topology.links:
        uses[link.a][0].add(link.a_port)
        uses[link.b][0].add(link.b_port)
    for host in topology.hosts:
        uses[host.switch][1].add(host.port)
    return uses


def sorted_hosts(hosts: Iterable[HostId]) -> tuple[HostId, ...]:
    """Hosts without repetition, ascending."""
    return tuple(sorted(set(hosts)))
