"""Frames that a link does not carry: found out beforehand, named, and counted where REST shows it."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from select import select
from subprocess import PIPE

import pytest
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.links import Link
from wormcast.mininet.options import Mtus, parse_mtus
from wormcast.mininet.transfer import Result, _Run, transfer
from wormcast_planner import MTU_MAX

SENDER = textwrap.dedent(
    """
    import socket, sys, time
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    for n in range(int(sys.argv[2])):
        s.sendto(bytes(int(sys.argv[1])), ("239.1.2.3", 5009))
        time.sleep(0.002)
    """
)
RECEIVER = textwrap.dedent(
    """
    import socket, struct, sys
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    s.bind(("239.1.2.3", 5009))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.1.2.3") + bytes(4))
    print("open", flush=True)
    print(len(s.recv(1 << 16)), flush=True)
    """
)
DATAGRAM_MAX = 65_507
"""Bytes of UDP in one IPv4 packet."""
FRAMES = 20
"""No more than BMv2's rings hold while it does not get to run."""


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("line:2", switch=switch, rate_mbps=20.0)


@pytest.fixture
def carried(fabric: Fabric) -> Iterator[None]:
    """A group of both hosts that carries the address."""
    made = fabric.post("groups", {"scheme": "switch", "members": [0, 1], "class_d": "239.1.2.3"})
    fabric.wait_group(made["id"])
    yield
    fabric.delete(f"groups/{made['id']}")


def between(fabric: Fabric) -> Link:
    return next(link for link in fabric.links if link.far_switch is not None)


def at_host(fabric: Fabric, host: int) -> Link:
    return next(link for link in fabric.links if link.host == host)


def port_drops(fabric: Fabric, switch: int, port: int) -> dict[str, int]:
    shown = fabric.get(f"switches/{switch}/counters")
    return next(p["drops"] for p in shown["ports"] if p["port"] == port)


def send(fabric: Fabric, length: int) -> None:
    sent = fabric.run(0, [sys.executable, "-c", SENDER, str(length), str(FRAMES)])
    assert sent.returncode == 0, sent.stderr


def moved(fabric: Fabric, switch: int, port: int, before: dict[str, int], causes: set[str]) -> dict[str, int]:
    """Which counters of a port moved, once those of `causes` have counted all frames."""
    deadline = time.monotonic() + 600
    while True:
        now = port_drops(fabric, switch, port)
        gone = {c: n - before.get(c, 0) for c, n in now.items() if n > before.get(c, 0)}
        if sum(n for c, n in gone.items() if c in causes) >= FRAMES or time.monotonic() > deadline:
            return gone
        time.sleep(0.2)


@pytest.fixture
def limited(fabric: Fabric) -> Iterator[Link]:
    """The link between the switches, for a time with the MTU of those of hosts."""
    link = between(fabric)
    assert fabric.get("status")["mtu_problems"] == []
    set_mtu(fabric, link, fabric.options.mtus.host)
    yield link
    set_mtu(fabric, link, fabric.options.mtus.fabric)
    assert fabric.get("status")["mtu_problems"] == []


def test_a_link_of_too_small_an_mtu_is_named(fabric: Fabric, limited: Link) -> None:
    problems = fabric.get("status")["mtu_problems"]
    named = f"port {limited.port} of switch 0 has an MTU of 1500"
    assert any(named in p and "need 1514 there" in p for p in problems), problems
    assert "wormcast_mtu_problems 2" in fabric.api.get("metrics").text


@pytest.mark.usefixtures("carried")
def test_what_a_link_of_too_small_an_mtu_drops_is_counted(fabric: Fabric, limited: Link) -> None:
    if fabric.options.switch != "wormcast":
        pytest.skip("BMv2 does not say which frames it cannot send")
    before = port_drops(fabric, 0, limited.port)
    send(fabric, 1472)
    # Which of them notices first is up to the kernel.
    causes = {"too_long", "send_failed", "kernel_send"}
    gone = moved(fabric, 0, limited.port, before, causes)
    assert sum(n for c, n in gone.items() if c in causes) == FRAMES, gone
    page = fabric.api.get("metrics").text
    assert f'wormcast_switch_port_drops_total{{switch="0",port="{limited.port}",cause="too_long"}}' in page


@pytest.mark.usefixtures("carried")
def test_what_is_too_long_for_a_host_is_counted_at_its_port(fabric: Fabric) -> None:
    link = at_host(fabric, 1)
    before = port_drops(fabric, link.switch, link.port)
    host = fabric.hosts[1]
    try:
        host.cmd(f"ip link set dev {link.far_interface} mtu 1000")
        send(fabric, 1400)
        gone = moved(fabric, link.switch, link.port, before, {"kernel_send"})
        assert gone.get("kernel_send") == FRAMES, gone
    finally:
        host.cmd(f"ip link set dev {link.far_interface} mtu {fabric.options.mtus.host}")


def test_what_the_program_drops_is_counted_by_reason(fabric: Fabric) -> None:
    """No group carries the address."""

    def unknown() -> int:
        drops = fabric.get("switches/0/counters")["drops"]
        return int(drops.get("class_d_unknown", 0))

    before = unknown()
    send(fabric, 100)
    deadline = time.monotonic() + 600
    while unknown() < before + FRAMES and time.monotonic() < deadline:
        time.sleep(0.2)
    assert unknown() == before + FRAMES


def test_jumbo_frames_when_asked_for(
    make_fabric: Callable[..., Fabric], switch: str, random_file: Callable[[int], object]
) -> None:
    fabric = make_fabric("line:2", switch=switch, rate_mbps=20.0, mtus=Mtus(9000, 9100))
    assert fabric.get("hosts/0")["mtu"] == 9000
    assert fabric.get("status")["mtu_problems"] == []
    result = transfer(fabric, "switch", random_file(1 << 20), 0, [1], seconds_max=600)  # type: ignore[arg-type]
    assert result.intact
    assert not result.failed
    # Fewer headers: with frames of 1,500 bytes they cost 4 % and more.
    assert result.source_bytes <= 1.02 * (1 << 20) + result.retransmissions * 9100 + 20_000


@pytest.mark.parametrize("mtu", [9_217, 16_384, 32_768, MTU_MAX])
def test_frames_as_long_as_veth_carries_them(
    make_fabric: Callable[..., Fabric], switch: str, random_file: Callable[[int], Path], mtu: int
) -> None:
    """Links have a rate: a frame is longer than what a link of that rate sends in a millisecond."""
    mtus = parse_mtus(str(mtu), None)
    fabric = make_fabric("line:2", switch=switch, rate_mbps=50.0, mtus=mtus)
    assert fabric.get("hosts/0")["mtu"] == mtu
    assert fabric.get("status")["mtu_problems"] == []
    file = random_file(2 << 20)
    for scheme in ("switch", "circuit"):
        average = frame_bytes(
            fabric,
            0,
            lambda: transfer(fabric, scheme, file, 0, [1], seconds_max=600),  # noqa: B023
        )
        # ACKs and reports are short.
        assert average > mtu / 4, (scheme, average)
    # The longest datagram there is: its packet is longer than the links, so it comes in parts.
    made = fabric.post("groups", {"scheme": "switch", "members": [0, 1], "class_d": "239.1.2.3"})
    fabric.wait_group(made["id"])
    receiver = fabric.popen(1, [sys.executable, "-c", RECEIVER, str(FRAMES)], stdout=PIPE, text=True)
    assert receiver.stdout is not None
    assert receiver.stdout.readline() == "open\n"
    length = min(mtu - 28, DATAGRAM_MAX)
    received, deadline = "", time.monotonic() + 600
    while not received and time.monotonic() < deadline:
        send(fabric, length)
        received = receiver.stdout.readline() if select([receiver.stdout], [], [], 2)[0] else ""
    receiver.wait()
    assert received == f"{length}\n"
    fabric.delete(f"groups/{made['id']}")


def test_long_frames_that_are_lost_are_sent_again(
    make_fabric: Callable[..., Fabric], random_file: Callable[[int], Path]
) -> None:
    fabric = make_fabric(
        "line:3",
        rate_mbps=None,
        mtus=parse_mtus(str(MTU_MAX), None),
        impair="loss=0.02,corrupt=0.01,reorder=0.02",
    )
    for scheme in ("switch", "circuit"):
        result = transfer(fabric, scheme, random_file(32 << 20), 0, [1, 2], seconds_max=600)
        assert result.intact
        assert not result.failed
        assert result.retransmissions > 0


def set_mtu(fabric: Fabric, link: Link, mtu: int) -> None:
    """At both ends of a link between switches, at the switch of a host's link."""
    for node, name in fabric._ends(link)[: 1 if link.host is not None else 2]:
        node.cmd(f"ip link set dev {name} mtu {mtu}")


def wait_mtu(fabric: Fabric, group: int, mtu: int | None) -> None:
    """Until the frames of a group are cut for links that carry so much."""
    deadline = time.monotonic() + 600
    while fabric.get(f"groups/{group}")["mtu"] != mtu:
        assert time.monotonic() < deadline
        # Our switch tells. BMv2 does not: there, whoever asks for the status makes the controller look.
        if fabric.options.switch == "bmv2":
            fabric.get("status")
        time.sleep(0.05)


def frame_bytes(fabric: Fabric, source: int, send: Callable[[], Result]) -> float:
    """Of a frame that a host sent during a transfer, on average."""
    before = fabric.counters()
    result = send()
    assert result.intact, result
    assert not result.failed
    sent = fabric.counters().since(before).into[at_host(fabric, source)]
    return sent.byte_count / sent.frame_count


@pytest.mark.parametrize("wide", [9_000, MTU_MAX])
def test_frames_are_as_long_as_the_links_of_a_group_carry(
    make_fabric: Callable[..., Fabric], switch: str, random_file: Callable[[int], Path], wide: int
) -> None:
    fabric = make_fabric("line:4", switch=switch, rate_mbps=20.0, mtus=parse_mtus(str(wide), None))
    limited = [at_host(fabric, 0), next(x for x in fabric.links if (x.switch, x.far_switch) == (2, 3))]
    kept = fabric.post("groups", {"scheme": "circuit", "members": [2, 3]})["id"]
    fabric.wait_group(kept)
    assert fabric.get(f"groups/{kept}")["mtu"] is None
    file = random_file(1 << 20)

    def over_kept() -> Result:
        return _Run(fabric, "circuit", kept, file, 2, [3], {}).go(240, None, None, 0.15, set())

    assert frame_bytes(fabric, 2, over_kept) > 4000
    for link in limited:
        set_mtu(fabric, link, 1500)
    wait_mtu(fabric, kept, 1500)
    host, between = limited
    problems = fabric.get("status")["mtu_problems"]
    assert any(
        f"s2 port {between.port} - s3 port {between.far_port} carries 1500 bytes" in p
        and f"others {wide}" in p
        for p in problems
    ), problems
    assert any(
        f"s0 port {host.port} - host 0 carries 1500 bytes (MTU 1500 at s0, {wide} at the host)" in p
        for p in problems
    ), problems
    told = [
        event["reason"] for event in fabric.get("events?after=0&follow=false")["events"] if "reason" in event
    ]
    assert set(problems) <= set(told)
    shown = fabric.run(1, ["wormcast", "status"]).stdout
    assert f"s2 port {between.port} - s3 port {between.far_port}" in " ".join(str(shown).split())
    # A group that is there goes on with shorter frames.
    fabric.wait_group(kept)
    assert frame_bytes(fabric, 2, over_kept) <= 1514
    for scheme in ("circuit", "switch", "table", "broadcast"):
        # Host 1 and host 2 are joined by links that carry large frames alone.
        for receivers in ([2], [0], [3], [0, 2, 3]):
            bytes_on_average = frame_bytes(
                fabric,
                1,
                lambda: transfer(fabric, scheme, file, 1, receivers, seconds_max=600),  # noqa: B023
            )
            assert (bytes_on_average > 4000) == (receivers == [2]), (scheme, receivers, bytes_on_average)
            assert receivers == [2] or bytes_on_average <= 1514
    assert fabric.get("hosts/1")["mtu"] == wide
    for link in limited:
        set_mtu(fabric, link, fabric.options.mtus.fabric)
    wait_mtu(fabric, kept, None)
    assert fabric.get("status")["mtu_problems"] == []
