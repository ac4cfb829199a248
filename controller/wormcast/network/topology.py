"""Switches, hosts and links."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from wormcast_planner import SWITCH_ID_MAX

from wormcast.network.ids import HostId, PortId, SwitchId

TEXT_MAX = 200
"""Characters shown of what was given and cannot be."""
PortRef: TypeAlias = tuple[SwitchId, PortId]


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
class Grid:
    """Coordinates of the switches of a torus or mesh: a switch's id counts through them, the first dimension first."""

    radix: tuple[int, ...]
    """Switches along each dimension."""
    wraps: bool = False
    """Whether the ends of each dimension are joined: a torus."""

    def __post_init__(self) -> None:
        if not self.radix or not all(1 <= size <= SWITCH_ID_MAX for size in self.radix):
            raise GridError(
                f"grid of {list(self.radix)}",
                list(self.radix),
                f"one size or more, each 1 to {SWITCH_ID_MAX}",
            )

    def check(self, switches: Iterable[int]) -> None:
        """Raises `GridError` if a switch has no place in it."""
        cells = math.prod(self.radix)
        if (largest := max(switches, default=-1)) >= cells:
            raise GridError(
                f"switch {largest} has no place in a grid of {list(self.radix)}",
                list(self.radix),
                f"at least {largest + 1} places",
            )

    def to_json(self) -> dict[str, Any]:
        """Its entry in the `topology` file and in the switches file."""
        return {"radix": list(self.radix), "wraps": self.wraps}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Grid:
        """The same read back. Raises `GridError`, `TypeError`, `KeyError`."""
        radix, wraps = value["radix"], value.get("wraps", False)
        if not isinstance(radix, list) or not all(type(size) is int for size in radix):
            raise GridError(f"radix {radix!r}"[:TEXT_MAX], radix, "a list of integers")
        if type(wraps) is not bool:
            raise GridError(f"wraps {wraps!r}"[:TEXT_MAX], wraps, "true or false")
        return Grid(tuple(radix), wraps)


class GridError(ValueError):
    """A grid that cannot be: `value` is what was given, `bound` what would do."""

    def __init__(self, message: str, value: object, bound: str) -> None:
        super().__init__(message)
        self.value = value
        self.bound = bound


@dataclass(frozen=True)
class Topology:
    """A network, its parts in ascending order. It may be disconnected and its ids may have holes."""

    switches: tuple[Switch, ...] = ()
    hosts: tuple[Host, ...] = ()
    links: tuple[Link, ...] = ()
    grid: Grid | None = None

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
            **({} if self.grid is None else {"grid": self.grid.to_json()}),
        }
