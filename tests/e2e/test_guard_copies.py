"""The edge guard on real switches: no worm of a host makes more copies than those that its plan has it send."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from guard_worms import drops, put_in, route_to, worm
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import transfer
from wormcast.wire import MAX_HOPS, MAX_ROUTE, Kind

MIB = 2**20
ATTACKER, VICTIM = 0, 6
MEMBERS = [0, 2, 4, 6]
IN_FORCE_SECONDS_MAX = 600.0
SENT_BPS = 2_000_000
FRAMES = 400
FRAME_BYTES = 1000

Branches = list[tuple[int, bytes]]


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    """The testbed, all links of which carry what the attack makes of 2 Mb/s."""
    return make_fabric("testbed", switch=switch, rate_mbps=100.0)


def encode(branches: Branches) -> bytes:
    """A list of branches, without the marker behind it."""
    return b"".join(bytes([port, len(below)]) + below for port, below in sorted(branches))


def visiting_again(fabric: Fabric, length_max: int) -> bytes:
    """A TREE route that goes to the switch of the victim and back again and again, as often as its bytes allow."""
    topology = fabric.options.topology
    at = {host["id"]: (host["switch"], host["port"]) for host in topology["hosts"]}
    (there, leaf) = at[VICTIM]
    ways = list(route_to(fabric, ATTACKER, VICTIM))
    assert len(ways) > 1, "they are at different switches"
    ends = {(link["a"], link["a_port"]): (link["b"], link["b_port"]) for link in topology["links"]}
    ends |= {end: start for start, end in ends.items()}
    here = at[ATTACKER][0]
    for port in ways[:-2]:
        here = ends[(here, port)][0]
    out = ways[-2]
    (found, back) = ends[(here, out)]
    assert found == there
    below = encode([(leaf, b"")])
    prefix = len(ways) - 2
    hops = prefix + 2
    while True:
        longer = encode([(leaf, b""), (back, encode([(out, below)]))])
        whole = 2 * prefix + 2 + len(longer) + 1
        if whole > length_max or hops + 2 > MAX_HOPS or len(longer) > MAX_ROUTE - 3:
            break
        below, hops = longer, hops + 2
    route = encode([(out, below)])
    for port in reversed(ways[:-2]):
        route = encode([(port, route)])
    return route + b"\xff"


def received_bytes(fabric: Fabric, host: int) -> int:
    path = f"/sys/class/net/h{host}-eth0/statistics/rx_bytes"
    return int(fabric.run(host, ["cat", path]).stdout)


def amplified(fabric: Fabric, frame: bytes, least: float = 0.0) -> float:
    """How many bytes come to the victim for each byte that the attacker sends, at 2 Mb/s. Waits until more than `least`
    have come."""
    before, deadline = received_bytes(fabric, VICTIM), time.monotonic() + IN_FORCE_SECONDS_MAX
    put_in(fabric, ATTACKER, frame, FRAMES, len(frame) * 8 / SENT_BPS)
    while True:
        time.sleep(1.0)
        got = (received_bytes(fabric, VICTIM) - before) / (FRAMES * len(frame))
        if got > least or time.monotonic() > deadline:
            return got


def forged(route: bytes) -> bytes:
    return worm(ATTACKER, Kind.TREE, route, bytes(FRAME_BYTES))


def refusals(fabric: Fabric, send: Callable[[], float]) -> tuple[float, Counter[str]]:
    """What the victim gets for each byte sent, and what guards refuse meanwhile."""
    before = drops(fabric)
    got = send()
    return got, drops(fabric) - before


def test_no_route_visits_a_host_again_and_again(fabric: Fabric) -> None:
    """Without the guard a route of 255 bytes comes to a host some 30 times. With it no worm makes more copies than the
    largest multicast of its host, and none goes back where it came from."""
    group = fabric.post("groups", {"scheme": "switch", "members": MEMBERS})["id"]
    try:
        fabric.wait_group(group)
        longest = forged(visiting_again(fabric, MAX_ROUTE))
        # BMv2 loses most of the copies in its queues.
        least = 20 if fabric.options.switch == "wormcast" else 2
        assert amplified(fabric, longest, least) > least, "the attack does not work"
        fabric.put("guard", {"on": True})
        wait_refused(fabric, longest)
        got, refused = refusals(fabric, lambda: amplified(fabric, longest))
        assert (got < 0.2, set(refused)) == (True, {"route_too_long"})
        # As long as the plan's: the next switch sees that it turns. To three members at three other switches.
        for most in (11, 13):
            route = visiting_again(fabric, most)
            assert len(route) in (11, most)
            got, refused = refusals(fabric, lambda route=route: amplified(fabric, forged(route)))
            assert (got < 0.2, set(refused)) == (True, {"route_refused"})
        own = fabric.get(f"hosts/{ATTACKER}")["port"]
        back = encode([(own, b""), (route_to(fabric, ATTACKER, VICTIM)[0], b"")]) + b"\xff"
        got, refused = refusals(fabric, lambda: amplified(fabric, forged(back)))
        assert (got < 0.2, set(refused)) == (True, {"route_refused"})
        # What the plan has is let in, and comes once.
        once = forged(visiting_again(fabric, 5))
        got, refused = refusals(fabric, lambda: amplified(fabric, once, 0.5))
        assert 0.5 < got < 1.2
        assert not refused
    finally:
        fabric.delete(f"groups/{group}")


def wait_refused(fabric: Fabric, frame: bytes) -> None:
    deadline = time.monotonic() + IN_FORCE_SECONDS_MAX
    before = drops(fabric)
    while not drops(fabric) - before:
        assert time.monotonic() < deadline
        put_in(fabric, ATTACKER, frame)
        time.sleep(0.3)


@pytest.mark.parametrize("switching", [None, "interrupt"])
def test_worms_that_go_by_the_root_turn_there(
    fabric: Fabric, switching: str | None, random_file: Callable[[int], Path]
) -> None:
    """Guard B of a group, and interrupted multicasts, have worms go up to the root and come down, by the same link too."""
    assert fabric.put("guard", {"on": True})["on"]
    size = 2 * MIB if fabric.options.switch == "wormcast" else MIB // 4
    parameters = {"guard": "B"} if switching is None else {}
    if switching is not None:
        fabric.put("switching", {"mode": "wormhole", "scheme": switching})
    try:
        before = drops(fabric)
        for source in (0, 5):
            receivers = [host for host in range(8) if host != source]
            result = transfer(
                fabric, "switch", random_file(size), source, receivers, parameters=parameters, seconds_max=600
            )
            assert result.intact
            assert not result.failed
        assert drops(fabric) - before == {}
    finally:
        fabric.put("switching", {"mode": "packet"})
