"""Switches, hosts and links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from wormcast.network.ids import HostId, PortId, SwitchId

PortRef: TypeAlias = tuple[SwitchId, PortId]
"""A port of a switch."""


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
    transit: bool = True
    """Whether it may re-inject worms of others."""

    def to_json(self) -> dict[str, Any]:
        """Its entry in the `topology` file."""
        entry: dict[str, Any] = {"id": self.id, "switch": self.switch, "port": self.port}
        return entry if self.transit else {**entry, "transit": False}


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
    """A network, its parts in ascending order. It may be disconnected and its ids may have holes."""

    switches: tuple[Switch, ...] = ()
    hosts: tuple[Host, ...] = ()
    links: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        for name in ("switches", "hosts", "links"):
            object.__setattr__(self, name, tuple(sorted(getattr(self, name))))

    def to_json(self) -> dict[str, Any]:
        """The `topology` file form."""
        return {
            "switches": [{"id": s.id, "ports": s.ports} for s in self.switches],
            "hosts": [host.to_json() for host in self.hosts],
            "links": [
                {"a": link.a, "a_port": link.a_port, "b": link.b, "b_port": link.b_port}
                for link in self.links
            ],
        }
