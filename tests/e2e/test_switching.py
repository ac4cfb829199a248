"""A whole fabric in wormhole mode: files reach groups, agents send trains, the mode changes at run time, and agents obey
STOP."""

from __future__ import annotations

import hashlib
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import transfer
from wormcast.wire import CONTROL_STOP, ETHERTYPE_WORM, NEXT_CONTROL, WORM_MAC, WORM_VERSION, Flag, Kind

pytestmark = pytest.mark.timeout(3600)
MIB = 2**20
RATES_MBPS = {"wormcast": 50.0, "bmv2": 4.0}
SIZES = {"wormcast": 2 * MIB, "bmv2": MIB // 2}
"""Bytes of a file."""
HOSTS = range(8)
SCHEMES = ["tree", "switch"]
MODES = [{"mode": "wormhole", "scheme": scheme} for scheme in ("plain", "flush", "interrupt")]
STOP_US, STOP_EVERY_S = 1_000_000, 0.005
"""Without a gap, however late this process runs."""
SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20
"""Of the kernel; Python has no names for them."""
SECONDS_MAX = 1200.0
"""Against hanging for ever."""


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    """The testbed, in wormhole mode from the start."""
    return make_fabric("testbed", switch=switch, rate_mbps=RATES_MBPS[switch], switching="wormhole")


@pytest.fixture
def size(switch: str) -> int:
    return SIZES[switch]


def trains(fabric: Fabric) -> dict[str, int]:
    """What happened to worms in wormhole mode, all switches together."""
    total: dict[str, int] = {}
    for switch in fabric.options.topology["switches"]:
        for event, count in fabric.get(f"switches/{switch['id']}/counters")["trains"].items():
            total[event] = total.get(event, 0) + count
    return total


def settle(fabric: Fabric) -> None:
    """Waits until agents send trains, or switches are in packet mode."""
    until = time.monotonic() + SECONDS_MAX
    while not fabric.get("switching")["settled"]:
        assert time.monotonic() < until
        time.sleep(0.05)


def agents(fabric: Fabric, name: str) -> int:
    """A counter of all agents."""
    statuses = [fabric.agent_status(host) for host in HOSTS]
    return sum(status["counters"][name] for status in statuses if status is not None)


def disorder(fabric: Fabric) -> tuple[int, int]:
    """Multicasts out of the order of the root, and turns and tails that starved switches lost."""
    found = trains(fabric)
    return agents(fabric, "trains.out_of_order"), found.get("turn_lost", 0) + found.get("tail_lost", 0)


def is_in_order(fabric: Fabric, before: tuple[int, int]) -> bool:
    """Whether multicasts came in the order of the root since; where turns or tails were lost, nobody says so, nor of BMv2:
    on starved processors some came out of order there that were whole."""
    (was, had_lost), (now, lost) = before, disorder(fabric)
    return now == was or lost > had_lost or fabric.options.switch == "bmv2"


def refused(fabric: Fabric) -> int:
    """Frames of trains that switches dropped because they were not in wormhole mode."""
    switches = [switch["id"] for switch in fabric.options.topology["switches"]]
    drops = [fabric.get(f"switches/{switch}/counters")["drops"] for switch in switches]
    return sum(by_reason.get("train_refused", 0) for by_reason in drops)


def test_the_mode_of_the_start_is_in_force(fabric: Fabric) -> None:
    value = fabric.get("switching")
    assert (value["mode"], value["scheme"]) == ("wormhole", "plain")
    settle(fabric)
    shown = fabric.run(0, ["wormcast", "switching", "show"])
    sent = "agents send: worms of one frame and trains of up to 8 frames\n"
    assert shown.stdout.startswith(f"switching: wormhole\n{sent}"), shown


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode["scheme"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_file_reaches_a_group(
    fabric: Fabric, mode: dict[str, str], scheme: str, random_file: Callable[[int], Path], size: int
) -> None:
    fabric.put("switching", mode)
    before = trains(fabric).get("held", 0)
    result = transfer(fabric, scheme, random_file(size), 0, HOSTS[1:], seconds_max=SECONDS_MAX)
    assert result.intact
    assert not result.failed
    found = trains(fabric)
    print(f"{scheme}, {mode['scheme']}: {result.goodput_mbps:.1f} Mb/s, {found}")
    # A worm of one frame that goes one way finds its output free; one that branches claims them one by one.
    assert found.get("held", 0) > before or scheme == "tree"


@pytest.mark.parametrize("scheme", ["circuit", "switch"])
def test_agents_send_trains_while_switches_carry_them(
    fabric: Fabric, scheme: str, random_file: Callable[[int], Path], size: int
) -> None:
    numbered = []
    order = disorder(fabric)
    for mode in (MODES[0], {"mode": "packet"}, *MODES[1:]):
        fabric.put("switching", mode)
        settle(fabric)
        before, dropped = agents(fabric, "trains.frames"), refused(fabric)
        numbers = agents(fabric, "trains.numbered")
        until = time.monotonic() + SECONDS_MAX
        # Agents join what is ready at a time: of a file on a slow machine that may be few frames.
        enough = False
        while not enough:
            assert time.monotonic() < until
            result = transfer(fabric, scheme, random_file(size), 0, HOSTS[1:], seconds_max=SECONDS_MAX)
            assert result.intact
            assert not result.failed
            frames = agents(fabric, "trains.frames") - before
            print(f"{scheme}, {mode}: {result.goodput_mbps:.1f} Mb/s, {frames} frames in trains")
            enough = frames > 100 or mode["mode"] == "packet"
        assert frames == 0 or mode["mode"] == "wormhole"
        numbered.append(agents(fabric, "trains.numbered") - numbers)
        assert refused(fabric) == dropped
    assert agents(fabric, "drops.train_headless") == 0
    # The root numbers multicasts where they are interrupted, and there alone.
    assert numbered[:3] == [0, 0, 0]
    assert numbered[3] > 100 or scheme == "circuit"
    assert is_in_order(fabric, order)


@pytest.mark.parametrize(("scheme", "mode"), [("tree", MODES[1]), ("switch", MODES[1]), ("switch", MODES[2])])
def test_two_members_send_to_one_group_at_a_time(
    fabric: Fabric,
    scheme: str,
    mode: dict[str, str],
    random_file: Callable[[int], Path],
    size: int,
    tmp_path: Path,
) -> None:
    fabric.put("switching", mode)
    settle(fabric)
    before, order = agents(fabric, "trains.numbered"), disorder(fabric)
    group = str(fabric.post("groups", {"scheme": scheme, "members": list(HOSTS)})["id"])
    fabric.wait_group(int(group))
    senders = (0, 5)
    files = {host: random_file(size // 2).rename(tmp_path / f"of-h{host}.bin") for host in senders}
    receivers: dict[int, subprocess.Popen[Any]] = {}
    try:
        for host in HOSTS:
            (tmp_path / f"h{host}").mkdir()
            count = "1" if host in senders else "2"
            argv = [
                "wormcast",
                "recv",
                "--group",
                group,
                "--output",
                str(tmp_path / f"h{host}"),
                "--count",
                count,
            ]
            receivers[host] = fabric.popen(host, argv)
        wait_for_receivers(fabric, [(host, int(group)) for host in HOSTS])
        sending = [
            fabric.popen(host, ["wormcast", "send", str(file), "--group", group])
            for host, file in files.items()
        ]
        for process in [*sending, *receivers.values()]:
            assert process.wait(SECONDS_MAX) == 0
        for host in HOSTS:
            wanted = {digest(file) for sender, file in files.items() if sender != host}
            assert {digest(file) for file in (tmp_path / f"h{host}").iterdir()} == wanted
        found = {
            name: agents(fabric, f"trains.{name}")
            for name in ("numbered", "resumed", "broken", "out_of_order")
        }
        print(f"{scheme}, {mode}: {found}, switches {trains(fabric)}")
        assert (found["numbered"] > before) == (mode == MODES[2])
        assert is_in_order(fabric, order)
    finally:
        for process in receivers.values():
            process.kill()
        fabric.delete(f"groups/{group}")


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_mode_changes_in_the_middle_of_a_file(
    fabric: Fabric, random_file: Callable[[int], Path], size: int
) -> None:
    fabric.put("switching", {"mode": "packet"})
    settle(fabric)
    before = trains(fabric).get("held", 0)
    assert transfer(fabric, "switch", random_file(MIB), 0, HOSTS[1:], seconds_max=SECONDS_MAX).intact
    assert trains(fabric).get("held", 0) == before, "frames wait in packet mode"

    def change() -> None:
        for mode in (*MODES, {"mode": "packet"}, MODES[0]):
            fabric.put("switching", mode)

    result = transfer(
        fabric, "switch", random_file(4 * size), 0, HOSTS[1:], seconds_max=SECONDS_MAX, midway=change
    )
    assert result.intact
    assert not result.failed
    assert trains(fabric).get("held", 0) > before


def stop() -> bytes:
    """A STOP as the first switch says it."""
    control = struct.pack(">BBHHI", CONTROL_STOP, 0, 0, 0, STOP_US)

    def header(checksum: int) -> bytes:
        first, flags = WORM_VERSION << 4 | Kind.CONTROL, Flag.HEAD | Flag.TAIL
        return struct.pack(">BBBBHHHH", first, flags, 0, 1, 0, 0, NEXT_CONTROL, checksum)

    total = sum(struct.unpack(">11H", header(0) + control))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    ethernet = WORM_MAC.to_bytes(6, "big") + bytes([2, 0, 0, 0, 0, 1]) + ETHERTYPE_WORM.to_bytes(2, "big")
    return (ethernet + header(checksum) + control).ljust(60, b"\0")


@pytest.mark.parametrize("stopped", [0, 3], ids=["sender", "receiver"])
def test_a_neighbour_that_says_stop_without_end_delays_and_ends_nothing(
    fabric: Fabric, stopped: int, random_file: Callable[[int], Path]
) -> None:
    (place,) = (host for host in fabric.options.topology["hosts"] if host["id"] == stopped)
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    # For the host alone: what else this end sends, BMv2 takes as if the host had sent it.
    link.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    link.bind((f"s{place['switch']}-p{place['port']}", 0))
    over = threading.Event()

    def say() -> None:
        while not over.wait(STOP_EVERY_S):
            link.send(stop())

    def counters() -> dict[str, int]:
        status = fabric.agent_status(stopped)
        assert status is not None
        found: dict[str, int] = status["counters"]
        return found

    before = counters()
    saying = threading.Thread(target=say)
    saying.start()
    try:
        result = transfer(fabric, "switch", random_file(4_000), 0, [1, 2, 3], seconds_max=SECONDS_MAX)
    finally:
        over.set()
        saying.join()
        link.close()
    assert result.intact
    assert not result.failed
    after = counters()
    print(f"{result.seconds:.1f} s, {[(n, after[n] - before[n]) for n in after if n.startswith('flow.')]}")
    assert after["flow.stops"] > before["flow.stops"]
    assert after["flow.overdue"] > before["flow.overdue"], "it was not held"
    assert after["flow.stopped_us"] > before["flow.stopped_us"]
    assert after["drops.signal_refused"] == before["drops.signal_refused"]
    # Nothing is left of it.
    assert transfer(fabric, "switch", random_file(MIB), 0, [1, 2, 3], seconds_max=SECONDS_MAX).intact
