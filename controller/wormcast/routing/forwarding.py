"""Forwarding tables: for every switch and host the port that leads there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import wormcast_planner as native

NO_PORT = 255


@dataclass(frozen=True)
class ForwardingTables:
    """First ports of the routes from every switch to every host.

    An entry is the first byte of the route of a worm injected at that switch. It does not
    tell where a worm that is passing through goes on: the source writes the whole route,
    and following the entries from switch to switch need not give it.

    `switches` and `hosts` are ids, ascending; `ports` has a byte for each pair, the hosts
    of the first switch first, NO_PORT where there is no path.
    """

    switches: tuple[int, ...]
    hosts: tuple[int, ...]
    ports: bytes

    def row(self, switch: int) -> dict[int, int]:
        """Port by host, at one switch; hosts that it cannot reach are left out. Raises
        ValueError if there is no such switch."""
        if switch not in self.switches:
            raise ValueError(
                f"there is no switch {switch}; switches are {', '.join(map(str, self.switches))}"
            )
        place = self.switches.index(switch)
        ports = self.ports[place * len(self.hosts) : (place + 1) * len(self.hosts)]
        return {host: port for host, port in zip(self.hosts, ports, strict=True) if port != NO_PORT}


def forwarding(
    topology: Mapping[str, Any], algorithm: str = "osud", root: int | None = None
) -> ForwardingTables:
    """First ports from every switch to every host; of several routes of a pair the first
    counts. Raises `RoutingError`."""
    ports = native.forwarding(json.dumps(topology), algorithm, root)
    return ForwardingTables(
        switches=tuple(sorted(switch["id"] for switch in topology["switches"])),
        hosts=tuple(sorted(host["id"] for host in topology["hosts"])),
        ports=ports,
    )
