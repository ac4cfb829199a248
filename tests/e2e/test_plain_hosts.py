"""Unmodified IP multicast programs: plain sockets, hosts without an agent."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable

import pytest
from fabric import Fabric

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
            out, _ = process.communicate(timeout=20)
            assert json.loads(out) == want, f"at host {host}"
        out, _ = outsider.communicate(timeout=20)
        assert json.loads(out) == []
    finally:
        fabric.delete(f"groups/{group['id']}")
