"""Unmodified IP multicast programs: plain sockets, hosts without an agent.

IP multicast promises no datagram: a switch that a busy machine keeps waiting may lose some (BMv2's rings hold
about 30 frames). So these tests send again until all is there, and judge what has come.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from wormcast.mininet.fabric import Fabric

RECEIVER = textwrap.dedent(
    """
    import hashlib, json, socket, sys
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    s.bind(("239.1.2.3", 5007))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.1.2.3") + socket.inet_aton(sys.argv[1]))
    print("ready", flush=True)
    while True:
        data, (address, _port) = s.recvfrom(1 << 17)
        print(json.dumps([len(data), hashlib.sha256(data).hexdigest(), address]), flush=True)
    """
)
SENDER = textwrap.dedent(
    """
    import itertools, json, random, socket, sys, time
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    for turn in itertools.count():
        for length in json.loads(sys.argv[1]):
            s.sendto(random.Random(f"{turn} {length}").randbytes(length), ("239.1.2.3", 5007))
            time.sleep(0.05)
    """
)
LENGTHS = [*range(20, 40), *range(1440, 1477), 2960, 2961, 8000, 65000]
"""Of datagrams; about the longest that is not cut up (1,472), and some that are."""
TURNS_MAX = 100
"""As many a receiver may miss at a stretch."""
ATTEMPTS_MAX = 10
ATTEMPT_SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    """Hosts 6 and 7 have no agent; the controller is told where they hang."""
    fabric = make_fabric("testbed", switch=switch, rate_mbps=20.0, plain_hosts=frozenset({6, 7}))
    for host in fabric.options.topology["hosts"]:
        if host["id"] in (6, 7):
            fabric.post("hosts", {"id": host["id"], "switch": host["switch"], "port": host["port"]})
    return fabric


@contextmanager
def started(fabric: Fabric, host: int, *argv: str) -> Iterator[subprocess.Popen[str]]:
    """A program at a host, until the block ends."""
    process = fabric.popen(
        host, list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def listening(fabric: Fabric, host: int) -> Iterator[subprocess.Popen[str]]:
    with started(fabric, host, sys.executable, "-c", RECEIVER, fabric.hosts[host].IP()) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def check_all_arrive(heard: Iterable[str], source: str, at: str) -> None:
    """Reads what a member heard until it has a datagram of each length.

    Each is whole, of the sender and behind the one before it, so that none comes twice.
    """
    missing, last = set(LENGTHS), (0, -1)
    for line in heard:
        length, digest, address = json.loads(line)
        assert address == source, at
        place = place_of(length, digest, last[0])
        assert place > last, f"{at}: datagram {place} behind {last}"
        last = place
        missing.discard(length)
        if not missing:
            return
    raise AssertionError(f"{at}: no more comes, and of these lengths nothing has: {sorted(missing)}")


def place_of(length: int, digest: str, least: int) -> tuple[int, int]:
    """The turn, that one at least, and the place in it of the datagram with the digest."""
    for turn in range(least, least + TURNS_MAX):
        if hashlib.sha256(datagram(turn, length)).hexdigest() == digest:
            return turn, LENGTHS.index(length)
    raise AssertionError(f"no datagram of {length} bytes was sent that has digest {digest}")


def datagram(turn: int, length: int) -> bytes:
    return random.Random(f"{turn} {length}").randbytes(length)


def test_datagrams_of_all_lengths_reach_members_whole_and_no_one_else(fabric: Fabric) -> None:
    """Worms are longer than the packets they carry: the fabric's links take that."""
    group = fabric.post(
        "groups", {"name": "video", "scheme": "switch", "members": [1, 3, 6, 7], "class_d": "239.1.2.3"}
    )
    try:
        with ExitStack() as listeners:
            members = {host: listeners.enter_context(listening(fabric, host)) for host in (1, 3, 6)}
            outsider = listeners.enter_context(listening(fabric, 5))
            with started(fabric, 7, sys.executable, "-c", SENDER, json.dumps(LENGTHS)):
                for host, process in members.items():
                    assert process.stdout is not None
                    check_all_arrive(process.stdout, fabric.hosts[7].IP(), f"at host {host}")
            outsider.kill()
            assert outsider.communicate()[0] == ""
    finally:
        fabric.delete(f"groups/{group['id']}")


def test_iperf_as_it_is(fabric: Fabric) -> None:
    """Without options it sends datagrams of 1,470 bytes, with a TTL of 1."""
    if shutil.which("iperf") is None:
        pytest.skip("iperf is not installed")
    group = fabric.post("groups", {"scheme": "switch", "members": [2, 6, 7], "class_d": "239.1.1.1"})
    try:
        again_until(lambda: iperf_loses_none(fabric))
    finally:
        fabric.delete(f"groups/{group['id']}")


def again_until(well: Callable[[], bool]) -> None:
    for _attempt in range(ATTEMPTS_MAX):
        if well():
            return
    raise AssertionError(f"no attempt of {ATTEMPTS_MAX} went well")


def iperf_loses_none(fabric: Fabric) -> bool:
    with ExitStack() as servers:
        heard = []
        for host in (2, 6):
            server = servers.enter_context(started(fabric, host, "iperf", "-s", "-u", "-B", "239.1.1.1"))
            line_with(server, "Server listening")
            heard.append(server)
        sent = fabric.run(7, ["iperf", "-u", "-c", "239.1.1.1", "-b", "1m", "-t", "2"])
        assert sent.returncode == 0, sent.stderr
        total = int(re.search(r"Sent (\d+) datagrams", sent.stdout).group(1))  # type: ignore[union-attr]
        assert total > 100
        reports = [line_with(server, r"\d+/ *\d+ +\([\d.]+%\)") for server in heard]
    counts = [re.search(r"(\d+)/ *(\d+) +\(", line) for line in reports]
    # Its last datagram is not in the report.
    return all(found and int(found[1]) == 0 and int(found[2]) >= total - 2 for found in counts)


def line_with(process: subprocess.Popen[str], pattern: str) -> str:
    """The first line with the pattern, "" if none comes in time."""
    assert process.stdout is not None
    too_late = threading.Timer(ATTEMPT_SECONDS_MAX, process.kill)
    too_late.start()
    try:
        return next((line for line in process.stdout if re.search(pattern, line)), "")
    finally:
        too_late.cancel()


def test_udpcast_as_it_is(fabric: Fabric, tmp_path: Path) -> None:
    """One way (--async), since the fabric carries IP multicast and no IP unicast."""
    if shutil.which("udp-sender") is None:
        pytest.skip("udpcast is not installed")
    group = fabric.post("groups", {"scheme": "switch", "members": [2, 6, 7], "class_d": "239.1.1.9"})
    file = tmp_path / "file"
    file.write_bytes(os.urandom(300_000))
    try:
        again_until(lambda: udpcast_copies(fabric, file))
    finally:
        fabric.delete(f"groups/{group['id']}")


def udpcast_copies(fabric: Fabric, file: Path) -> bool:
    def arguments(host: int) -> list[str]:
        return ["--interface", f"h{host}-eth0", "--mcast-rdv-address", "239.1.1.9", "--nokbd", "--ttl", "8"]

    with ExitStack() as receivers:
        copies = {}
        for host in (2, 6):
            copy = Path(f"{file}.{host}")
            copy.unlink(missing_ok=True)
            argv = ["udp-receiver", *arguments(host), "--file", str(copy)]
            copies[copy] = receivers.enter_context(started(fabric, host, *argv))
            line_with(copies[copy], "UDP receiver for")
        sender = ["udp-sender", *arguments(7), "--mcast-data-address", "239.1.1.9", "--file", str(file)]
        sent = fabric.run(7, [*sender, "--async", "--autostart", "3", "--max-bitrate", "4m"])
        assert sent.returncode == 0, sent.stderr
        for process in copies.values():
            line_with(process, "no line has this")  # until it has ended
        return all(copy.exists() and copy.read_bytes() == file.read_bytes() for copy in copies)
