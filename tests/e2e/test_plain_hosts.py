"""Unmodified IP multicast programs: plain sockets, hosts without an agent."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from wormcast.mininet.fabric import Fabric

RECEIVER = textwrap.dedent(
    """
    import json, socket, struct, sys
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("239.1.2.3", 5007))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.1.2.3") + socket.inet_aton(sys.argv[1]))
    s.settimeout(4)
    print("ready", flush=True)
    got = []
    try:
        while len(got) < 20:
            data, (address, _port) = s.recvfrom(2048)
            got.append([data.decode(), address])
    except TimeoutError:
        pass
    print(json.dumps(got))
    """
)
SENDER = textwrap.dedent(
    """
    import socket, time
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    for n in range(20):
        s.sendto(f"datagram {n}".encode(), ("239.1.2.3", 5007))
        time.sleep(0.02)
    """
)


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    """Hosts 6 and 7 have no agent; the controller is told where they hang."""
    fabric = make_fabric("testbed", switch=switch, rate_mbps=20.0, plain_hosts=frozenset({6, 7}))
    for host in fabric.options.topology["hosts"]:
        if host["id"] in (6, 7):
            fabric.post("hosts", {"id": host["id"], "switch": host["switch"], "port": host["port"]})
    return fabric


def listen(fabric: Fabric, host: int) -> subprocess.Popen[str]:
    address = fabric.hosts[host].IP()
    process = fabric.popen(
        host,
        [sys.executable, "-c", RECEIVER, address],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_datagrams_reach_members_and_no_one_else(fabric: Fabric) -> None:
    group = fabric.post(
        "groups", {"name": "video", "scheme": "switch", "members": [1, 3, 6, 7], "class_d": "239.1.2.3"}
    )
    try:
        members = {host: listen(fabric, host) for host in (3, 6)}
        outsider = listen(fabric, 5)
        time.sleep(1.0)
        sent = fabric.run(7, [sys.executable, "-c", SENDER])
        assert sent.returncode == 0, sent.stderr
        want = [[f"datagram {n}", fabric.hosts[7].IP()] for n in range(20)]
        for host, process in members.items():
            out, _ = process.communicate(timeout=600)
            assert json.loads(out) == want, f"at host {host}"
        out, _ = outsider.communicate(timeout=600)
        assert json.loads(out) == []
    finally:
        fabric.delete(f"groups/{group['id']}")


LENGTHS = [*range(1440, 1477), 2960, 2961, 8000, 65000]
"""Payloads about the longest packet that is not cut up (1,472), and some that are."""

LONG_RECEIVER = textwrap.dedent(
    """
    import hashlib, json, socket, sys
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    s.bind(("239.1.2.3", 5008))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.1.2.3") + socket.inet_aton(sys.argv[1]))
    s.settimeout(20)
    print("ready", flush=True)
    got = []
    try:
        while len(got) < int(sys.argv[2]):
            data = s.recv(1 << 17)
            got.append([len(data), hashlib.sha256(data).hexdigest()])
    except TimeoutError:
        pass
    print(json.dumps(got))
    """
)
LONG_SENDER = textwrap.dedent(
    """
    import hashlib, json, random, socket, sys, time
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    sent = []
    for length in json.loads(sys.argv[1]):
        data = random.Random(length).randbytes(length)
        s.sendto(data, ("239.1.2.3", 5008))
        sent.append([length, hashlib.sha256(data).hexdigest()])
        time.sleep(0.05)
    print(json.dumps(sent))
    """
)


def test_packets_of_the_hosts_full_mtu_arrive_whole(fabric: Fabric) -> None:
    """Worms are longer than the packets they carry: the fabric's links take that."""
    group = fabric.post("groups", {"scheme": "switch", "members": [1, 3, 6, 7], "class_d": "239.1.2.3"})
    try:
        members = {}
        for host in (1, 3, 6):
            members[host] = fabric.popen(
                host,
                [sys.executable, "-c", LONG_RECEIVER, fabric.hosts[host].IP(), str(len(LENGTHS))],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert members[host].stdout.readline() == "ready\n"
        sent = fabric.run(7, [sys.executable, "-c", LONG_SENDER, json.dumps(LENGTHS)])
        assert sent.returncode == 0, sent.stderr
        for host, process in members.items():
            out, _ = process.communicate(timeout=600)
            assert json.loads(out) == json.loads(sent.stdout), f"at host {host}"
    finally:
        fabric.delete(f"groups/{group['id']}")


def test_iperf_as_it_is(fabric: Fabric) -> None:
    """Without options it sends datagrams of 1,470 bytes, with a TTL of 1."""
    if shutil.which("iperf") is None:
        pytest.skip("iperf is not installed")
    group = fabric.post("groups", {"scheme": "switch", "members": [2, 6, 7], "class_d": "239.1.1.1"})
    servers = [
        fabric.popen(
            host, ["iperf", "-s", "-u", "-B", "239.1.1.1"], stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for host in (2, 6)
    ]
    try:
        for server in servers:
            wait_for_line(server, "Server listening")
        sent = fabric.run(7, ["iperf", "-u", "-c", "239.1.1.1", "-b", "1m", "-t", "2"])
        assert sent.returncode == 0, sent.stderr
        total = int(re.search(r"Sent (\d+) datagrams", sent.stdout).group(1))  # type: ignore[union-attr]
        assert total > 100
        for server in servers:
            line = wait_for_line(server, r"\d+/ *\d+ +\([\d.]+%\)")
            lost, of = re.search(r"(\d+)/ *(\d+) +\(", line).groups()  # type: ignore[union-attr]
            # Its last datagram is not in the report; those before it are not lost.
            assert int(lost) == 0
            assert int(of) >= total - 2
    finally:
        for server in servers:
            server.kill()
            server.wait()
        fabric.delete(f"groups/{group['id']}")


def wait_for_line(process: subprocess.Popen[str], pattern: str) -> str:
    """The first line with the pattern; iperf ends no line late."""
    assert process.stdout is not None
    for line in process.stdout:
        if re.search(pattern, line):
            return line
    raise AssertionError(f"no {pattern!r}")


def test_udpcast_as_it_is(fabric: Fabric, tmp_path: Path) -> None:
    """One way (--async), since the fabric carries IP multicast and no IP unicast."""
    if shutil.which("udp-sender") is None:
        pytest.skip("udpcast is not installed")
    group = fabric.post("groups", {"scheme": "switch", "members": [2, 6, 7], "class_d": "239.1.1.9"})
    file = tmp_path / "file"
    file.write_bytes(os.urandom(300_000))
    address = ["--mcast-rdv-address", "239.1.1.9", "--nokbd"]
    sender = [
        "udp-sender",
        "--interface",
        "h7-eth0",
        *address,
        "--mcast-data-address",
        "239.1.1.9",
        "--ttl",
        "8",
    ]
    receivers = {
        host: fabric.popen(
            host,
            [
                "udp-receiver",
                "--interface",
                f"h{host}-eth0",
                *address,
                "--ttl",
                "8",
                "--file",
                f"{file}.{host}",
            ],
            stderr=subprocess.PIPE,
            text=True,
            stdout=subprocess.DEVNULL,
        )
        for host in (2, 6)
    }
    try:
        time.sleep(1.0)
        sent = fabric.run(
            7,
            [*sender, "--async", "--autostart", "3", "--max-bitrate", "4m", "--file", str(file)],
        )
        assert sent.returncode == 0, sent.stderr
        for host, process in receivers.items():
            process.communicate(timeout=600)
            assert Path(f"{file}.{host}").read_bytes() == file.read_bytes(), f"at host {host}"
    finally:
        for process in receivers.values():
            process.kill()
            process.wait()
        fabric.delete(f"groups/{group['id']}")
