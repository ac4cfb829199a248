"""Frames that switches hand in: which of them are believed, and what is reported of those that are not."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from wormcast.discovery.hosts import HostRecord, HostRegistry
from wormcast.discovery.igmp import IgmpError, IgmpFull, IgmpMembers
from wormcast.discovery.links import LinkMonitor, echo_port
from wormcast.discovery.lldp import Announcement, LldpError, Probe, decode
from wormcast.discovery.port_rates import RATE_PER_S, PortRates
from wormcast.discovery.probe_registry import ProbeRefused, ProbeRegistry
from wormcast.guard.state import LEADS_TO_HOST, LEADS_TO_LINK, Guard
from wormcast.network.ids import IPV4_ETHERTYPE
from wormcast.network.topology import Link, PortRef
from wormcast.reconcile.episodes import Episodes
from wormcast.reconcile.events import EventLog

LOG = logging.getLogger("wormcast.reconcile")

IGMP_LOOK_S = 0.25
"""Between looks at who is to be asked by IGMP, and at floods that are over."""


class PacketIns:
    """Reads LLDP and IGMP. What is not believed is counted; the first of its kind in a while is an event."""

    def __init__(
        self,
        key: bytes,
        monitor: LinkMonitor,
        hosts: HostRegistry,
        guard: Callable[[], Guard],
        events: EventLog,
    ) -> None:
        """`key` signs probes. `guard`: as the operator asks for it."""
        self.probes = ProbeRegistry(key)
        self.igmp = IgmpMembers()
        self.rates = PortRates()
        self.lldp_rejected: Counter[str] = Counter()
        self.igmp_rejected: Counter[str] = Counter()
        self._monitor, self._hosts, self._guard = monitor, hosts, guard
        self._events = events
        self.episodes = Episodes()
        """What was reported lately of what is not believed."""
        self._igmp_look_at = float("-inf")

    def probe(self, ref: PortRef, now: float) -> bytes:
        """The frame of a probe that is to leave by a port."""
        return self.probes.send(ref, now, self._monitor.stretch)

    def queries(self, now: float) -> list[tuple[PortRef, bytes]]:
        """Frames of IGMP that are to leave, by port. Says which floods are over."""
        if now < self._igmp_look_at:
            return []
        self._igmp_look_at = now + IGMP_LOOK_S
        for flood in self.rates.take_ended(now):
            data = {
                "dropped": flood.dropped,
                "per_s": flood.per_s,
                "seconds": round(flood.last_at - flood.began_at, 1),
            }
            self._log("packet_flood_over", flood.place, **data)
        self.igmp.expire(now)
        return self.igmp.poll_queries(now)

    def receive(self, place: PortRef, frame: bytes, now: float) -> bool:
        """A frame came in at a port; whether the network may be another one now."""
        if not self.rates.allows(place, now):
            flood = self.rates.flood(place)
            if flood is not None and flood.dropped == 1:
                self._log("packet_flood", place, per_s_max=round(RATE_PER_S))
            return False
        if frame[12:14] == IPV4_ETHERTYPE.to_bytes(2, "big"):
            self._take_igmp(place, frame, now)
            return False
        try:
            message = decode(frame, self.probes.key)
            if isinstance(message, Probe):
                return self._take_probe(message, place, now)
            if self._leads_to_switch(place):
                raise LldpError("host on a link")
            return self._take_announcement(message, place, now)
        except LldpError as error:
            self.lldp_rejected[str(error)] += 1
            return False

    def _take_igmp(self, place: PortRef, frame: bytes, now: float) -> None:
        try:
            self.igmp.handle(frame, place, now)
        except IgmpError as error:
            self.igmp_rejected[str(error)] += 1
        except IgmpFull as full:
            if self.episodes.is_news(("igmp_full", place), now):
                self._log("igmp_full", place, addresses_max=full.bound)

    def _take_probe(self, probe: Probe, place: PortRef, now: float) -> bool:
        """Whether there is another link now. Raises `LldpError`."""
        sent = (probe.switch, probe.port)
        known = self._monitor.far(sent) == place
        try:
            sent_at = self.probes.take(probe, place, now, self._monitor.stretch)
        except ProbeRefused as refused:
            # A link may double frames, a switch that was paused brings old ones.
            if not known and not echo_port(probe.port):
                self._log_refused(sent, place, str(refused), now)
            raise
        if echo_port(probe.port):
            if place[0] == probe.switch:
                self._monitor.handle_echo(sent, now)
            return False
        if sent != place and (why := self._why_no_link(sent, place, known, now)):
            self._log_refused(sent, place, why, now)
            raise LldpError("probe of a port with a host")
        links = self._monitor.links()
        self._monitor.handle_probe(sent, place, sent_at, now)
        return self._monitor.links() != links

    def _why_no_link(self, sent: PortRef, place: PortRef, known: bool, now: float) -> str:
        """Why two ports are not taken for a link, although a probe has come from one to the other."""
        guard = self._guard()
        for switch, port in (sent, place):
            configured = guard.ports.get((switch, port))
            if configured == LEADS_TO_HOST:
                return f"port {port} of switch {switch} leads to a host, as the operator configured"
            record = self._hosts.at((switch, port))
            if known or configured == LEADS_TO_LINK or record is None:
                continue
            if guard.on or self._hosts.is_heard(record, now):
                return (
                    f"port {port} of switch {switch} has host {record.name}; if it leads to a switch: "
                    f"`wormcast guard port {switch}:{port} link`"
                )
        return ""

    def _leads_to_switch(self, place: PortRef) -> bool:
        return self._monitor.leads_to_switch(place) or self._guard().ports.get(place) == LEADS_TO_LINK

    def _take_announcement(self, message: Announcement, place: PortRef, now: float) -> bool:
        """Whether the host is at another place now, or in another state."""
        record = self._hosts.named(message.name)
        before = None if record is None else (record.place, self._hosts.state(record, now))
        why = self._hosts.announce(
            message.name,
            message.mac,
            message.ttl_s,
            place,
            now,
            message.proof,
            guarded=self._guard().on,
            is_down=self._monitor.is_port_down,
        )
        if why and record is not None and self.episodes.is_news(("host_refused", record.name, place), now):
            at = {} if record.place is None else {"at_switch": record.place[0], "at_port": record.place[1]}
            LOG.warning(
                "host %s is not taken to be at port %d of switch %d: %s", record.name, place[1], place[0], why
            )
            self._events.add(
                "host_refused",
                time.time(),
                host=record.id,
                name=record.name,
                switch=place[0],
                port=place[1],
                **at,
                reason=why,
            )
        return record is not None and before != (record.place, self._hosts.state(record, now))

    def _log_refused(self, sent: PortRef, place: PortRef, why: str, now: float) -> None:
        """A probe makes no link."""
        link = Link.between(sent, place) if sent != place else None
        if link is None or not self.episodes.is_news(("link_refused", link, why), now):
            return
        ends = {"a": link.a, "a_port": link.a_port, "b": link.b, "b_port": link.b_port}
        LOG.warning("no link between %s and %s: %s", *(f"{s}:{p}" for s, p in link.ends()), why)
        self._events.add("link_refused", time.time(), **ends, reason=why)

    def _log(self, kind: str, place: PortRef, **data: Any) -> None:
        """An event of a port, with its host if there is one."""
        record: HostRecord | None = self._hosts.at(place)
        host = {} if record is None else {"host": record.id, "name": record.name}
        LOG.warning("%s: port %d of switch %d %s", kind, place[1], place[0], {**host, **data})
        self._events.add(kind, time.time(), switch=place[0], port=place[1], **host, **data)
