"""Counters of ports from where a P4 program cannot see, and the check of MTUs."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from wormcast.counters.kernel import parse_interfaces, parse_queues, read_mtus
from wormcast.counters.switch_page import parse_page
from wormcast.mtu import NAMED_MAX, Links
from wormcast.network.ids import HostId, PortId, SwitchId
from wormcast.network.topology import Host, Link, PortRef, Switch, Topology
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.port_sources import check_port_sources, read_interfaces
from wormcast.store.database import Database, SwitchSpec

NET_DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    1000       8    1    2    0     0          0         0     1000       8    3    4    0     0       0          0
s0-p4:1000       8    0    5    0     0          0         0     1000       8    0    6    0     0       0          0
"""
TC = json.dumps(
    [
        {"kind": "tbf", "dev": "s0-p4", "handle": "8001:", "root": True, "drops": 7},
        {"kind": "bfifo", "dev": "s0-p4", "parent": "8001:1", "drops": 7},
        {"kind": "noqueue", "dev": "lo", "root": True},
    ]
)
PAGE = """# TYPE wormcast_switch_port_send_failures_total counter
wormcast_switch_port_send_failures_total{device="3",port="4",interface="s0-p4",reason="bad_length"} 12
wormcast_switch_port_send_failures_total{device="3",port="4",interface="s0-p4",reason="other"} 1
wormcast_switch_port_impaired_frames_total{device="3",port="4",interface="s0-p4",kind="lost"} 5
wormcast_switch_port_impaired_frames_total{device="3",port="4",interface="s0-p4",kind="reordered"} 9
wormcast_switch_port_tail_drops_total{device="3",port="unattached",interface="x"} 2
wormcast_switch_port_sent_frames_total{device="3",port="4",interface="s0-p4"} 99
"""


def test_the_kernels_counts_are_taken_from_their_columns() -> None:
    counts = parse_interfaces(NET_DEV)
    assert counts["s0-p4"].drops() == {
        "kernel_receive": 5,
        "kernel_receive_error": 0,
        "kernel_send": 6,
        "kernel_send_error": 0,
    }
    assert counts["lo"].drops()["kernel_receive_error"] == 1
    assert counts["lo"].drops()["kernel_send_error"] == 3
    assert parse_queues(TC) == {"s0-p4": 7}


def test_loopback_has_an_mtu_and_what_is_not_there_has_none() -> None:
    assert read_mtus({"lo", "no-such-iface"}) == {"lo": 65536}


def test_only_what_was_lost_is_taken_from_the_switchs_page() -> None:
    assert parse_page(PAGE) == {3: {4: {"too_long": 12, "send_failed": 1, "impaired_lost": 5}}}
    assert parse_page("not a page\n{}\n") == {}


def line(switches: int) -> Topology:
    return Topology(
        tuple(Switch(SwitchId(s), 4) for s in range(switches)),
        tuple(Host(HostId(s), SwitchId(s), PortId(0)) for s in range(switches)),
        tuple(Link(SwitchId(s), PortId(1), SwitchId(s + 1), PortId(2)) for s in range(switches - 1)),
    )


def check(topology: Topology, ports: Mapping[PortRef, int], hosts: Mapping[HostId, int]) -> list[str]:
    return Links(topology, ports, hosts).problems()


def test_links_that_carry_what_hosts_send_are_right() -> None:
    ports = {(SwitchId(s), PortId(p)): 1514 for s in range(3) for p in (1, 2)}
    hosts = {HostId(h): 1500 for h in range(3)}
    assert check(line(3), ports, hosts) == []
    assert check(line(3), {}, hosts) == []
    assert check(line(3), ports, {}) == []
    assert Links(line(3), ports, hosts).mtu_limited() == {}


def test_a_link_that_is_too_narrow_is_named_with_both_values() -> None:
    ports = {(SwitchId(1), PortId(1)): 1513, (SwitchId(2), PortId(0)): 1400, (SwitchId(0), PortId(1)): 1499}
    hosts = {HostId(h): 1500 for h in range(3)}
    assert check(line(3), ports, hosts) == [
        "link s0 port 1 - s1 port 2 carries 1499 bytes (MTU 1499 at s0, not known at s1), others 1500",
        "link s2 port 0 - host 2 carries 1400 bytes (MTU 1400 at s2, 1500 at the host), others 1500",
        "link s1 port 1 - s2 port 2: port 1 of switch 1 has an MTU of 1513; "
        "IP multicast packets of host 0 (MTU 1500) need 1514 there",
    ]
    assert Links(line(3), ports, hosts).mtu_limited() == {
        (SwitchId(0), PortId(1)): 1499,
        (SwitchId(1), PortId(2)): 1499,
        (SwitchId(2), PortId(0)): 1400,
    }, "what is wide enough for agents is not limited"


def test_hosts_of_different_mtus_are_named() -> None:
    hosts = {HostId(0): 1500, HostId(1): 9000}
    assert check(line(2), {}, hosts) == [
        "link s0 port 0 - host 0 carries 1500 bytes (MTU not known at s0, 1500 at the host), others 9000"
    ]
    assert Links(line(2), {}, hosts).mtu_limited() == {(SwitchId(0), PortId(0)): 1500}


def test_many_findings_are_counted() -> None:
    ports = {(SwitchId(s), PortId(1)): 1500 for s in range(100)}
    found = check(line(100), ports, {HostId(h): 1500 for h in range(100)})
    assert len(found) == NAMED_MAX + 1
    assert found[-1] == f"and {99 - NAMED_MAX} more like these"


@pytest.mark.parametrize(
    ("interfaces", "metrics", "said"),
    [
        ({"4": "s0-p4"}, None, "has no port 4; possible: 0 to 3"),
        ({"0": "a/b"}, None, "'a/b' is not the name of an interface"),
        ({"0": "sixteen-letters-"}, None, "1 to 15 bytes"),
        ({"²": "s0"}, None, "'²'"),
        ({}, "nowhere", "metrics address 'nowhere'"),
        ({}, "http://x:1", "host:port"),
    ],
)
def test_where_ports_are_counted_is_checked(
    interfaces: dict[str, str], metrics: str | None, said: str
) -> None:
    with pytest.raises(RequestError) as refused:
        check_port_sources(SwitchSpec(SwitchId(0), "x:1", 0, 4, read_interfaces(interfaces), metrics))
    assert said in refused.value.message


def test_where_ports_are_counted_is_kept_and_forgotten() -> None:
    database = Database(None)
    spec = SwitchSpec(SwitchId(7), "x:1", 0, 4, ((0, "s7-p0"),), "127.0.0.1:9100")
    database.put_switches([spec])
    (kept,) = database.switches()
    assert (kept.interfaces, kept.metrics) == (spec.interfaces, spec.metrics)
    database.remove_switch(spec.id)
    database.put_switches([SwitchSpec(SwitchId(7), "x:1", 0, 4)])
    (kept,) = database.switches()
    assert (kept.interfaces, kept.metrics) == ((), None)
