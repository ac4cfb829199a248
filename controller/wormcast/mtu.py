"""What frames links carry: where that differs, groups keep to it, and links are named."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from wormcast_planner import MTU_MAX

from wormcast.counters.kernel import read_mtus
from wormcast.network.ids import HostId, PortId, SwitchId
from wormcast.network.topology import PortRef, Topology
from wormcast.p4rt.port_states import AnnouncedPorts
from wormcast.reconcile.discovered import Discovered
from wormcast.reconcile.events import EventLog
from wormcast.store.database import SwitchSpec

LOG = logging.getLogger("wormcast.reconcile")

WORM_BYTES = 14
"""Worm header (12) and the route of a GROUP worm (2): what an IP multicast packet gains."""
NAMED_MAX = 8
"""Findings that are named; the rest is counted."""
LOOK_LATER_S = 1.0
"""After links have gone: then none becomes narrower, and hosts that were cut off wait for their new routes."""
LOOK_INTERVAL_S = 1.0
"""Between looks at interfaces of switches that do not report their MTUs."""


class MtuWatch:
    """What was found last; what is new is reported once."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._ports: dict[SwitchId, dict[PortId, int]] = {}
        """As each switch reports them, or as the kernel had them later."""
        self._reporting: set[SwitchId] = set()
        self._silent_interfaces = True
        """Some switch has interfaces here and does not report them."""
        self._look_at = 0.0
        self.problems: list[str] = []
        """Where links do not carry what hosts send, a sentence each."""
        self.mtu_limited: Mapping[PortRef, int] = {}
        """Links that carry less than the longest frames of hosts, by both ends: bytes after the Ethernet header."""

    def note_ports(self, switch: SwitchId, states: AnnouncedPorts | None) -> bool:
        """A switch says what MTUs its ports have, None that it does not any more; whether that is news."""
        if states is None or not states.mtus:
            self._reporting.discard(switch)
            return False
        self._reporting.add(switch)
        before = self._ports.get(switch)
        self._ports[switch] = dict(states.mtus)
        return before != states.mtus

    def is_due(self, now: float) -> bool:
        """Whether what nobody reports has to be looked at."""
        if now < self._look_at or not self._silent_interfaces:
            return False
        self._look_at = now + LOOK_INTERVAL_S
        return True

    def look(self, switches: Collection[SwitchSpec], discovered: Discovered, now: float) -> list[str]:
        """Compares the hosts' MTUs with those of the ports, as they are now; what links do not carry."""
        interfaces = {(spec.id, PortId(port)): name for spec in switches for port, name in spec.interfaces}
        self._silent_interfaces = any(switch not in self._reporting for switch, _ in interfaces)
        mtus = read_mtus(set(interfaces.values()))
        for (switch, port), name in interfaces.items():
            if name in mtus:
                self._ports.setdefault(switch, {})[port] = mtus[name]
        ports = {
            (spec.id, port): mtu for spec in switches for port, mtu in self._ports.get(spec.id, {}).items()
        }
        hosts = {r.id: r.mtu_bytes for r in discovered.hosts.records() if r.mtu_bytes}
        up = discovered.topology(now)
        # What is suspected to be away for a moment is planned with.
        known = discovered.known_topology(up, now)
        self.mtu_limited = Links(known, ports, hosts).mtu_limited()
        found = Links(up, ports, hosts).problems()
        for problem in found:
            if problem not in self.problems:
                LOG.warning("%s", problem)
                self._events.add("mtu_problem", time.time(), reason=problem)
        self.problems = found
        return found


@dataclass(frozen=True)
class Links:
    """A network, and MTUs as far as known, in bytes; what is not in them is not known."""

    topology: Topology
    ports: Mapping[PortRef, int]
    hosts: Mapping[HostId, int]

    def mtu_limited(self) -> dict[PortRef, int]:
        """What links carry that carry less than the longest frames of hosts, by each end at a switch.

        A link carries the lesser of what its two ends do. What hosts' agents send is never longer than their own MTU.
        """
        longest = max(self.hosts.values(), default=0)
        found: dict[PortRef, int] = {}
        for link in sorted(self.topology.links):
            carries = min((self.ports.get(end, longest) for end in link.ends()), default=longest)
            if carries < longest:
                found |= dict.fromkeys(link.ends(), carries)
        for host in self.topology.hosts:
            place = (host.switch, host.port)
            carries = min(self.hosts.get(host.id, longest), self.ports.get(place, longest))
            if carries < longest:
                found[place] = carries
        return found

    def problems(self) -> list[str]:
        """Links that do not carry a host's longest packet, in a sentence each.

        A host's IP multicast packet crosses the fabric as a GROUP worm, longer by the worm header and its route.
        """
        places = {host.id: (host.switch, host.port) for host in self.topology.hosts if host.id in self.hosts}
        if not places:
            return []
        longest = max(places, key=lambda host: (self.hosts[host], -host))
        most = self.hosts[longest]
        need = min(most + WORM_BYTES, MTU_MAX)
        mtu_limited = self.mtu_limited()
        found, tight = [], []
        for link in sorted(self.topology.links):
            one, other = link.ends()
            if one in mtu_limited:
                found.append(
                    f"link s{one[0]} port {one[1]} - s{other[0]} port {other[1]} carries {mtu_limited[one]} bytes "
                    f"(MTU {self._known(one)} at s{one[0]}, {self._known(other)} at s{other[0]}), others {most}"
                )
            tight += [
                f"link s{one[0]} port {one[1]} - s{other[0]} port {other[1]}: port {end[1]} of switch {end[0]} "
                f"has an MTU of {self.ports[end]}; IP multicast packets of host {longest} (MTU {most}) need {need} there"
                for end in (one, other)
                if one not in mtu_limited and self.ports.get(end, need) < need
            ]
        for host, place in sorted(places.items()):
            if place in mtu_limited:
                found.append(
                    f"link s{place[0]} port {place[1]} - host {host} carries {mtu_limited[place]} bytes "
                    f"(MTU {self._known(place)} at s{place[0]}, {self.hosts[host]} at the host), others {most}"
                )
        found += tight
        if len(found) > NAMED_MAX:
            found[NAMED_MAX:] = [f"and {len(found) - NAMED_MAX} more like these"]
        return found

    def _known(self, port: PortRef) -> int | str:
        return self.ports.get(port, "not known")
