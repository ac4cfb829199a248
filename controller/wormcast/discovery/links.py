"""Which switches are there and which links join them, told from probes. Pure; time is an argument.

A probe leaves a switch port every `PROBE_INTERVAL_S`; where it comes in is the
other end of that direction. A link is up when both directions have been heard,
and down when one has missed `PROBES_MISSED_MAX` in a row. Missed probes are
counted when the next one is sent, so a controller that stalls does not take
its own silence for the network's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wormcast.fabric.ids import PortId, SwitchId
from wormcast.fabric.topology import Link, PortRef

PROBE_INTERVAL_S = 0.25
"""Between probes on a port that leads to a switch."""
PROBES_MISSED_MAX = 4
"""So many probes lost in a row in one direction: the link is down. At 1 % loss: once in 10^8."""
PROBE_IDLE_INTERVAL_S = 1.0
"""Between probes on a port where no switch has been heard."""
SWITCH_GRACE_S = 1.0
"""A switch whose P4Runtime session is lost counts as up for so long."""
RESTORE_GRACE_S = 5.0
"""After a start of the controller, remembered switches and links count as up for so long unconfirmed."""


@dataclass
class _Direction:
    """What is known of the way out of one port."""

    far: PortRef
    missed: int = 0


@dataclass
class _SwitchRecord:
    ports: int
    connected: bool
    down_at: float | None
    """When the switch counts as down unless it connects; None while connected or down."""
    up: bool
    probe_at: dict[PortId, float] = field(default_factory=dict)


class LinkMonitor:
    """State machine of switches and links."""

    def __init__(
        self, probe_interval_s: float = PROBE_INTERVAL_S, idle_interval_s: float = PROBE_IDLE_INTERVAL_S
    ) -> None:
        self._probe_interval_s = probe_interval_s
        self._idle_interval_s = idle_interval_s
        self._switches: dict[SwitchId, _SwitchRecord] = {}
        self._directions: dict[PortRef, _Direction] = {}
        self._arrivals: dict[PortRef, PortRef] = {}
        """Receiving port to sending port; the inverse of `_directions`."""
        self._links: frozenset[Link] = frozenset()
        self.probes_rejected = 0
        """Probes that name an unknown port, or came from one."""

    def add_switch(self, switch: SwitchId, ports: int, now: float, *, remembered: bool = False) -> None:
        """Makes a switch known. A remembered one counts as up for a grace period before it connects."""
        self._switches[switch] = _SwitchRecord(
            ports, False, now + RESTORE_GRACE_S if remembered else None, remembered
        )

    def remove_switch(self, switch: SwitchId) -> None:
        """Forgets a switch and its links."""
        self._switches.pop(switch, None)
        self._forget_directions(switch)
        self._update_links()

    def restore_link(self, link: Link) -> None:
        """Takes a remembered link for up until its probes are missed."""
        if self._knows((link.a, link.a_port)) and self._knows((link.b, link.b_port)):
            one, other = link.ends()
            self._hear(one, other)
            self._hear(other, one)
            self._update_links()

    def connect(self, switch: SwitchId, now: float) -> None:
        """The P4Runtime session is there: the switch is up and its ports are probed from now on."""
        record = self._switches.get(switch)
        if record is None:
            return
        record.connected, record.up, record.down_at = True, True, None
        record.probe_at = {PortId(port): now for port in range(record.ports)}
        for ref, direction in self._directions.items():
            if switch in (ref[0], direction.far[0]):
                direction.missed = 0

    def disconnect(self, switch: SwitchId, now: float) -> None:
        """The session is lost; the switch is down unless it is back within `SWITCH_GRACE_S`."""
        record = self._switches.get(switch)
        if record is not None and record.connected:
            record.connected = False
            record.down_at = now + SWITCH_GRACE_S
            record.probe_at = {}

    def suspend(self, switch: SwitchId) -> None:
        """Another controller took the switch over: what was known of it stays, unprobed."""
        record = self._switches.get(switch)
        if record is not None:
            record.connected, record.down_at, record.probe_at = False, None, {}

    def handle_probe(self, sent: PortRef, received: PortRef) -> None:
        """A probe sent out of one port came in at another."""
        if not self._knows(sent) or not self._knows(received) or sent == received:
            self.probes_rejected += 1
            return
        known = self._directions.get(sent)
        if known is not None and known.far == received:
            known.missed = 0
            return
        self._hear(sent, received)
        self._update_links()

    def handle_timeout(self, now: float) -> None:
        """Lets grace periods run out."""
        for switch, record in self._switches.items():
            if record.down_at is not None and now >= record.down_at:
                record.up, record.down_at = False, None
                self._forget_directions(switch)
        self._update_links()

    def poll_transmit(self, now: float) -> list[PortRef]:
        """Ports that are due for a probe. Counts the probes that were sent before and not heard."""
        due: list[PortRef] = []
        for switch, record in self._switches.items():
            for port, at in record.probe_at.items():
                if now < at:
                    continue
                ref = (switch, port)
                direction = self._directions.get(ref)
                if direction is not None and self._switches[direction.far[0]].connected:
                    if direction.missed >= PROBES_MISSED_MAX:
                        self._drop_direction(ref)
                        direction = None
                    else:
                        direction.missed += 1
                heard = direction is not None or ref in self._arrivals
                record.probe_at[port] = now + (self._probe_interval_s if heard else self._idle_interval_s)
                due.append(ref)
        self._update_links()
        return due

    def poll_timeout(self) -> float | None:
        """When `handle_timeout` or `poll_transmit` next has work."""
        times = [at for record in self._switches.values() for at in record.probe_at.values()]
        times += [record.down_at for record in self._switches.values() if record.down_at is not None]
        return min(times, default=None)

    def links(self) -> frozenset[Link]:
        """Links that are up."""
        return self._links

    def switches(self) -> dict[SwitchId, int]:
        """Switches that are up, with their number of ports."""
        return {switch: record.ports for switch, record in sorted(self._switches.items()) if record.up}

    def is_connected(self, switch: SwitchId) -> bool:
        """Whether the switch has a session."""
        record = self._switches.get(switch)
        return record is not None and record.connected

    def leads_to_switch(self, ref: PortRef) -> bool:
        """Whether probes came in at this port lately."""
        return ref in self._arrivals or ref in self._directions

    def _knows(self, ref: PortRef) -> bool:
        record = self._switches.get(ref[0])
        return record is not None and 0 <= ref[1] < record.ports

    def _hear(self, sent: PortRef, received: PortRef) -> None:
        self._drop_direction(sent)
        if received in self._arrivals:  # recabled: the port cannot have two far ends
            self._drop_direction(self._arrivals[received])
        self._directions[sent] = _Direction(received)
        self._arrivals[received] = sent
        probe_at = self._switches[received[0]].probe_at
        if received[1] in probe_at:  # answer at once: the link comes up after one exchange
            probe_at[received[1]] = float("-inf")

    def _drop_direction(self, sent: PortRef) -> None:
        direction = self._directions.pop(sent, None)
        if direction is not None:
            del self._arrivals[direction.far]

    def _forget_directions(self, switch: SwitchId) -> None:
        for ref in [r for r, d in self._directions.items() if switch in (r[0], d.far[0])]:
            self._drop_direction(ref)

    def _update_links(self) -> None:
        self._links = frozenset(
            Link.between(sent, direction.far)
            for sent, direction in self._directions.items()
            if (back := self._directions.get(direction.far)) is not None and back.far == sent
        )
