"""Links on virtual time: found, lost, restored; frames that lie are not believed."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

import pytest
from controller_lab.announcing import encode_announcement
from wormcast.discovery.direction import SILENCE_DELAYS, SILENCE_MIN_S
from wormcast.discovery.links import (
    PROBE_INTERVAL_REPORTED_S,
    PROBES_PER_S_MAX,
    RESTORE_GRACE_S,
    SWITCH_GRACE_S,
    SWITCH_SILENT_S,
    LinkMonitor,
    echo_port,
)
from wormcast.discovery.lldp import Announcement, LldpError, Probe, decode, encode_probe
from wormcast.network.ids import PortId, SwitchId
from wormcast.network.topology import Link, PortRef
from wormcast.reconcile.clock import LATE_MAX_S, LivedClock

A, B, C = (SwitchId(n) for n in range(3))
MAC = bytes.fromhex("020000000001")


def ref(switch: int, port: int) -> PortRef:
    return SwitchId(switch), PortId(port)


CABLES = [
    Link.between(ref(0, 1), ref(1, 1)),
    Link.between(ref(1, 2), ref(2, 2)),
    Link.between(ref(0, 3), ref(2, 3)),
]


class Wire:
    """Cables between the switches of a monitor, on virtual time."""

    def __init__(self, monitor: LinkMonitor, passes: Callable[[PortRef], bool] = lambda _: True) -> None:
        self.monitor = monitor
        self.now = 0.0
        self.cut: set[Link] = set()
        self.paused: set[SwitchId] = set()
        self.echoes = True
        self.passes = passes
        self.sent = 0

    def run(self, seconds: float) -> None:
        """Lets time pass in steps as the controller's tick takes them."""
        end = self.now + seconds
        while self.now < end:
            self.monitor.handle_timeout(self.now)
            for sent in self.monitor.poll_transmit(self.now):
                self.sent += 1
                if sent[0] in self.paused:
                    continue
                if echo_port(sent[1]):
                    self.monitor.hear(sent[0], self.now)
                    if self.echoes:
                        self.monitor.handle_echo(sent, self.now)
                else:
                    self._deliver(sent)
            self.now += 0.01

    def _deliver(self, sent: PortRef) -> None:
        for cable in CABLES:
            if sent in cable.ends() and cable not in self.cut and self.passes(sent):
                (far,) = [end for end in cable.ends() if end != sent]
                if self.monitor._switches[far[0]].connected and far[0] not in self.paused:
                    self.monitor.handle_probe(sent, far, self.now, self.now)


def ring(passes: Callable[[PortRef], bool] = lambda _: True) -> Wire:
    monitor = LinkMonitor()
    for switch in (A, B, C):
        monitor.add_switch(switch, 4, 0.0)
        monitor.connect(switch, 0.0)
    return Wire(monitor, passes)


def test_links_come_up_at_once_when_heard_both_ways() -> None:
    wire = ring()
    wire.run(0.1)
    assert wire.monitor.links() == set(CABLES)


def test_a_link_heard_one_way_is_not_up() -> None:
    wire = ring(passes=lambda sent: sent != ref(0, 1))
    wire.run(5.0)
    assert wire.monitor.links() == set(CABLES[1:])


@pytest.mark.parametrize("offset", [0.0, 0.01, 0.02, 0.03, 0.04])
def test_a_cut_link_is_down_within_a_fifth_of_a_second(offset: float) -> None:
    wire = ring()
    wire.run(3.0 + offset)
    wire.cut.add(CABLES[0])
    wire.run(SILENCE_MIN_S - 0.02)
    assert CABLES[0] in wire.monitor.links(), "too early"
    wire.run(0.2 - SILENCE_MIN_S + 0.02)
    assert wire.monitor.links() == set(CABLES[1:])
    wire.cut.clear()
    wire.run(1.1)
    assert wire.monitor.links() == set(CABLES)


def test_a_port_that_is_down_takes_its_link_along_at_once() -> None:
    wire = ring()
    for switch in (A, B, C):
        wire.monitor.note_ports(switch, [], wire.now)
    wire.run(3.0)
    wire.sent = 0
    wire.run(10.0)
    assert wire.sent == pytest.approx(6 * 40 + 6 * 10 + 3 * 40, rel=0.1), "who tells is asked less often"
    wire.monitor.note_ports(A, [PortId(1)], wire.now)
    wire.monitor.handle_probe(ref(1, 1), ref(0, 1), wire.now, wire.now)  # was on its way
    assert wire.monitor.links() == set(CABLES[1:])
    wire.run(3.0)
    assert wire.monitor.links() == set(CABLES[1:])
    wire.monitor.note_ports(A, [], wire.now)
    wire.run(1.1)
    assert wire.monitor.links() == set(CABLES)
    wire.cut.add(CABLES[1])
    wire.run(0.25 + 0.2)
    assert wire.monitor.links() == {CABLES[0], CABLES[2]}, "a cut that no port tells of is found all the same"


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_link_that_loses_much_is_not_down(share: float) -> None:
    """And when it is cut, that is seen, if later."""
    rng = random.Random(2)
    lossy: set[PortRef] = set()
    wire = ring(passes=lambda sent: sent not in lossy or rng.random() > share)
    wire.run(1.0)
    # It begins to lose little by little, as when a queue fills.
    for lossy_share in (share / 4, share / 2, share):
        share = lossy_share
        lossy.add(ref(0, 1))
        wire.run(5.0)
    downs = 0
    for _ in range(2000):
        wire.run(0.1)
        downs += wire.monitor.links() != set(CABLES)
    assert downs == 0
    wire.cut.add(CABLES[0])
    wire.run(2.0)
    assert wire.monitor.links() == set(CABLES[1:])


def test_a_queue_that_fills_makes_probes_late_and_no_link_down() -> None:
    """Up to four seconds of delay, which grows by 1 ms in each 2 ms: the switch behind it gets no processor."""
    wire = ring()
    wire.run(1.0)
    waiting: deque[tuple[float, float]] = deque()
    probe, delay = wire.monitor.handle_probe, 0.0

    def late(sent: PortRef, received: PortRef, sent_at: float, now: float) -> None:
        if sent == ref(0, 1):
            waiting.append((wire.now + delay, sent_at))
        else:
            probe(sent, received, sent_at, now)

    wire.monitor.handle_probe = late  # type: ignore[method-assign]
    for _ in range(4000):
        wire.run(0.01)
        delay = min(delay + 0.005, 4.0)
        while waiting and waiting[0][0] <= wire.now:
            probe(ref(0, 1), ref(1, 1), waiting.popleft()[1], wire.now)
        assert wire.monitor.links() == set(CABLES), wire.now
    wire.run(SILENCE_DELAYS * delay + 1.0)
    assert wire.monitor.links() == set(CABLES[1:]), "a cut is told all the same"


def test_a_switch_that_returns_echoes_late_loses_no_link_for_it() -> None:
    """All that it does takes 150 ms of a sudden, which its echoes show; probes of one link are still slower."""
    wire = ring()
    wire.run(3.0)
    waiting: list[tuple[float, Callable[[], None]]] = []
    echo, probe = wire.monitor.handle_echo, wire.monitor.handle_probe
    wire.monitor.handle_echo = lambda sent, at: waiting.append((at + 0.15, lambda: echo(sent, wire.now)))  # type: ignore[method-assign]
    for step in range(400):
        if step == 100:
            wire.monitor.handle_probe = lambda one, other, at, _: waiting.append(  # type: ignore[method-assign]
                (at + 0.45, lambda: probe(one, other, at, wire.now))
            )
        wire.run(0.01)
        due = [go_on for at, go_on in waiting if at <= wire.now]
        waiting[:] = [one for one in waiting if one[0] > wire.now]
        for go_on in due:
            go_on()
        assert wire.monitor.links() == set(CABLES), step


def test_a_probe_of_a_cable_that_was_moved_says_nothing_when_it_comes_late() -> None:
    wire = ring()
    wire.run(1.0)
    moved = Link.between(ref(0, 1), ref(2, 0))
    wire.cut.add(CABLES[0])
    wire.monitor.handle_probe(ref(0, 1), ref(2, 0), wire.now, wire.now)
    wire.monitor.handle_probe(ref(2, 0), ref(0, 1), wire.now, wire.now)
    wire.monitor.handle_probe(ref(0, 1), ref(1, 1), wire.now - 0.5, wire.now)
    assert wire.monitor.links() == {moved, *CABLES[1:]}
    wire.run(2.0)
    assert wire.monitor.links() == set(CABLES[1:])
    for one, other in (moved.ends(), moved.ends()[::-1]):
        wire.monitor.handle_probe(one, other, wire.now - 2.0, wire.now)
    assert wire.monitor.links() == set(CABLES[1:]), "it is down since"


def test_links_survive_loss_and_corruption() -> None:
    rng = random.Random(1)
    wire = ring(passes=lambda _: rng.random() > 0.011)
    wire.run(2.0)
    downs = 0
    for _ in range(600):
        wire.run(1.0)
        downs += wire.monitor.links() != set(CABLES)
    assert downs == 0


def test_a_stalled_controller_does_not_blame_the_network() -> None:
    wire = ring()
    wire.run(2.0)
    wire.now += 30.0
    wire.run(0.05)
    assert wire.monitor.links() == set(CABLES)


def test_idle_ports_are_probed_less_often() -> None:
    wire = ring()
    wire.run(2.0)
    wire.sent = 0
    wire.run(10.0)
    assert wire.sent == pytest.approx(6 * 200 + 6 * 10 + 3 * 200, rel=0.2), "and an echo a switch"


@pytest.mark.parametrize("paused", [{B}, {A, C}, {A, B, C}])
def test_paused_switches_are_silent_and_their_links_are_not_down(paused: set[SwitchId]) -> None:
    """None of their probes arrives for longer than it takes a link to be down."""
    wire = ring()
    wire.run(3.1)
    wire.paused |= paused
    wire.run(SWITCH_SILENT_S - 0.3)
    assert not wire.monitor.silent()
    for _ in range(100):
        wire.run(0.1)
        assert wire.monitor.links() == set(CABLES)
    assert wire.monitor.silent() == paused
    wire.sent = 0
    wire.run(10.0)
    assert wire.sent <= 10 * (4 * len(paused) + 70 * (3 - len(paused))), (
        "echoes alone wait for a silent switch"
    )
    wire.paused.clear()
    wire.run(2 * PROBE_INTERVAL_REPORTED_S)
    assert not wire.monitor.silent()
    wire.run(3.0)
    assert wire.monitor.links() == set(CABLES)


def test_long_intervals_of_probes_make_no_switch_silent() -> None:
    monitor = LinkMonitor(5.0)
    monitor.add_switch(A, 4, 0.0)
    monitor.connect(A, 0.0)
    for tick in range(6000):
        now = tick / 100
        for ref in monitor.poll_transmit(now):
            if echo_port(ref[1]):
                monitor.hear(A, now)
                monitor.handle_echo(ref, now)
        monitor.handle_timeout(now)
        assert not monitor.silent(), now


def test_a_target_without_echo_is_judged_by_its_probes_alone() -> None:
    wire = ring()
    wire.echoes = False
    wire.run(3.0)
    wire.paused.add(B)
    wire.run(10.0)
    assert not wire.monitor.silent()
    assert wire.monitor.links() == {CABLES[2]}


def test_a_link_cut_beside_a_paused_switch_is_down_once_both_ends_answer() -> None:
    wire = ring()
    wire.run(3.0)
    wire.paused.add(B)
    wire.cut |= {CABLES[0], CABLES[2]}
    wire.run(5.0)
    assert wire.monitor.links() == {CABLES[0], CABLES[1]}, "what B would say is not known"
    wire.paused.clear()
    wire.run(2.0)
    assert wire.monitor.links() == {CABLES[1]}
    assert wire.monitor.known_links() == set(CABLES), "they may come back"


def test_links_are_known_until_their_ports_lead_elsewhere_or_their_switch_is_removed() -> None:
    wire = ring()
    wire.run(1.0)
    wire.cut |= set(CABLES)
    wire.run(3.0)
    assert not wire.monitor.links()
    assert wire.monitor.known_links() == set(CABLES)
    later = LinkMonitor()
    for switch in (A, B, C):
        later.add_switch(switch, 4, 0.0)
    later.restore_suspected(wire.monitor.known_switches(), wire.monitor.known_links())
    assert (later.known_links(), later.links()) == (set(CABLES), set())
    assert list(later.known_switches()) == [A, B, C]
    wire.monitor.handle_probe(ref(0, 1), ref(2, 0), wire.now, wire.now)
    wire.monitor.handle_probe(ref(2, 0), ref(0, 1), wire.now, wire.now)
    assert wire.monitor.known_links() == {Link.between(ref(0, 1), ref(2, 0)), *CABLES[1:]}
    wire.monitor.remove_switch(C)
    assert not wire.monitor.known_links()
    assert list(wire.monitor.known_switches()) == [A, B]


def test_a_pause_of_the_controller_takes_no_time() -> None:
    at = 100.0
    clock = LivedClock(lambda: at)
    at += 0.5
    assert clock.now() == 0.5
    at += 60.0
    assert clock.now() == 0.5 + LATE_MAX_S
    assert clock.paused_s == 60.0 - LATE_MAX_S


def test_a_controller_that_reads_late_does_not_blame_the_network() -> None:
    """Frames wait for two seconds before the controller reads them, in the order they came."""
    wire = ring()
    wire.run(3.0)
    waiting: deque[tuple[float, Callable[[], None]]] = deque()
    hear, echo, probe = wire.monitor.hear, wire.monitor.handle_echo, wire.monitor.handle_probe
    wire.monitor.hear = lambda switch, _: waiting.append((wire.now, lambda: hear(switch, wire.now)))  # type: ignore[method-assign]
    wire.monitor.handle_echo = lambda sent, _: waiting.append((wire.now, lambda: echo(sent, wire.now)))  # type: ignore[method-assign]
    wire.monitor.handle_probe = lambda *probed: waiting.append((wire.now, lambda: probe(*probed)))  # type: ignore[method-assign]
    for _ in range(3000):
        wire.run(0.01)
        while waiting and waiting[0][0] <= wire.now - 1.9:
            waiting.popleft()[1]()
        assert wire.monitor.links() == set(CABLES)
    wire.cut.add(CABLES[0])
    for _ in range(2500):
        wire.run(0.01)
        while waiting and waiting[0][0] <= wire.now - 1.9:
            waiting.popleft()[1]()
    assert wire.monitor.links() == set(CABLES[1:]), "what is cut is told, if late"


def test_many_links_are_probed_less_often() -> None:
    monitor = LinkMonitor()
    count = 400
    for n in range(count):
        monitor.add_switch(SwitchId(n), 2, 0.0)
        monitor.connect(SwitchId(n), 0.0)
    cables = {(SwitchId(n), PortId(1)): (SwitchId((n + 1) % count), PortId(0)) for n in range(count)}
    cables |= {far: near for near, far in cables.items()}
    sent, now = 0, 0.0
    while now < 20.0:
        for ref in monitor.poll_transmit(now):
            if echo_port(ref[1]):
                monitor.hear(ref[0], now)
                monitor.handle_echo(ref, now)
            else:
                monitor.handle_probe(ref, cables[ref], now, now)
                sent += now >= 10.0
        monitor.handle_timeout(now)
        now += 0.05
    assert len(monitor.links()) == count
    assert sent <= 10.5 * PROBES_PER_S_MAX


def test_idle_ports_and_echoes_of_many_switches_keep_to_the_budget_too() -> None:
    """And a switch has as much more time to answer as it is asked less often."""
    monitor = LinkMonitor()
    many = [SwitchId(n) for n in range(400)]
    for switch in many:
        monitor.add_switch(switch, 8, 0.0)
        monitor.connect(switch, 0.0)
    sent, now, silent_at = 0, 0.0, None
    while now < 30.0:
        due = monitor.poll_transmit(now)
        sent += len(due) if now > 1.0 else 0  # all are asked at once when they connect
        for probe in due:
            if echo_port(probe[1]) and probe[0] != many[0]:
                monitor.handle_echo(probe, now)
                monitor.hear(probe[0], now)
            elif echo_port(probe[1]) and now < 1.0:
                monitor.handle_echo(probe, now)  # this one answers no more
        monitor.handle_timeout(now)
        if silent_at is None and many[0] in monitor.silent():
            silent_at = now
        now += 0.05
    assert sent <= 31 * PROBES_PER_S_MAX
    assert silent_at is not None
    assert silent_at > 2 * SWITCH_SILENT_S


def test_a_recabled_port_moves_its_link() -> None:
    wire = ring()
    wire.run(1.0)
    wire.monitor.handle_probe(ref(0, 1), ref(2, 0), wire.now, wire.now)
    wire.monitor.handle_probe(ref(2, 0), ref(0, 1), wire.now, wire.now)
    assert wire.monitor.links() == {Link.between(ref(0, 1), ref(2, 0)), *CABLES[1:]}


def test_a_switch_that_loses_its_session_is_down_after_a_grace_period() -> None:
    wire = ring()
    wire.run(2.0)
    wire.monitor.disconnect(B, wire.now)
    wire.run(SWITCH_GRACE_S - 0.1)
    assert wire.monitor.links() == set(CABLES)
    assert B in wire.monitor.switches()
    wire.run(0.2)
    assert wire.monitor.links() == {CABLES[2]}
    assert B not in wire.monitor.switches()
    wire.monitor.connect(B, wire.now)
    wire.run(0.1)
    assert wire.monitor.links() == set(CABLES), "its first probes are answered at once"


def test_a_short_loss_of_the_session_changes_nothing() -> None:
    wire = ring()
    wire.run(2.0)
    wire.monitor.disconnect(B, wire.now)
    wire.run(SWITCH_GRACE_S - 0.1)
    wire.monitor.connect(B, wire.now)
    for _ in range(100):
        wire.run(0.05)
        assert wire.monitor.links() == set(CABLES)


def test_a_switch_another_controller_took_over_stays_as_it_was() -> None:
    wire = ring()
    wire.run(2.0)
    wire.monitor.suspend(B)
    wire.run(60.0)
    assert wire.monitor.links() == set(CABLES)
    assert list(wire.monitor.switches()) == [A, B, C]
    wire.cut.add(CABLES[0])
    wire.monitor.connect(B, wire.now)
    wire.run(2.0)
    assert wire.monitor.links() == set(CABLES[1:])


def restored() -> Wire:
    monitor = LinkMonitor()
    for switch in (A, B, C):
        monitor.add_switch(switch, 4, 0.0, remembered=True)
    for cable in CABLES:
        monitor.restore_link(cable)
    return Wire(monitor)


def test_remembered_links_are_up_until_they_are_missed() -> None:
    wire = restored()
    assert wire.monitor.links() == set(CABLES)
    wire.cut.add(CABLES[1])
    wire.run(1.0)
    for switch in (A, B, C):
        wire.monitor.connect(switch, wire.now)
    wire.run(0.05)
    assert wire.monitor.links() == set(CABLES)
    wire.run(2.0)
    assert wire.monitor.links() == {CABLES[0], CABLES[2]}


def test_remembered_switches_that_do_not_come_back_are_down() -> None:
    wire = restored()
    wire.monitor.connect(A, 0.0)
    wire.monitor.connect(C, 0.0)
    wire.run(RESTORE_GRACE_S - 0.1)
    assert wire.monitor.links() == set(CABLES)
    wire.run(0.2)
    assert wire.monitor.links() == {CABLES[2]}
    assert list(wire.monitor.switches()) == [A, C]


def test_probes_of_unknown_ports_are_counted_and_ignored() -> None:
    wire = ring()
    for sent, received in ((ref(9, 0), ref(0, 0)), (ref(0, 0), ref(0, 4)), (ref(0, 0), ref(0, 0))):
        wire.monitor.handle_probe(sent, received, wire.now, wire.now)
    assert wire.monitor.probes_rejected == 3
    assert not wire.monitor.links()


# -- frames -------------------------------------------------------------------

KEY = b"k" * 32


def test_frames_survive_the_wire() -> None:
    probe = Probe(SwitchId(12), PortId(253))
    assert decode(encode_probe(probe, KEY), KEY) == probe
    announcement = Announcement("h7", MAC, 4)
    assert decode(encode_announcement(announcement), KEY) == announcement
    assert len(encode_announcement(announcement)) >= 60


def test_a_host_cannot_forge_a_probe() -> None:
    for forged in (
        encode_probe(Probe(A, PortId(1)), b"x" * 32),
        encode_probe(Probe(A, PortId(1)), KEY).replace(b"0", b"1"),
    ):
        with pytest.raises(LldpError, match="another controller"):
            decode(forged, KEY)


def test_damaged_frames_are_refused_whatever_they_hold() -> None:
    rng = random.Random(5)
    good = [encode_probe(Probe(A, PortId(1)), KEY), encode_announcement(Announcement("h", MAC, 1))]
    for _ in range(4000):
        frame = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 4)):
            frame[rng.randrange(12, len(frame))] = rng.randrange(256)
        del frame[rng.randrange(len(frame)) :]
        try:
            message = decode(bytes(frame), KEY)
        except LldpError:
            continue
        assert isinstance(message, Announcement) or message == Probe(A, PortId(1)), (
            "a damaged probe was believed"
        )
