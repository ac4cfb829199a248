"""Parallel links: when one fails, switches go on by another, and no controller is asked.

The controller stands still (SIGSTOP) from before the links are cut until all members have their files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import sha256_of
from wormcast.network.groups import SCHEMES_ANYWHERE

FILE_BYTES = 300_000
HOSTS = range(3)
END_SECONDS_MAX = 600.0
"""Only against hanging for ever."""


@pytest.fixture(scope="module")
def fabric(
    make_fabric: Callable[..., Fabric], tmp_path_factory: pytest.TempPathFactory, switch: str
) -> Fabric:
    """Three switches in a line, with two links between neighbours."""
    if switch == "bmv2":
        pytest.skip("BMv2 has no backup replicas")
    ends = [(0, 1), (0, 1), (1, 2), (1, 2)]
    ports = {switch: iter(range(1, 8)) for switch in HOSTS}
    network = {
        "switches": [{"id": switch, "ports": 8} for switch in HOSTS],
        "hosts": [{"id": host, "switch": host, "port": 0} for host in HOSTS],
        "links": [{"a": a, "a_port": next(ports[a]), "b": b, "b_port": next(ports[b])} for a, b in ends],
    }
    path = tmp_path_factory.mktemp("topology") / "pairs.json"
    path.write_text(json.dumps(network))
    return make_fabric(str(path), switch=switch, rate_mbps=30.0)


def known(fabric: Fabric, host: int) -> set[int]:
    """Groups that the agent of a host knows."""
    status = fabric.agent_status(host)
    return set() if status is None else {group["group"] for group in status["groups"]}


@pytest.mark.parametrize("cut", [0, 1])
def test_links_fail_while_the_controller_stands_still(
    fabric: Fabric, cut: int, random_file: Callable[[int], Path], tmp_path: Path
) -> None:
    """The first links of both pairs, which trees use, and the second ones, which routes use too."""
    file = random_file(FILE_BYTES)
    groups = {s: fabric.post("groups", {"scheme": s, "members": list(HOSTS)})["id"] for s in SCHEMES_ANYWHERE}
    for group in groups.values():
        fabric.wait_group(group)
    deadline = time.monotonic() + END_SECONDS_MAX
    while not all(set(groups.values()) <= known(fabric, host) for host in HOSTS):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    pairs = [link for link in fabric.links if link.far_switch is not None]
    chosen = [pairs[cut], pairs[2 + cut]]
    assert fabric.controller is not None
    controller = fabric.controller.pid
    receiving: dict[tuple[str, int], subprocess.Popen[str]] = {}
    try:
        os.kill(controller, signal.SIGSTOP)
        for link in chosen:
            fabric.set_link(link, False)
        for scheme, group in groups.items():
            for host in HOSTS[1:]:
                out = tmp_path / f"{scheme}-{host}"
                out.mkdir()
                argv = ["wormcast", "recv", "--group", str(group), "--count", "1", "--output", str(out)]
                receiving[scheme, host] = fabric.popen(
                    host, argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
                )
        wait_for_receivers(fabric, [(host, groups[scheme]) for scheme, host in receiving])
        for scheme, group in groups.items():
            argv = ["wormcast", "send", str(file), "--group", str(group)]
            sent = fabric.run(0, argv, seconds_max=END_SECONDS_MAX)
            assert sent.returncode == 0, (scheme, sent.stdout, sent.stderr)
        for (scheme, host), process in receiving.items():
            said, _ = process.communicate(timeout=END_SECONDS_MAX)
            assert process.returncode == 0, (scheme, host, said)
            (got,) = (tmp_path / f"{scheme}-{host}").iterdir()
            assert sha256_of(got) == sha256_of(file), (scheme, host)
    finally:
        os.kill(controller, signal.SIGCONT)
        for process in receiving.values():
            process.kill()
            process.communicate()
        for link in chosen:
            fabric.set_link(link, True)
        for group in groups.values():
            fabric.delete(f"groups/{group}")
        fabric.wait_ready()
