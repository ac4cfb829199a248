"""What sessions with switches tell: it is recorded, goes on to the network, or wants a plan brought out again."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict

from wormcast.discovery.links import LinkMonitor
from wormcast.network.ids import PortId, SwitchId
from wormcast.p4rt.port_states import AnnouncedPorts
from wormcast.p4rt.tables import Strayed
from wormcast.reconcile.clock import LivedClock
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.network_watch import NetworkWatch
from wormcast.reconcile.packet_in import PacketIns
from wormcast.reconcile.wanted import Wanted

LOG = logging.getLogger("wormcast.reconcile")


class SwitchEvents:
    """Hears switches; see `SwitchWatcher`."""

    def __init__(
        self,
        network: NetworkWatch,
        monitor: LinkMonitor,
        packets: PacketIns,
        clock: LivedClock,
        events: EventLog,
        wanted: Wanted,
    ) -> None:
        self._network = network
        self._monitor = monitor
        self._packets = packets
        self._clock = clock
        self._events = events
        self._wanted = wanted

    def switch_connected(self, switch: SwitchId) -> None:
        self._monitor.connect(switch, self._clock.now())
        self._events.add("switch_connected", time.time(), switch=switch)
        self._wanted.bring_out_again()
        self._network.notice()

    def switch_disconnected(self, switch: SwitchId, reason: str) -> None:
        self._monitor.disconnect(switch, self._clock.now())
        self._events.add("switch_disconnected", time.time(), switch=switch, reason=reason)

    def switch_demoted(self, switch: SwitchId, reason: str) -> None:
        self._monitor.suspend(switch)
        self._events.add("switch_demoted", time.time(), switch=switch, reason=reason)

    def switch_refused(self, switch: SwitchId, reason: str, group: int | None = None) -> None:
        self._events.add("switch_refused", time.time(), switch=switch, reason=reason, group=group)

    def switch_strayed(self, switch: SwitchId, part: str, strayed: Strayed) -> None:
        self._events.add("switch_strayed", time.time(), switch=switch, part=part, **asdict(strayed))
        self._wanted.bring_out_again()

    def switch_out_of_step(self, switch: SwitchId) -> None:
        LOG.info("switch %d: trying again", switch)
        self._wanted.bring_out_again()

    def packet_received(self, switch: SwitchId, port: PortId, frame: bytes) -> None:
        now = self._clock.now()
        self._monitor.hear(switch, now)
        if self._packets.receive((switch, port), frame, now):
            self._network.notice()

    def port_states_changed(self, switch: SwitchId, states: AnnouncedPorts | None) -> None:
        self._network.note_ports(switch, states)
