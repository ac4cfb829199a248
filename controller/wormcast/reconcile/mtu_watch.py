"""Watches that links carry what hosts send, where the switches' interfaces are known."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wormcast.counters.kernel import read_mtus
from wormcast.network.ids import HostId, PortId
from wormcast.network.topology import PortRef, Topology
from wormcast.reconcile.events import EventLog

if TYPE_CHECKING:
    from wormcast.reconcile.controller import Controller

LOG = logging.getLogger("wormcast.reconcile")

WORM_BYTES = 14
"""Worm header (12) and the route of a GROUP worm (2): what an IP multicast packet gains."""
NAMED_MAX = 8
"""Findings that are named; the rest is counted."""


class MtuWatch:
    """What was found last; what is new is told once."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self.problems: list[str] = []
        """Where links do not carry what hosts send, a sentence each."""

    def look(self, controller: Controller) -> list[str]:
        """Compares the hosts' MTUs with those of the ports, as they are now."""
        interfaces = {
            (switch, PortId(port)): name
            for switch, session in controller.sessions.items()
            for port, name in session.spec.interfaces
        }
        mtus = read_mtus(set(interfaces.values()))
        ports = {place: mtus[name] for place, name in interfaces.items() if name in mtus}
        hosts = {r.id: r.mtu_bytes for r in controller.hosts.records() if r.mtu_bytes}
        found = check_mtus(controller.topology(), ports, hosts)
        for problem in found:
            if problem not in self.problems:
                LOG.warning("%s", problem)
                self._events.add("mtu_problem", time.time(), reason=problem)
        self.problems = found
        return found


def check_mtus(topology: Topology, ports: Mapping[PortRef, int], hosts: Mapping[HostId, int]) -> list[str]:
    """What cannot carry a host's longest packet, in a sentence each.

    A host's IP multicast packet crosses the fabric as a GROUP worm, longer by the worm header and its route; what
    hosts' agents send is never longer than their own MTU.

    `ports`, `hosts`: MTUs as far as known, bytes; of what is not in them nothing is said.
    """
    found = []
    places = {host.id: (host.switch, host.port) for host in topology.hosts if host.id in hosts}
    if not places:
        return []
    longest = max(places, key=lambda host: (hosts[host], -host))
    shortest = min(places, key=lambda host: (hosts[host], host))
    need = hosts[longest] + WORM_BYTES
    for link in sorted(topology.links):
        for end in link.ends():
            if ports.get(end, need) < need:
                found.append(
                    f"link {link.a}:{link.a_port} to {link.b}:{link.b_port}: port {end[1]} of switch {end[0]} has an "
                    f"MTU of {ports[end]}; packets of host {longest} (MTU {hosts[longest]}) need {need} there"
                )
    for host, place in sorted(places.items()):
        if ports.get(place, hosts[host]) < hosts[host]:
            found.append(
                f"link of host {host}: port {place[1]} of switch {place[0]} has an MTU of {ports[place]}; "
                f"the host's is {hosts[host]}"
            )
    if hosts[longest] != hosts[shortest]:
        found.append(
            f"host {longest} has an MTU of {hosts[longest]} and sends what host {shortest} "
            f"(MTU {hosts[shortest]}) cannot receive; give all hosts the same"
        )
    if len(found) > NAMED_MAX:
        found[NAMED_MAX:] = [f"and {len(found) - NAMED_MAX} more like these"]
    return found
