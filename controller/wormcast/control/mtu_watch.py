"""Watches that links carry what hosts send, where the switches' interfaces are known."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from wormcast.control.events import EventLog
from wormcast.counters.kernel import read_mtus
from wormcast.fabric.ids import PortId
from wormcast.fabric.mtu import check_mtus

if TYPE_CHECKING:
    from wormcast.control.controller import Controller

LOG = logging.getLogger("wormcast.control")


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
