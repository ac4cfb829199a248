"""Which switches are there and which links join them, known from probes and reports of switches. Pure; time is an argument.

A probe leaves a switch port every `PROBE_INTERVAL_S`; where it comes in is the
other end of that direction. A link is up when both directions have been heard,
and down when too many probes in a row stay unanswered in one (`Direction` says
how many those are), or when a switch says that a port is down. A probe counts as
unanswered when both switches have shown since that they forward: every switch is
sent an echo, a packet-out to its own CPU port. So a switch that is paused is
silent, and its links are not down for that; nor does a controller that stalls
take its own silence for the network's.

What is down or silent may be back at any moment. It stays known as suspected:
routes avoid it where there is another way, and nobody loses a membership by it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from wormcast.discovery.direction import LATE_S, SILENCE_MIN_S, Direction, Slowest
from wormcast.network.ids import CPU_PORT, PortId, SwitchId
from wormcast.network.topology import Link, PortRef

PROBE_INTERVAL_S = 0.05
"""Between probes on a port that leads to a switch."""
PROBE_INTERVAL_REPORTED_S = 0.25
"""The same where both switches say which of their ports are down."""
PROBES_PER_S_MAX = 800
"""Probes and echoes a second in all, but for those that follow late ones; where more would be due, all intervals and
the limit of silence grow alike."""
PROBE_IDLE_INTERVAL_S = 1.0
"""Between probes on a port where no switch has been heard."""
SWITCH_GRACE_S = 1.0
"""A switch whose P4Runtime session is lost counts as up for so long."""
SILENCE_WITHOUT_ECHO_S = 1.0
"""A target without echo may be paused: its links are down after so long at least."""
SWITCH_SILENT_S = 2.0
"""A switch with a session that returns no echo for so long is silent, at least."""
ECHOES_MISSED_MAX = 8
"""And so many intervals of probes, where these are long."""
RESTORE_GRACE_S = 5.0
"""After a start of the controller, remembered switches, links and agents count as present for so long unconfirmed."""


@dataclass
class _SwitchRecord:
    ports: int
    connected: bool
    down_at: float | None
    """When the switch counts as down unless it connects; None while connected or down."""
    up: bool
    probe_at: dict[PortId, float] = field(default_factory=dict)
    echo_at: float = 0.0
    echo_bit: int = 0
    echo_sent_at: float | None = None
    """When the first echo with this bit left; none has."""
    slowest_echo: Slowest = field(default_factory=Slowest)
    heard_at: float = float("-inf")
    """When it last returned an echo or handed in any other frame."""
    forwarded_at: float = float("inf")
    """The last echo that is back left then: what was sent before has passed the switch, and the controller has read
    what it handed in. Infinite until the first: of a target without echo nothing can be told by its silence."""
    silent: bool = False
    back_at: float = float("-inf")
    """When it was heard again after it had been silent. Echoes that left before tell no delay, but its pause."""
    reports_ports: bool = False
    """It says which of its ports are down."""
    ports_down: set[PortId] = field(default_factory=set)


def echo_port(port: PortId) -> bool:
    """Whether a probe with this port is an echo: it leaves by `CPU_PORT`, whatever its number says."""
    return port >= CPU_PORT


class LinkMonitor:
    """State machine of switches and links."""

    def __init__(
        self,
        probe_interval_s: float = PROBE_INTERVAL_S,
        reported_interval_s: float = PROBE_INTERVAL_REPORTED_S,
        idle_interval_s: float = PROBE_IDLE_INTERVAL_S,
    ) -> None:
        self._probe_interval_s = probe_interval_s
        self._reported_interval_s = reported_interval_s
        self._idle_interval_s = idle_interval_s
        self._switches: dict[SwitchId, _SwitchRecord] = {}
        self._directions: dict[PortRef, Direction] = {}
        self._arrivals: dict[PortRef, PortRef] = {}
        """Receiving port to sending port; the inverse of `_directions`."""
        self._links: frozenset[Link] = frozenset()
        self._valid_from: dict[PortRef, float] = {}
        """Probes of a port that left before say nothing: a later one has come in, or it was found down since."""
        self._stale = False
        """`_links` has to be made anew from the directions."""
        self._known: dict[PortRef, Link] = {}
        """By both ends: every link that was up, until one of its ports leads elsewhere."""
        self._seen: set[SwitchId] = set()
        """Switches that were up once."""
        self.stretch = 1.0
        """By how much intervals were longer than in a small fabric when probes were last asked for."""
        self.probes_rejected = 0
        """Probes that name an unknown port, or came from one."""

    def add_switch(self, switch: SwitchId, ports: int, now: float, *, remembered: bool = False) -> None:
        """Makes a switch known. A remembered one counts as up for a grace period before it connects."""
        self._switches[switch] = _SwitchRecord(
            ports, False, now + RESTORE_GRACE_S if remembered else None, remembered
        )
        if remembered:
            self._seen.add(switch)

    def remove_switch(self, switch: SwitchId) -> None:
        """Forgets a switch and its links."""
        self._switches.pop(switch, None)
        self._seen.discard(switch)
        self._forget_directions(switch)
        self._valid_from = {ref: at for ref, at in self._valid_from.items() if ref[0] != switch}
        for link in {link for link in self._known.values() if switch in (link.a, link.b)}:
            self._forget_link(link)

    def restore_suspected(self, switches: Iterable[SwitchId], links: Iterable[Link]) -> None:
        """Takes remembered switches and links for suspected: known, and not up."""
        self._seen |= {switch for switch in switches if switch in self._switches}
        for link in links:
            if all(self._knows(end) and end not in self._known for end in link.ends()):
                self._known |= dict.fromkeys(link.ends(), link)

    def restore_link(self, link: Link) -> None:
        """Takes a remembered link for up until its probes are missed."""
        if self._knows((link.a, link.a_port)) and self._knows((link.b, link.b_port)):
            one, other = link.ends()
            self._hear(one, other)
            self._hear(other, one)

    def connect(self, switch: SwitchId, now: float) -> None:
        """The P4Runtime session is there: the switch is up and its ports are probed from now on."""
        record = self._switches.get(switch)
        if record is None:
            return
        record.connected, record.up, record.down_at = True, True, None
        record.echo_at, record.heard_at, record.forwarded_at, record.silent = now, now, float("inf"), False
        record.echo_sent_at = None
        self._seen.add(switch)
        record.probe_at = {PortId(port): now for port in range(record.ports)}
        for ref, direction in self._directions.items():
            if switch in (ref[0], direction.far[0]):
                direction.forgive(now)

    def disconnect(self, switch: SwitchId, now: float) -> None:
        """The session is lost; the switch is down unless it is back within `SWITCH_GRACE_S`."""
        record = self._switches.get(switch)
        if record is not None and record.connected:
            record.connected = record.silent = False
            record.down_at = now + SWITCH_GRACE_S
            record.probe_at = {}

    def suspend(self, switch: SwitchId) -> None:
        """Another controller took the switch over: what was known of it stays, unprobed."""
        record = self._switches.get(switch)
        if record is not None:
            record.connected, record.down_at, record.probe_at = False, None, {}
            record.silent = False

    def handle_echo(self, sent: PortRef, now: float) -> None:
        """An echo is back. Echoes alternate (alternating bit protocol): one that is late is told from the next."""
        record = self._switches.get(sent[0])
        if record is None or record.echo_sent_at is None or sent[1] != CPU_PORT + record.echo_bit:
            return
        if record.echo_sent_at >= record.back_at:
            record.slowest_echo.note(now - record.echo_sent_at, now)
        record.forwarded_at, record.echo_sent_at = record.echo_sent_at, None
        record.echo_bit ^= 1

    def hear(self, switch: SwitchId, now: float) -> None:
        """A frame came from the switch, an echo or any other: it forwards."""
        record = self._switches.get(switch)
        if record is None:
            return
        record.heard_at = now
        if record.silent:
            record.silent, record.back_at = False, now
            for ref, direction in self._directions.items():
                if switch in (ref[0], direction.far[0]):
                    direction.forgive(now)

    def handle_probe(self, sent: PortRef, received: PortRef, sent_at: float, now: float) -> None:
        """A probe that left by one port at `sent_at` came in at another."""
        if not self._knows(sent) or not self._knows(received) or sent == received:
            self.probes_rejected += 1
            return
        if sent_at < self._valid_from.get(sent, sent_at):
            return
        self._valid_from[sent] = sent_at
        known = self._directions.get(sent)
        if known is not None and known.far == received:
            known.hear(sent_at, now)
            return
        if self._is_reported_down(sent) or self._is_reported_down(received):
            return  # it was on its way when the port went down
        self._hear(sent, received)
        self._directions[sent].hear(sent_at, now)

    def note_ports(self, switch: SwitchId, down: Collection[PortId] | None, now: float) -> None:
        """The switch says which of its ports are down; None: it does not say any more."""
        record = self._switches.get(switch)
        if record is None:
            return
        before, record.reports_ports, record.ports_down = record.ports_down, down is not None, set(down or ())
        for port in record.ports_down - before:
            self._drop_direction((switch, port))
            if (far := self._arrivals.get((switch, port))) is not None:
                self._drop_direction(far)
        for port in before - record.ports_down:
            if port in record.probe_at:
                record.probe_at[port] = now

    def handle_timeout(self, now: float) -> None:
        """Lets grace periods run out, and notices switches that have become silent."""
        self.links()  # known from the moment it is up
        silent_s = max(SWITCH_SILENT_S, ECHOES_MISSED_MAX * self._probe_interval_s) * self._stretch()
        for switch, record in self._switches.items():
            echoes = record.forwarded_at < float("inf")
            if record.connected and echoes and now - record.heard_at >= silent_s:
                record.silent = True
            if record.down_at is not None and now >= record.down_at:
                record.up, record.down_at = False, None
                self._forget_directions(switch)

    def poll_transmit(self, now: float) -> list[PortRef]:
        """Ports that are due for a probe, or for an echo as `echo_port` tells. Counts the probes that are missed."""
        due: list[PortRef] = []
        stretch = self.stretch = self._stretch()
        for switch, record in self._switches.items():
            if record.connected and now >= record.echo_at:
                record.echo_at = now + self._echo_interval_s(record) * stretch
                if record.echo_sent_at is None:
                    record.echo_sent_at = now
                due.append((switch, PortId(CPU_PORT + record.echo_bit)))
            if record.silent:
                continue  # probes would only pile up in front of it
            for port, at in record.probe_at.items():
                if now < at:
                    continue
                ref = (switch, port)
                if port in record.ports_down:
                    record.probe_at[port] = now + self._idle_interval_s * stretch
                    continue
                direction = self._directions.get(ref)
                if direction is not None and self._is_down(record, direction, now):
                    self._drop_direction(ref)
                    self._valid_from[ref], direction = now, None
                if direction is None:
                    heard = ref in self._arrivals
                    wait_s = self._probe_interval_s if heard else self._idle_interval_s
                    record.probe_at[port] = now + wait_s * stretch
                    due.append(ref)
                    continue
                again_at = direction.sent_at + self._interval_s(record, direction) * stretch
                late = direction.is_late(now, stretch)
                if not late and now < again_at:
                    record.probe_at[port] = again_at
                    continue
                if late:
                    self._hurry(record, direction, now + LATE_S * stretch)
                direction.send(now)
                record.probe_at[port] = now + LATE_S * stretch  # to see whether it is late then
                due.append(ref)
        return due

    def _hurry(self, sender: _SwitchRecord, direction: Direction, at: float) -> None:
        """Has both switches of a direction asked for an echo soon."""
        for record in (sender, self._switches[direction.far[0]]):
            record.echo_at = min(record.echo_at, at)

    def _interval_s(self, sender: _SwitchRecord, direction: Direction) -> float:
        reported = sender.reports_ports and self._switches[direction.far[0]].reports_ports
        return self._reported_interval_s if reported else self._probe_interval_s

    def _echo_interval_s(self, record: _SwitchRecord) -> float:
        seldom = record.reports_ports or record.silent
        return self._reported_interval_s if seldom else self._probe_interval_s

    def _stretch(self) -> float:
        """By how much intervals are longer than they are in a small fabric."""
        asked = [record for record in self._switches.values() if record.connected]
        wanted_per_s = sum(1 / self._echo_interval_s(record) for record in asked)
        for (switch, _), direction in self._directions.items():
            wanted_per_s += 1 / self._interval_s(self._switches[switch], direction)
        rest = max(0, sum(len(record.probe_at) for record in asked) - len(self._directions))
        wanted_per_s += rest / self._idle_interval_s
        return max(1.0, wanted_per_s / PROBES_PER_S_MAX)

    def _is_down(self, sender: _SwitchRecord, direction: Direction, now: float) -> bool:
        far = self._switches[direction.far[0]]
        sure_until = min(sender.forwarded_at, far.forwarded_at)
        known_by_echo = max(sender.forwarded_at, far.forwarded_at) < float("inf")
        silence_s = SILENCE_MIN_S if known_by_echo else SILENCE_WITHOUT_ECHO_S
        echo_s = max(sender.slowest_echo.value(now), far.slowest_echo.value(now))
        return far.connected and direction.is_down(sure_until, silence_s, echo_s, self.stretch, now)

    def poll_timeout(self) -> float | None:
        """When `handle_timeout` or `poll_transmit` next has work."""
        probed = [record for record in self._switches.values() if not record.silent]
        times = [at for record in probed for at in record.probe_at.values()]
        times += [record.echo_at for record in self._switches.values() if record.connected]
        times += [record.down_at for record in self._switches.values() if record.down_at is not None]
        return min(times, default=None)

    def links(self) -> frozenset[Link]:
        """Links that are up."""
        if self._stale:
            self._stale = False
            self._update_links()
        return self._links

    def switches(self) -> dict[SwitchId, int]:
        """Switches that are up, silent ones included, with their number of ports."""
        return {switch: record.ports for switch, record in sorted(self._switches.items()) if record.up}

    def silent(self) -> frozenset[SwitchId]:
        """Switches that have a session and return no echo."""
        return frozenset(switch for switch, record in self._switches.items() if record.silent)

    def known_switches(self) -> dict[SwitchId, int]:
        """Switches that are up or suspected to be only for a while not, with their number of ports."""
        return {switch: self._switches[switch].ports for switch in sorted(self._seen)}

    def known_links(self) -> frozenset[Link]:
        """Links that are up or suspected to be only for a while not."""
        self.links()
        return frozenset(self._known.values())

    def ends_down(self) -> frozenset[PortRef]:
        """Both ends of the known links of which a switch says that its port is down: they carry nothing."""
        away = self.known_links() - self.links()
        down = (link for link in away if any(self._is_reported_down(end) for end in link.ends()))
        return frozenset(end for link in down for end in link.ends())

    def ports_down(self, switch: SwitchId) -> list[PortId] | None:
        """Ports that the switch says are down, ascending; None if it does not say."""
        record = self._switches.get(switch)
        return sorted(record.ports_down) if record is not None and record.reports_ports else None

    def far(self, ref: PortRef) -> PortRef | None:
        """Where the probes of this port come in, by those that were believed."""
        direction = self._directions.get(ref)
        return None if direction is None else direction.far

    def is_port_down(self, ref: PortRef) -> bool:
        """Whether the port is known to be down: its switch is, or says so."""
        record = self._switches.get(ref[0])
        return record is None or not record.up or ref[1] in record.ports_down

    def leads_to_switch(self, ref: PortRef) -> bool:
        """Whether probes came in at this port lately."""
        return ref in self._arrivals or ref in self._directions

    def _is_reported_down(self, ref: PortRef) -> bool:
        return ref[1] in self._switches[ref[0]].ports_down

    def _knows(self, ref: PortRef) -> bool:
        record = self._switches.get(ref[0])
        return record is not None and 0 <= ref[1] < record.ports

    def _hear(self, sent: PortRef, received: PortRef) -> None:
        self._drop_direction(sent)
        if received in self._arrivals:  # recabled: the port cannot have two far ends
            self._drop_direction(self._arrivals[received])
        self._directions[sent] = Direction(received)
        self._arrivals[received] = sent
        self._stale = True
        probe_at = self._switches[received[0]].probe_at
        if received[1] in probe_at:  # answer at once: the link comes up after one exchange
            probe_at[received[1]] = float("-inf")

    def _drop_direction(self, sent: PortRef) -> None:
        direction = self._directions.pop(sent, None)
        if direction is not None:
            del self._arrivals[direction.far]
            self._stale = True

    def _forget_directions(self, switch: SwitchId) -> None:
        for ref in [r for r, d in self._directions.items() if switch in (r[0], d.far[0])]:
            self._drop_direction(ref)

    def _update_links(self) -> None:
        links = frozenset(
            Link.between(sent, direction.far)
            for sent, direction in self._directions.items()
            if (back := self._directions.get(direction.far)) is not None and back.far == sent
        )
        for link in links - self._links:
            for end in link.ends():
                if (before := self._known.get(end)) is not None and before != link:
                    self._forget_link(before)
                self._known[end] = link
        self._links = links

    def _forget_link(self, link: Link) -> None:
        for end in link.ends():
            self._known.pop(end, None)
