"""The network as it is found: probes, what hosts and switches say, and time; watchers are notified of changes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from wormcast.discovery.hosts import HostRecord
from wormcast.discovery.links import echo_port
from wormcast.mtu import LOOK_LATER_S, MtuWatch
from wormcast.network.ids import CPU_PORT, SwitchId
from wormcast.network.topology import Link, PortRef, Topology
from wormcast.p4rt.port_states import AnnouncedPorts
from wormcast.p4rt.session import SwitchSession
from wormcast.reconcile.clock import LivedClock
from wormcast.reconcile.discovered import NOTHING as NOTHING_FOUND
from wormcast.reconcile.discovered import Discovered, changes
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.lateness import Lateness
from wormcast.reconcile.pacing import Paced
from wormcast.reconcile.packet_in import PacketIns
from wormcast.reconcile.wanted import Wanted
from wormcast.reconcile.yielding import Yielding
from wormcast.store.database import Database, StoreError

LOG = logging.getLogger("wormcast.reconcile")

TICK_MIN_S = 0.01
TICK_MAX_S = 0.25
LOOK_INTERVAL_S = 0.1
"""Between looks at what time alone has changed; a link that is down is looked at at once."""
TICK_REST = 4.0
"""After a tick the others have the loop for so many times as long as it took: it looks at every port."""
PROBES_WAIT_S = 0.1
"""While routes change probes wait, so long at most: of 256 switches they had a third of the event loop."""
MTU_REST = 50.0
"""`Paced`, for looks at the MTUs of all interfaces."""


@dataclass(frozen=True)
class _Found:
    """What the state file keeps of one look at the network."""

    switches: frozenset[SwitchId]
    links: frozenset[Link]
    hosts: tuple[tuple[HostRecord, bool], ...]
    suspected: tuple[frozenset[SwitchId], frozenset[Link]]


class NetworkWatch:
    """Looks, says what has changed, and wants a plan for it. What it finds is kept in the state file when that plan is
    made, and before anybody is sent the plan: so the file never has more than a plan was made for, nor less than
    what agents were sent."""

    def __init__(
        self,
        database: Database,
        discovered: Discovered,
        sessions: Mapping[SwitchId, SwitchSession],
        packets: PacketIns,
        clock: LivedClock,
        events: EventLog,
        wanted: Wanted,
    ) -> None:
        self._database = database
        self._discovered = discovered
        self._monitor, self._hosts = discovered.monitor, discovered.hosts
        self._sessions = sessions
        self._packets = packets
        self._clock = clock
        self._events = events
        self._wanted = wanted
        self._network = NOTHING_FOUND
        self._is_news = False
        """It is not among what waits to be kept."""
        self._found: _Found | None = None
        """What waits to be kept."""
        self._notices = Paced(self._look_around)
        self._mtus = MtuWatch(events)
        self._mtu_looks = Paced(self.mtu_problems, MTU_REST)
        self.lateness = Lateness()
        self.store_failures = 0
        """Changes of the network that could not be written to the state file."""

    def restore(self) -> None:
        """Begins with what the state file has; switches are there already."""
        now = self._clock.now()
        for link in self._database.links():
            self._monitor.restore_link(link)
        self._monitor.restore_suspected(*self._database.suspected())
        self._hosts.restore(self._database.hosts(), self._database.hosts_present(), now)
        self._network = self._discovered.describe(now, time.time())

    def stop(self) -> None:
        """Ends looks that were put off, and keeps what was found."""
        self._notices.cancel()
        self._mtu_looks.cancel()
        self.take()
        self.keep()

    def topology(self) -> Topology:
        """What is up."""
        return self._discovered.topology(self._clock.now())

    @property
    def mtu_limited(self) -> Mapping[PortRef, int]:
        """Links that carry less than the longest frames of hosts, by both ends: bytes after the Ethernet header."""
        return self._mtus.mtu_limited

    def mtu_problems(self) -> list[str]:
        """Where links do not carry what hosts send, as it is now, a sentence each."""
        specs = [session.spec for session in self._sessions.values()]
        return self._mtus.look(specs, self._discovered, self._clock.now())

    def look_at_mtus(self) -> None:
        """What frames hosts send may have changed."""
        self._mtu_looks.call()

    def note_ports(self, switch: SwitchId, states: AnnouncedPorts | None) -> None:
        """A switch says which of its ports are down and what frames they carry; None: it does not any more."""
        self._monitor.note_ports(switch, None if states is None else states.down, self._clock.now())
        if self._mtus.note_ports(switch, states):
            self._mtu_looks.call()
        self.notice()

    def notice(self) -> None:
        """Looks for changes of the network: notifies watchers, wants a plan."""
        self._notices.call()

    def _look_around(self) -> None:
        now = self._clock.now()
        network = self._discovered.describe(now, time.time())
        if network != self._network:
            for kind, data in (found := [*changes(self._network, network)]):
                LOG.info("%s %s", kind, " ".join(f"{k}={v}" for k, v in data.items()))
                self._events.add(kind, time.time(), **data)
            self._network, self._is_news = network, True
            self._mtu_looks.call(0.0 if {kind for kind, _ in found} - {"link_down"} else LOOK_LATER_S)
        elif self._mtus.is_due(now):
            self._mtu_looks.call()
        self._wanted.notice()

    # -- the state file -------------------------------------------------------

    def take(self) -> None:
        """A plan is to be made of the network as it is now."""
        if not self._is_news:
            return
        self._is_news = False
        now = self._clock.now()
        switches, links = frozenset(self._monitor.switches()), frozenset(self._monitor.links())
        self._found = _Found(
            switches,
            links,
            tuple((replace(r), not self._hosts.is_gone(r, now)) for r in self._hosts.records()),
            (
                frozenset(self._monitor.known_switches()) - switches,
                frozenset(self._monitor.known_links()) - links,
            ),
        )

    def keep(self) -> None:
        """That plan is made."""
        if (found := self._found) is not None:
            self._found = None
            self.write(
                lambda: self._database.put_network(found.switches, found.links, found.hosts, found.suspected)
            )

    def write(self, put: Callable[[], None]) -> None:
        """Writes what was found to the state file."""
        try:
            put()
        except StoreError as error:
            # The fabric comes first: a restart would have to discover anew.
            self.store_failures += 1
            LOG.error("the network was not written to the state file: %s", error)

    # -- time -----------------------------------------------------------------

    async def run(self, is_quiet: Callable[[], bool]) -> None:
        """Sends probes and looks, for ever; probes wait for a moment while it is not quiet."""
        look_at, way = 0.0, Yielding(is_quiet, PROBES_WAIT_S)
        while True:
            await way.wait()
            now = self._clock.now()
            links = self._monitor.links()
            self._monitor.handle_timeout(now)
            for ref in self._monitor.poll_transmit(now):
                port = CPU_PORT if echo_port(ref[1]) else ref[1]
                self._sessions[ref[0]].send(port, self._packets.probe(ref, now))
            for (switch, port), frame in self._packets.queries(now):
                self._sessions[switch].send(port, frame)
            if now >= look_at or self._monitor.links() is not links:
                self.notice()
                look_at = now + LOOK_INTERVAL_S
            times = [
                t for t in (self._monitor.poll_timeout(), self._hosts.poll_timeout(now)) if t is not None
            ]
            end = self._clock.now()
            wait_s = max(min(times, default=now + TICK_MAX_S) - end, TICK_MIN_S, TICK_REST * (end - now))
            wait_s = min(wait_s, TICK_MAX_S)
            asleep_at = time.monotonic()
            await asyncio.sleep(wait_s)
            woken_at = time.monotonic()
            self.lateness.note_controller(woken_at - asleep_at - wait_s, woken_at)
