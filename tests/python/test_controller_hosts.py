"""Hosts on virtual time: found, suspected, gone, restored; claims that cannot be are refused."""

from __future__ import annotations

import pytest
from wormcast.discovery.hosts import (
    DETACH_GRACE_S,
    GONE_AFTER_S,
    SUSPECT_AFTER_S,
    UNCLAIMED_MAX,
    HostRefused,
    HostRegistry,
)
from wormcast.discovery.links import RESTORE_GRACE_S
from wormcast.network.ids import HostId, PortId, SwitchId
from wormcast.network.topology import PortRef

MAC = bytes.fromhex("020000000001")


def ref(switch: int, port: int) -> PortRef:
    return SwitchId(switch), PortId(port)


def attach(registry: HostRegistry, name: str, now: float = 0.0, asked: int | None = None) -> HostId:
    return registry.register(name, asked, MAC, 1500, "1", now).id


def test_ids_are_the_lowest_free_or_those_asked_for_and_stay() -> None:
    registry = HostRegistry()
    assert [attach(registry, n) for n in ("a", "b")] == [0, 1]
    assert attach(registry, "c", asked=7) == 7
    registry.detach(HostId(0), 1.0)
    assert attach(registry, "d") == 2
    assert attach(registry, "a", 2.0) == 0


@pytest.mark.parametrize(
    ("name", "asked", "mac", "text"),
    [
        ("b", 0, MAC, "belongs to 'a'; the lowest free one is 1"),
        ("b", 65535, MAC, "host id 65535 is out of range"),
        ("", None, MAC, "not valid"),
        ("12", None, MAC, "not valid"),
        ("x/y", None, MAC, "not valid"),
        ("b" * 300, None, MAC, "not valid"),
        ("b", None, b"", "MAC of 0 bytes"),
    ],
)
def test_registrations_that_cannot_be_are_refused(
    name: str, asked: int | None, mac: bytes, text: str
) -> None:
    registry = HostRegistry()
    attach(registry, "a")
    with pytest.raises(HostRefused, match=text):
        registry.register(name, asked, mac, 1500, "1", 0.0)
    assert [r.name for r in registry.records()] == ["a"]


def state(registry: HostRegistry, host: HostId, now: float) -> str:
    record = registry.get(host)
    assert record is not None
    return registry.state(record, now)


def test_what_is_suspected_of_a_host_is_shown_and_takes_nobody_out() -> None:
    registry = HostRegistry()
    host = attach(registry, "a")
    assert state(registry, host, 0.0) == "unlocated"
    registry.announce("a", MAC, 4, ref(0, 0), 0.0)
    assert state(registry, host, 3.9) == "up"
    assert state(registry, host, 4.1) == "lost"
    assert registry.live(1e9) == {host}, "its stream is open and nobody misses it"
    registry.announce("a", MAC, 4, ref(0, 0), 5.0)
    registry.detach(host, 5.0)
    assert state(registry, host, 5.0 + DETACH_GRACE_S - 0.1) == "up"
    assert state(registry, host, 5.0 + DETACH_GRACE_S) == "dead"
    assert registry.live(5.0 + DETACH_GRACE_S) == {host}
    attach(registry, "a", 6.5)
    assert state(registry, host, 6.5) == "up"
    registry.announce("a", MAC, 0, ref(0, 0), 7.0)
    assert state(registry, host, 7.0) == "lost", "the agent said that it leaves"
    assert registry.live(7.0) == {host}


@pytest.mark.parametrize("gone_after_s", [GONE_AFTER_S, 7.0])
def test_a_host_is_gone_when_neither_stream_nor_fabric_shows_it_for_long(gone_after_s: float) -> None:
    registry = HostRegistry(gone_after_s)
    host = attach(registry, "a")
    registry.announce("a", MAC, 4, ref(0, 0), 0.0)
    registry.detach(host, 1.0)
    assert registry.live(0.9 + gone_after_s) == {host}
    assert registry.poll_timeout(0.9 + gone_after_s) == 1.0 + gone_after_s
    assert registry.live(1.0 + gone_after_s) == set()
    registry.announce("a", MAC, 4, ref(0, 0), 50.0)
    assert registry.live(50.0 + gone_after_s - 0.1) == {host}, "its agent forwards, though it has no stream"
    assert registry.live(50.0 + gone_after_s) == set()
    attach(registry, "a", 100.0)
    assert registry.live(100.0) == {host}, "it is back"


def test_an_announcement_may_come_before_the_registration() -> None:
    registry = HostRegistry()
    registry.announce("a", MAC, 4, ref(0, 0), 0.0)
    host = attach(registry, "a", 1.0)
    assert registry.live(1.0) == {host}


def test_a_host_reported_silent_is_back_when_it_registers_again() -> None:
    registry = HostRegistry()
    host = attach(registry, "a")
    parent = attach(registry, "parent")
    for name, port in (("a", 0), ("parent", 1)):
        registry.announce(name, MAC, 100, ref(0, port), 0.0)
    assert registry.report_silent(host, parent, "no acknowledgement for 5 s", 1.0)
    assert not registry.report_silent(host, parent, "again", 1.0), "reported once"
    assert (state(registry, host, 1.0), registry.live(1.0)) == ("silent", {host, parent})
    attach(registry, "a", 2.0)
    assert state(registry, host, 2.0) == "up"


def test_a_host_reported_silent_is_gone_unless_the_fabric_hears_it() -> None:
    registry = HostRegistry()
    host, parent = attach(registry, "a"), attach(registry, "parent")
    for name, port in (("a", 0), ("parent", 1)):
        registry.announce(name, MAC, 4, ref(0, port), 0.0)
    assert registry.report_silent(host, parent, "silent for 4.0 s", 1.0)
    assert registry.live(GONE_AFTER_S - 0.1) == {host, parent}
    assert registry.live(GONE_AFTER_S) == {parent}
    registry.announce("a", MAC, 4, ref(0, 0), 60.0)
    assert (state(registry, host, 60.0), registry.live(60.0)) == ("up", {host, parent})


def test_who_is_cut_off_itself_is_not_believed() -> None:
    registry = HostRegistry()
    top, middle, leaf = (attach(registry, n) for n in ("top", "middle", "leaf"))
    for n, name in enumerate(("top", "middle", "leaf")):
        registry.announce(name, MAC, 100, ref(0, n), 0.0)
    for name in ("top", "leaf"):
        registry.announce(name, MAC, 100, ref(0, 0 if name == "top" else 2), SUSPECT_AFTER_S)
    now = SUSPECT_AFTER_S + 0.1
    assert not registry.report_silent(leaf, middle, "no acknowledgement", now)
    assert registry.report_silent(middle, top, "no acknowledgement", now)
    registry.announce("middle", MAC, 100, ref(0, 1), now)
    assert registry.report_silent(leaf, middle, "no acknowledgement", now), "heard again, it is believed"
    assert not registry.report_silent(top, leaf, "no acknowledgement", now), "it is silent itself"
    assert not registry.report_silent(top, top, "myself", now)
    assert [state(registry, h, now) for h in (top, middle, leaf)] == ["up", "up", "silent"]
    assert registry.reports_doubted == 2


def test_a_host_cannot_take_a_name_or_a_port_that_is_in_use() -> None:
    registry = HostRegistry()
    attach(registry, "a")
    attach(registry, "b")
    registry.announce("a", MAC, 4, ref(0, 0), 0.0)
    registry.announce("b", MAC, 4, ref(0, 0), 1.0)
    registry.announce("a", b"\2\0\0\0\0\7", 4, ref(0, 1), 1.0)
    assert registry.conflicts == 2
    assert [r.place for r in registry.records()] == [ref(0, 0), None]
    registry.announce("b", MAC, 4, ref(0, 0), 6.0)
    assert [r.place for r in registry.records()] == [None, ref(0, 0)], "a stale host gives way"


def test_declared_places_stay() -> None:
    registry = HostRegistry()
    plain = registry.declare("printer", ref(1, 1), None, 0.0)
    attach(registry, "a")
    registry.announce("a", MAC, 4, ref(1, 1), 1000.0)
    registry.announce("printer", MAC, 4, ref(2, 2), 1000.0)
    assert plain.place == ref(1, 1)
    assert registry.conflicts == 2
    assert registry.state(plain, 1e9) == "plain"
    with pytest.raises(HostRefused, match="has host 'printer'"):
        registry.declare("other", ref(1, 1), None, 0.0)


def test_restored_hosts_are_up_for_a_grace_period_and_members_until_they_are_gone() -> None:
    registry = HostRegistry()
    for n, name in enumerate(("a", "b")):
        attach(registry, name)
        registry.announce(name, MAC, 4, ref(0, n), 0.0)
    later = HostRegistry()
    later.restore(registry.records(), {HostId(0)}, 100.0)
    assert (state(later, HostId(0), 100.0), later.live(100.0)) == ("up", {0})
    assert state(later, HostId(0), 100.0 + RESTORE_GRACE_S) == "dead"
    assert later.live(100.0 + GONE_AFTER_S - 0.1) == {0}
    assert later.live(100.0 + GONE_AFTER_S) == set()


def test_names_no_one_registers_are_bounded() -> None:
    registry = HostRegistry()
    for n in range(UNCLAIMED_MAX + 10):
        registry.announce(f"x{n}", MAC, 4, ref(0, 0), 0.0)
    assert registry.unclaimed_dropped == 10
    registry.announce("late", MAC, 4, ref(0, 1), 5.0)
    assert registry.unclaimed_dropped == 10, "stale names make room"
