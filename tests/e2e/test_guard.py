"""The edge guard on real switches: what no plan has a host send is dropped and counted, all else goes on."""

from __future__ import annotations

import json
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from guard_worms import await_read, drops, put_in, refused, route_to, worm
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import transfer
from wormcast.network.groups import SCHEMES_ANYWHERE
from wormcast.wire import Kind

MIB = 2**20
PLAIN = 7
FORGER = 5
MEMBERS = [0, 1, 2, 3]
IN_FORCE_SECONDS_MAX = 600.0
RATE_BPS = 1_000_000
FLOOD_FRAMES = 1500
FLOOD_GAP_S = 0.001
FLOODS_MAX = 20
LEAST = FLOOD_FRAMES // 8
"""Refused frames of each kind that a flood must have, whatever the machine does beside it."""
DATAGRAM = textwrap.dedent(
    """
    import socket, sys
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    for n in range(int(sys.argv[1])):
        s.sendto(b"datagram", ("239.1.2.3", 5007))
    """
)


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    """The testbed with its guard on; host 7 has no agent."""
    rate = 50.0 if switch == "wormcast" else 5.0
    fabric = make_fabric("testbed", switch=switch, rate_mbps=rate, plain_hosts=frozenset({PLAIN}))
    (plain,) = (host for host in fabric.options.topology["hosts"] if host["id"] == PLAIN)
    fabric.post("hosts", {"id": PLAIN, "switch": plain["switch"], "port": plain["port"]})
    assert fabric.put("guard", {"on": True})["on"]
    # In force where the first forged worm is counted.
    deadline = time.monotonic() + IN_FORCE_SECONDS_MAX
    while not refused(fabric, lambda: put_in(fabric, FORGER, worm(FORGER, Kind.CONTROL, b"\0"))):
        assert time.monotonic() < deadline
    return fabric


def await_refused(fabric: Fabric, frame: bytes, expected: dict[str, int]) -> None:
    """Until guards refuse this much of five frames: switches learn of a setting one after another."""
    deadline = time.monotonic() + IN_FORCE_SECONDS_MAX
    while (found := refused(fabric, lambda: put_in(fabric, FORGER, frame, 5))) != expected:
        assert time.monotonic() < deadline, found


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a forged source", "source_refused"),
        ("the source of plain hosts", "source_refused"),
        ("BROADCAST of a host without such a group", "kind_refused"),
        ("CONTROL", "kind_refused"),
        ("worms of a plain host", "kind_refused"),
        ("a route that is too long", "route_too_long"),
        ("a route back", "route_refused"),
        ("a route round in the switch", "route_refused"),
    ],
)
def test_what_no_plan_gives_a_host_is_dropped_and_counted(fabric: Fabric, name: str, reason: str) -> None:
    route = route_to(fabric, FORGER, 0)
    own_port = fabric.get(f"hosts/{FORGER}")["port"]
    frames = {
        "a forged source": (FORGER, worm(3, Kind.UNICAST, route)),
        "the source of plain hosts": (FORGER, worm(0xFFFF, Kind.UNICAST, route)),
        "BROADCAST of a host without such a group": (FORGER, worm(FORGER, Kind.BROADCAST, b"")),
        "CONTROL": (FORGER, worm(FORGER, Kind.CONTROL, route)),
        "worms of a plain host": (PLAIN, worm(PLAIN, Kind.UNICAST, route)),
        "a route that is too long": (FORGER, worm(FORGER, Kind.UNICAST, route + bytes(60))),
        "a route back": (FORGER, worm(FORGER, Kind.UNICAST, bytes([own_port]) + route)),
        "a route round in the switch": (FORGER, worm(FORGER, Kind.UNICAST, b"\xfe" + route)),
    }
    host, frame = frames[name]
    assert refused(fabric, lambda: put_in(fabric, host, frame, 5)) == {reason: 5}
    # The same worm as it should be goes on; an agent drops what is no PDU.
    assert refused(fabric, lambda: put_in(fabric, FORGER, worm(FORGER, Kind.UNICAST, route), 5)) == {}


def test_members_alone_send_to_closed_groups(fabric: Fabric) -> None:
    groups = [
        fabric.post("groups", {"scheme": "table", "members": MEMBERS})["id"],
        fabric.post("groups", {"scheme": "table", "members": [4, FORGER]})["id"],
        fabric.post("groups", {"scheme": "switch", "members": [1, 6], "class_d": "239.1.2.3"})["id"],
    ]
    try:
        for group in groups[:2]:
            fabric.wait_group(group)
        number = fabric.get(f"groups/{groups[0]}")["number"]
        frame = worm(FORGER, Kind.GROUP, number.to_bytes(2, "big"))
        await_refused(fabric, frame, {"group_refused": 5})

        def say() -> None:
            assert fabric.run(PLAIN, [sys.executable, "-c", DATAGRAM, "5"]).returncode == 0
            await_read(fabric, PLAIN)

        assert refused(fabric, say) == {}, "a group with an address is open"
        fabric.put("guard", {"closed": [groups[2]]})
        deadline = time.monotonic() + IN_FORCE_SECONDS_MAX
        while (found := refused(fabric, say)) != {"group_refused": 5}:
            assert time.monotonic() < deadline, found
        fabric.put("guard", {"closed": []})
        assert refused(fabric, say) == {}
    finally:
        for group in groups:
            fabric.delete(f"groups/{group}")


def test_a_flood_ends_at_its_switch_and_others_go_on(
    fabric: Fabric, random_file: Callable[[int], Path]
) -> None:
    """A host sends many times what it may, and forged worms, while others have a file."""
    fabric.put(f"hosts/{FORGER}/rate", {"bps": RATE_BPS})
    route = route_to(fabric, FORGER, 4)
    frames = {
        "rate_exceeded": worm(FORGER, Kind.UNICAST, route),
        "source_refused": worm(1, Kind.UNICAST, route),
    }
    sent: Counter[str] = Counter()
    before = drops(fabric)

    def flood() -> None:
        """A busy machine sends slower, and rings of BMv2 hold 32 frames: again where too few were refused."""
        for reason, frame in frames.items():
            while sent[reason] < FLOODS_MAX * FLOOD_FRAMES and (drops(fabric) - before)[reason] <= LEAST:
                put_in(fabric, FORGER, frame, FLOOD_FRAMES, FLOOD_GAP_S)
                sent[reason] += FLOOD_FRAMES

    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        size = 2 * MIB if fabric.options.switch == "wormcast" else MIB // 4
        result = transfer(fabric, "switch", random_file(size), 0, [1, 2, 3], seconds_max=600)
        assert result.intact
        assert not result.failed
    finally:
        flooding.join()
        assert fabric.put(f"hosts/{FORGER}/rate", {"bps": None})["rate_bps"] is None
    found = drops(fabric) - before
    assert set(found) == set(frames)
    assert LEAST < found["source_refused"] <= sent["source_refused"]
    if fabric.options.switch == "wormcast":  # which reads all that comes
        assert found["source_refused"] > sent["source_refused"] / 2
    # A bucket of 640 KiB, and what came in beside it in time.
    assert LEAST < found["rate_exceeded"] < sent["rate_exceeded"]
    assert refused(fabric, lambda: put_in(fabric, FORGER, frames["rate_exceeded"], 300)) == {}, (
        "it has no rate any more"
    )


@pytest.mark.parametrize("scheme", SCHEMES_ANYWHERE)
def test_every_scheme_works_through_guards(
    fabric: Fabric, scheme: str, random_file: Callable[[int], Path]
) -> None:
    size = MIB if fabric.options.switch == "wormcast" else MIB // 4
    before = drops(fabric)
    result = transfer(fabric, scheme, random_file(size), 0, range(1, PLAIN), seconds_max=600)
    assert result.intact
    assert not result.failed
    assert drops(fabric) - before == {}


def test_hosts_re_inject_worms_of_others_through_guards(
    fabric: Fabric, random_file: Callable[[int], Path]
) -> None:
    """To routes over in-transit hosts and back: no worm is refused on the way."""
    before = drops(fabric)
    for algorithm in ("rrmit", "osud"):
        fabric.put("routing", {"algorithm": algorithm})
        result = transfer(fabric, "repeat", random_file(MIB // 4), 0, range(1, PLAIN), seconds_max=600)
        assert result.intact
    assert drops(fabric) - before == {}


def test_traces_go_through_guards(fabric: Fabric) -> None:
    """Probes go in worms that hosts may send: along routes, and where switches copy."""
    group = fabric.post("groups", {"scheme": "table", "members": MEMBERS})["id"]
    try:
        fabric.wait_group(group)
        before = drops(fabric)
        for ways in (["--from", "0", "--to", "6"], ["--group", str(group)]):
            argv = ["wormcast", "trace", *ways, "--json", "--timeout", "60"]
            traced = fabric.run(0, argv, seconds_max=600)
            assert traced.returncode == 0, (traced.stdout, traced.stderr)
            found = json.loads(traced.stdout)
            assert found["complete"]
            assert all(way["arrived"] for way in found["ways"])
        assert drops(fabric) - before == {}
    finally:
        fabric.delete(f"groups/{group}")


def test_a_fabric_without_guard_lets_everything_in(fabric: Fabric) -> None:
    """Last: the guard goes off."""
    fabric.put("guard", {"on": False})
    await_refused(fabric, worm(3, Kind.UNICAST, route_to(fabric, FORGER, 0)), {})
