"""Who is believed: probes count once, hosts move when their agents prove it, floods are named. On virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from controller_lab.announcing import encode_announcement
from wormcast.discovery.hosts import Caller, HostRefused, HostRegistry
from wormcast.discovery.links import LinkMonitor
from wormcast.discovery.lldp import (
    Announcement,
    LldpError,
    Probe,
    decode,
    encode_probe,
    prove,
)
from wormcast.discovery.port_rates import BURST, OVER_AFTER_S, RATE_PER_S, PortRates
from wormcast.discovery.probe_registry import VALID_MIN_S, VALID_S, ProbeRefused, ProbeRegistry
from wormcast.guard.state import Guard
from wormcast.network.ids import CPU_PORT, HostId, PortId, SwitchId
from wormcast.network.topology import Link, PortRef
from wormcast.reconcile.episodes import KEYS_MAX, QUIET_S, Episodes
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.packet_in import PacketIns

KEY = bytes(range(32))
MACS = {name: bytes([2, 0, 0, 0, 0, n]) for n, name in enumerate(("h0", "h1", "h2", "h3"), 1)}
OTHER_MAC = b"\2\0\0\0\0\x99"
SECRETS = {name: bytes([n]) * 32 for n, name in enumerate(MACS, 1)}


def ref(switch: int, port: int) -> PortRef:
    return SwitchId(switch), PortId(port)


def caller(name: str, challenge: bytes = b"c" * 16, address: str = "10.0.0.1:5") -> Caller:
    return Caller(SECRETS[name], challenge, address)


class Fabric:
    """Two switches with a link from port 3 to port 3, and hosts h0 to h3 at their ports 0 and 1."""

    def __init__(self, guarded: bool = False) -> None:
        self.now = 0.0
        self.monitor, self.hosts, self.events = LinkMonitor(), HostRegistry(), EventLog()
        self.guard = Guard(on=guarded)
        self.packets = PacketIns(KEY, self.monitor, self.hosts, lambda: self.guard, self.events)
        for switch in (0, 1):
            self.monitor.add_switch(SwitchId(switch), 4, 0.0)
            self.monitor.connect(SwitchId(switch), 0.0)
        self.places = {name: ref(n // 2, n % 2) for n, name in enumerate(MACS)}
        self.numbers = dict.fromkeys(MACS, 0)
        for name in MACS:
            self.register(name)
            self.announce(name, self.places[name])
        self.cross(ref(0, 3), ref(1, 3))

    def register(self, name: str, challenge: bytes = b"c" * 16) -> None:
        self.hosts.register(
            name, None, MACS[name], 1500, "1", self.now, True, caller(name, challenge), guarded=self.guard.on
        )
        self.challenge = challenge

    def announce(self, name: str, place: PortRef, proved: bool = True, **fields: Any) -> bytes:
        said = Announcement(name, fields.get("mac", MACS[name]), fields.get("ttl_s", 4))
        if proved:
            self.numbers[name] += 1
            said = prove(said, SECRETS[name], self.challenge, self.numbers[name])
        frame = encode_announcement(said)
        self.packets.receive(place, frame, self.now)
        return frame

    def cross(self, one: PortRef, other: PortRef) -> None:
        """Probes cross a cable, or are handed on by hosts at its ends."""
        for sent, received in ((one, other), (other, one)):
            self.packets.receive(received, self.packets.probe(sent, self.now), self.now)

    def place(self, name: str) -> PortRef | None:
        record = self.hosts.named(name)
        assert record is not None
        return record.place

    def events_of(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.events.history() if event.kind == kind]


# -- probes


def test_a_probe_counts_once_and_in_time() -> None:
    probes = ProbeRegistry(KEY)
    first, second = (decode(probes.send(ref(0, 1), 0.0), KEY) for _ in range(2))
    assert isinstance(first, Probe)
    assert isinstance(second, Probe)
    assert first != second
    probes.take(first, ref(1, 1), 0.5)
    with pytest.raises(ProbeRefused, match="seen twice"):
        probes.take(first, ref(1, 1), 0.6)
    with pytest.raises(ProbeRefused, match="too late"):
        probes.take(second, ref(1, 1), VALID_MIN_S + 0.1)
    assert probes.take(second, ref(1, 1), VALID_MIN_S + 0.1, stretch=VALID_MIN_S / VALID_S + 1) == 0.0
    probes.send(ref(0, 1), 2 * VALID_MIN_S)
    with pytest.raises(ProbeRefused, match="too late"):
        probes.take(first, ref(1, 1), 2 * VALID_MIN_S)
    assert len(probes._sent) == 1, "what is too old is not kept"


def test_a_probe_is_what_its_controller_signed() -> None:
    probe = Probe(SwitchId(1), PortId(2), 77)
    frame = encode_probe(probe, KEY)
    assert decode(frame, KEY) == probe
    with pytest.raises(LldpError, match="another controller"):
        decode(frame, bytes(32))
    for forged in (frame.replace(b"switch:1", b"switch:2"), frame.replace((77).to_bytes(8, "big"), bytes(8))):
        with pytest.raises(LldpError, match="another controller"):
            decode(forged, KEY)


@pytest.mark.parametrize("guarded", [False, True])
def test_hosts_that_hand_on_probes_make_no_link(guarded: bool) -> None:
    fabric = Fabric(guarded)
    links = fabric.monitor.links()
    assert links == {Link.between(ref(0, 3), ref(1, 3))}
    old = [fabric.packets.probe(fabric.places[name], 0.0) for name in ("h0", "h2")]
    for n in range(50):
        fabric.now = n / 49 * 1.2 * VALID_MIN_S
        for name in MACS:
            fabric.announce(name, fabric.places[name])
        fabric.cross(fabric.places["h0"], fabric.places["h2"])
        fabric.packets.receive(fabric.places["h2"], old[0], fabric.now)
        fabric.packets.receive(fabric.places["h0"], old[1], fabric.now)
    assert fabric.monitor.links() == links
    assert not any(fabric.monitor.leads_to_switch(place) for place in fabric.places.values())
    assert [fabric.hosts.state(r, fabric.now) for r in fabric.hosts.records()] == ["up"] * 4
    rejected = fabric.packets.lldp_rejected
    assert rejected["probe of a port with a host"] == 102
    assert rejected["probe seen twice"] + rejected["probe too late"] == 98
    events = fabric.events_of("link_refused")
    assert len(events) == 4, "each reason once"
    assert {(e["a"], e["a_port"], e["b"], e["b_port"]) for e in events} == {(0, 0, 1, 0)}
    cures = [e["reason"] for e in events if "wormcast guard port" in e["reason"]]
    assert (
        cures[0] == "port 0 of switch 0 has host h0; if it leads to a switch: `wormcast guard port 0:0 link`"
    )


@pytest.mark.parametrize("guarded", [False, True])
def test_hosts_that_fell_silent_keep_their_ports_with_the_guard_on(guarded: bool) -> None:
    fabric = Fabric(guarded)
    fabric.now = 10.0
    fabric.cross(fabric.places["h0"], fabric.places["h2"])
    made = Link.between(fabric.places["h0"], fabric.places["h2"]) in fabric.monitor.links()
    assert made is not guarded


def test_the_operator_says_what_a_port_leads_to() -> None:
    fabric = Fabric(guarded=True)
    one, other = fabric.places["h0"], fabric.places["h2"]
    link = Link.between(one, other)
    fabric.guard = Guard(on=True, ports={one: "link"})
    fabric.cross(one, other)
    assert link not in fabric.monitor.links(), "the other end has a host too"
    fabric.guard = Guard(on=True, ports={one: "link", other: "link"})
    fabric.cross(one, other)
    assert link in fabric.monitor.links()
    fabric.announce("h0", one)
    assert fabric.packets.lldp_rejected["host on a link"] == 1
    before = fabric.packets.lldp_rejected["probe of a port with a host"]
    fabric.guard = Guard(on=False, ports={one: "host"})
    fabric.cross(one, other)
    assert fabric.packets.lldp_rejected["probe of a port with a host"] == before + 2, (
        "not even of a link that was"
    )


def test_an_echo_counts_from_its_own_switch_alone() -> None:
    fabric = Fabric()
    echoed: list[PortRef] = []
    fabric.monitor.handle_echo = lambda sent, _: echoed.append(sent)  # type: ignore[method-assign]
    echo = ref(0, CPU_PORT)
    fabric.packets.receive(ref(1, 0), fabric.packets.probe(echo, 0.0), 0.0)
    assert echoed == []
    fabric.packets.receive(echo, fabric.packets.probe(echo, 0.0), 0.0)
    assert echoed == [echo]
    assert fabric.events_of("link_refused") == []


# -- where hosts are


@pytest.mark.parametrize("guarded", [False, True])
def test_a_host_does_not_move_on_the_word_of_another(guarded: bool) -> None:
    fabric = Fabric(guarded)
    free = ref(0, 2)
    for n in range(20):
        fabric.now = n / 2
        for name in MACS:
            fabric.announce(name, fabric.places[name])
        fabric.announce("h3", free, proved=False)
        fabric.announce("h3", free, proved=False, ttl_s=0)
        assert fabric.place("h3") == fabric.places["h3"]
        assert fabric.hosts.state(fabric.hosts.records()[3], fabric.now) == "up"
    events = fabric.events_of("host_refused")
    assert [(e["name"], e["switch"], e["port"], e["at_switch"], e["at_port"]) for e in events] == [
        ("h3", 0, 2, 1, 1)
    ]


@pytest.mark.parametrize("guarded", [False, True])
def test_a_host_moves_at_once_when_its_agent_proves_it(guarded: bool) -> None:
    fabric = Fabric(guarded)
    free = ref(0, 2)
    frame = fabric.announce("h3", free)
    assert fabric.place("h3") == free
    fabric.announce("h3", fabric.places["h3"])
    assert fabric.place("h3") == fabric.places["h3"]
    fabric.packets.receive(free, frame, fabric.now)
    assert fabric.place("h3") == fabric.places["h3"], "a proof counts once"
    fabric.register("h3", b"d" * 16)
    fabric.packets.receive(
        free, encode_announcement(prove(Announcement("h3", MACS["h3"], 4), SECRETS["h3"], b"c" * 16, 99)), 0.0
    )
    assert fabric.place("h3") == fabric.places["h3"], "nor after the agent has registered again"
    fabric.packets.receive(
        free, encode_announcement(prove(Announcement("h3", MACS["h3"], 4), SECRETS["h0"], b"d" * 16, 99)), 0.0
    )
    assert fabric.place("h3") == fabric.places["h3"], "nor by the secret of another agent"


@pytest.mark.parametrize(("guarded", "moves"), [(False, True), (True, False)])
def test_with_the_guard_on_a_host_that_is_down_is_not_moved_either(guarded: bool, moves: bool) -> None:
    fabric = Fabric(guarded)
    fabric.now = 100.0
    fabric.monitor.note_ports(SwitchId(1), {PortId(1)}, fabric.now)
    fabric.announce("h3", ref(0, 2), proved=False)
    assert (fabric.place("h3") == ref(0, 2)) is moves


def test_with_the_guard_on_a_host_without_a_secret_moves_when_its_port_is_down() -> None:
    fabric = Fabric(guarded=True)
    fabric.hosts.register("old", None, OTHER_MAC, 1500, "0", 0.0)
    fabric.packets.receive(ref(0, 2), encode_announcement(Announcement("old", OTHER_MAC, 4)), 0.0)
    assert fabric.place("old") == ref(0, 2)
    moved = encode_announcement(Announcement("old", OTHER_MAC, 4))
    fabric.packets.receive(ref(1, 2), moved, 100.0)
    assert fabric.place("old") == ref(0, 2)
    fabric.monitor.note_ports(SwitchId(0), {PortId(2)}, 100.0)
    fabric.packets.receive(ref(1, 2), moved, 100.0)
    assert fabric.place("old") == ref(1, 2)


def test_with_the_guard_on_a_first_place_needs_a_proof_too() -> None:
    for guarded in (False, True):
        fabric = Fabric(guarded)
        early = Announcement("new", OTHER_MAC, 4)
        fabric.packets.receive(ref(0, 2), encode_announcement(early), 0.0)
        fabric.hosts.register(
            "new", None, OTHER_MAC, 1500, "1", 0.0, True, Caller(b"n" * 32, b"c" * 16), guarded=guarded
        )
        assert fabric.place("new") == (None if guarded else ref(0, 2))
        fabric.packets.receive(ref(1, 2), encode_announcement(prove(early, b"n" * 32, b"c" * 16, 1)), 0.0)
        assert fabric.place("new") == ref(1, 2)


# -- who a host is


def test_a_name_is_of_one_agent_whether_it_is_there_or_not() -> None:
    registry = HostRegistry()

    def come(secret: bytes, mac: bytes, address: str, now: float) -> HostId:
        return registry.register("a", None, mac, 1500, "1", now, True, Caller(secret, b"", address)).id

    own, mac = b"s" * 32, MACS["h0"]
    host = come(own, mac, "10.0.0.1:5", 0.0)
    for secret in (b"t" * 32, b""):
        with pytest.raises(HostRefused) as refused:
            come(secret, OTHER_MAC, "10.0.0.2:6", 1.0)
        assert str(refused.value) == (
            "the name 'a' belongs to an agent at 10.0.0.1:5 with hardware address 02:00:00:00:00:01, which is connected; "
            "this agent at 10.0.0.2:6 with hardware address 02:00:00:00:00:99 is another one; give it another name"
        )
    with pytest.raises(HostRefused, match="has the secret of that one: give it another name"):
        come(own, OTHER_MAC, "10.0.0.2:6", 1.0)
    with pytest.raises(HostRefused):
        come(b"", mac, "10.0.0.1:7", 1.0)
    assert come(own, mac, "10.0.0.1:7", 1.0) == host, "a restart"
    registry.detach(host, 2.0)
    with pytest.raises(HostRefused, match=r"which is away; .* say so: `wormcast host forget a`"):
        come(b"t" * 32, OTHER_MAC, "10.0.0.2:6", 1e6)
    assert come(own, OTHER_MAC, "10.0.0.3:7", 1e6) == host, "the same agent with another interface"
    registry.detach(host, 1e6)
    registry.forget(host)
    assert come(b"t" * 32, OTHER_MAC, "10.0.0.2:6", 1e6) == host


def test_an_agent_without_a_secret_is_known_by_its_hardware_address() -> None:
    registry = HostRegistry()
    host = registry.register("a", None, MACS["h0"], 1500, "0", 0.0).id
    assert registry.register("a", None, MACS["h0"], 1500, "0", 0.0).id == host
    for attached in (True, False):
        if not attached:
            registry.detach(host, 0.0)
        with pytest.raises(HostRefused, match="another one"):
            registry.register("a", None, OTHER_MAC, 1500, "0", 1e6, True, Caller(b"t" * 32))
    registry.register("a", None, MACS["h0"], 1500, "1", 0.0, True, Caller(b"s" * 32))
    with pytest.raises(HostRefused):
        registry.register("a", None, MACS["h0"], 1500, "0", 0.0)


def test_an_id_is_not_taken_from_a_host_that_is_away() -> None:
    registry = HostRegistry()
    host = registry.register("a", 5, MACS["h0"], 1500, "1", 0.0, True, caller("h0")).id
    registry.detach(host, 0.0)
    with pytest.raises(HostRefused, match=r"belongs to 'a'.*`wormcast host forget a` frees it"):
        registry.register("b", 5, MACS["h1"], 1500, "1", 1e6, True, caller("h1"))
    assert [r.name for r in registry.records()] == ["a"], "nor is the one that was refused known"


def test_a_secret_has_a_length_and_is_not_shown() -> None:
    registry = HostRegistry()
    with pytest.raises(HostRefused, match="secret of 31 bytes"):
        registry.register("a", None, MACS["h0"], 1500, "1", 0.0, True, Caller(b"s" * 31))
    record = registry.register("a", None, MACS["h0"], 1500, "1", 0.0, True, Caller(b"s" * 32))
    assert "ssss" not in repr(record) + repr(Caller(b"s" * 32))


def test_the_agent_makes_the_same_proof() -> None:
    # hostagent/src/link/lldp.rs has the same bytes.
    proof = prove(Announcement("h7", bytes([2, 0, 0, 0, 0, 7]), 4), b"\7" * 32, b"\x09" * 16, 1).proof
    assert proof is not None
    assert proof.check.hex() == "4570eb0d1fb913c7e9e465d1acd90d45"


# -- floods


def test_a_flood_is_told_when_it_begins_and_when_it_is_over() -> None:
    fabric = Fabric()
    place, other = fabric.places["h3"], fabric.places["h2"]
    flood = encode_announcement(Announcement("nobody", OTHER_MAC, 4))
    for n in range(10_000):
        fabric.now = 1.0 + n / 5000
        fabric.packets.receive(place, flood, fabric.now)
        fabric.packets.queries(fabric.now)
    read = 10_000 - fabric.packets.rates.dropped
    assert BURST <= read <= BURST + 2.0 * RATE_PER_S + 1
    assert fabric.events_of("packet_flood") == [
        {"switch": 1, "port": 1, "host": 3, "name": "h3", "per_s_max": 200}
    ]
    assert fabric.events_of("packet_flood_over") == []
    fabric.announce("h2", other)
    record = fabric.hosts.named("h2")
    assert record is not None
    assert record.heard_at == fabric.now, "other ports are read"
    fabric.now += OVER_AFTER_S + 0.5
    fabric.packets.queries(fabric.now)
    (over,) = fabric.events_of("packet_flood_over")
    assert over["dropped"] == fabric.packets.rates.dropped
    assert 4000 < over["per_s"] <= 5200
    assert len(fabric.events_of("packet_flood")) == 1


def test_what_a_link_and_an_agent_send_is_no_flood() -> None:
    rates = PortRates()
    assert all(rates.allows(ref(0, 0), n * 0.012) for n in range(10_000))


@pytest.mark.parametrize(("apart_s", "news"), [(QUIET_S - 1, 1), (QUIET_S + 1, 10)])
def test_what_goes_on_is_told_once(apart_s: float, news: int) -> None:
    episodes = Episodes()
    assert sum(episodes.is_news("it", n * apart_s) for n in range(10)) == news


def test_what_was_told_is_bounded() -> None:
    episodes = Episodes()
    assert all(episodes.is_news(n, 0.0) for n in range(KEYS_MAX + 1))
    assert episodes.is_news(0, 1.0), "forgotten first"
    assert not episodes.is_news(KEYS_MAX, 1.0)
    assert len(episodes._last) <= KEYS_MAX
