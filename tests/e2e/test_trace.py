"""`wormcast trace` on running fabrics, with each switch: the ways are those of routes and trees, hop by hop."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wormcast.mininet.fabric import Fabric

Json = dict[str, Any]
SECONDS_MAX = 600.0
"""Only against hanging for ever."""
RATES = {"wormcast": 50.0, "bmv2": 4.0}


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    """Networks with alternatives and in-transit hosts."""
    topology = "torus:3" if switch == "wormcast" else "irregular:8:3:2:3"
    made = make_fabric(topology, switch=switch, rate_mbps=RATES[switch])
    made.put("routing", {"algorithm": "rrmit"})
    made.wait_ready()
    return made


def run(fabric: Fabric, *arguments: str) -> subprocess.CompletedProcess[str]:
    return fabric.run(0, ["wormcast", "trace", *arguments], seconds_max=SECONDS_MAX)


def traced(fabric: Fabric, *arguments: str) -> Json:
    """The answer of a trace that everything came back from."""
    done = run(fabric, *arguments, "--json", "--timeout", "60")
    assert done.returncode == 0, (done.stdout, done.stderr)
    found: Json = json.loads(done.stdout)
    assert found["complete"]
    return found


def ports(arrival: Json) -> list[int]:
    return [hop["egress_port"] for hop in arrival["hops"]]


def check_hops(arrival: Json) -> None:
    """Every switch has a record, and each is where the one before it leads."""
    assert arrival["hops"], "no hops"
    for hop in arrival["hops"]:
        assert "switch" in hop, arrival
        assert "surprise" not in hop, arrival
        assert not hop["stay_at_least"], arrival
    assert arrival["hops"][-1]["to"] == {"host": arrival["host"]}
    assert "other_than_planned" not in arrival


def test_each_route_of_a_pair(fabric: Fabric) -> None:
    """As the controller planned them; on a network with minimal routes some go through hosts."""
    hosts = [host["id"] for host in fabric.get("topology")["hosts"]]
    far = hosts[-1]
    found = traced(fabric, "--from", str(hosts[0]), "--to", str(far))
    planned = fabric.get(f"routes?src={hosts[0]}&dst={far}")["routes"]
    assert sorted(way["route"] for way in found["ways"]) == sorted(
        bytes(route["ports"]).hex() for route in planned
    )
    for way in found["ways"]:
        (arrival,) = way["arrived"]
        check_hops(arrival)
        assert bytes(ports(arrival)).hex() == way["route"]
    one = traced(fabric, "--from", str(hosts[0]), "--to", str(far), "--route", "0")
    assert [way["alternative"] for way in one["ways"]] == [0]


def test_routes_by_in_transit_hosts(fabric: Fabric) -> None:
    """The worm enters a switch again by the port of the host."""
    routes = fabric.get("routes")["routes"]
    route = next(route for route in routes if route.get("in_transit"))
    found = traced(fabric, "--from", str(route["src"]), "--to", str(route["dst"]))
    through = set()
    for way in found["ways"]:
        (arrival,) = way["arrived"]
        check_hops(arrival)
        through |= {hop["to"]["host"] for hop in arrival["hops"][:-1] if "host" in hop["to"]}
    assert set(route["in_transit"]) <= through


@pytest.mark.parametrize("scheme", ["switch", "table", "broadcast", "circuit"])
def test_ways_of_a_group(fabric: Fabric, scheme: str, tmp_path: Path) -> None:
    """One copy on every link where switches copy, and the chain of hosts where hosts do."""
    hosts = [host["id"] for host in fabric.get("topology")["hosts"]][:4]
    group = fabric.post("groups", {"scheme": scheme, "members": hosts})["id"]
    try:
        fabric.wait_group(group)
        picture = tmp_path / "way.svg"
        found = traced(fabric, "--group", str(group), "--from", str(hosts[0]), "--svg", str(picture))
        assert picture.read_text().startswith("<svg")
        arrivals = [(way, arrival) for way in found["ways"] for arrival in way["arrived"]]
        assert {arrival["host"] for _, arrival in arrivals} >= set(hosts[1:])
        for _, arrival in arrivals:
            check_hops(arrival)
        kinds = {way["kind"] for way in found["ways"]}
        expected = {"switch": "TREE", "table": "GROUP", "broadcast": "BROADCAST", "circuit": "UNICAST"}
        assert kinds == {expected[scheme]}
        if scheme == "circuit":
            assert len({way["from"] for way in found["ways"]}) == len(hosts) - 1
        else:
            # What is recorded of a link is one frame: copies share it.
            copies: dict[tuple[int, int], set[tuple[int, int]]] = {}
            for _, arrival in arrivals:
                for hop in arrival["hops"]:
                    key = (hop["switch"], hop["egress_port"])
                    copies.setdefault(key, set()).add((hop["hop"], hop["left_us"]))
            assert all(len(frames) == 1 for frames in copies.values()), copies
        text = run(fabric, "--group", str(group), "--from", str(hosts[0]), "--timeout", "60")
        assert text.returncode == 0
        assert f"host {hosts[0]}" in text.stdout
    finally:
        fabric.delete(f"groups/{group}")


def test_what_is_not_there_is_refused(fabric: Fabric) -> None:
    """The choices are named."""
    unknown = run(fabric, "--from", "0", "--to", "999")
    assert unknown.returncode == 2
    assert "no host 999" in unknown.stderr
    group = run(fabric, "--group", "nobody")
    assert group.returncode == 2
    assert "nobody" in group.stderr
    route = run(fabric, "--from", "0", "--to", "1", "--route", "19")
    assert route.returncode == 1
    assert "its routes are 0 to" in route.stderr


def test_a_lost_branch_is_named(fabric: Fabric) -> None:
    """A member whose agent is dead is named while it is awaited, and at the end, with its way; the others came."""
    hosts = [host["id"] for host in fabric.get("topology")["hosts"]]
    dead = hosts[3]
    group = fabric.post("groups", {"scheme": "switch", "members": hosts[:4]})["id"]
    try:
        fabric.wait_group(group)
        fabric.kill_agent(dead)
        done = run(fabric, "--group", str(group), "--from", str(hosts[0]), "--timeout", "5")
        assert done.returncode == 1, (done.stdout, done.stderr)
        assert f"nothing came back from host {dead}; its way is s" in done.stdout
        assert "no answer yet from" in done.stderr
        assert f"host {dead}" in done.stderr
        for host in hosts[1:3]:
            assert f"nothing came back from host {host}" not in done.stdout
    finally:
        fabric.start_agent(dead)
        fabric.wait_ready()
        fabric.delete(f"groups/{group}")
