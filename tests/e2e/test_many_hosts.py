"""More switches and hosts than get a process each: all of one kind share one, and each host still has its agent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from wormcast.mininet.fabric import AGENTS_APART_MAX, Fabric, FabricError
from wormcast.mininet.parts import PartError, Parts
from wormcast.mininet.transfer import transfer

SWITCHES, HOSTS = 40, 80
RECEIVERS = [3, 11, 19, 22, 35, 41, 47, 58, 66, 79]
READY_SECONDS_MAX = 600.0


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric]) -> Fabric:
    assert HOSTS > AGENTS_APART_MAX
    fabric = make_fabric(f"irregular:{SWITCHES}:1:{HOSTS // SWITCHES}:4", rate_mbps=50.0)
    assert fabric.shared_agents is not None
    assert not fabric.agents
    return fabric


@pytest.mark.parametrize("scheme", ["switch", "k-binomial", "circuit"])
def test_a_file_arrives(fabric: Fabric, scheme: str, random_file: Callable[[int], Path]) -> None:
    result = transfer(fabric, scheme, random_file(1_000_000), 0, RECEIVERS, seconds_max=600)
    assert result.intact
    assert not result.failed


def test_each_host_has_an_agent_an_address_and_a_namespace_of_its_own(fabric: Fabric) -> None:
    for host in (0, 41, 79):
        status = json.loads(fabric.run(host, ["wormcast", "status", "--json"]).stdout)
        assert (status["name"], status["host"]) == (f"h{host}", host)
        said = fabric.run(host, ["ip", "-br", "-4", "address", "show", f"h{host}-eth0"]).stdout.split()
        assert said[1:] == ["UP", f"{fabric.hosts[host].IP()}/16"]
        assert "UP" in fabric.hosts[host].cmd(f"ip -br link show h{host}-eth0")
        assert fabric.run(host, ["ls", "/sys/class/net"]).stdout.split() == [f"h{host}-eth0", "lo"]
    asked = fabric.run(79, ["ping", "-c", "1", "-W", "1", fabric.hosts[0].IP()])
    assert asked.returncode in (0, 1), asked.stderr


def test_one_link_goes_down_and_up_and_the_others_do_not_notice(fabric: Fabric) -> None:
    link = next(link for link in fabric.links if link.host == 41)
    fabric.set_link(link, up=False)
    wait_up(fabric, 41, False)
    assert all(fabric.agent_status(host)["link"]["up"] for host in (40, 42))  # type: ignore[index]
    fabric.set_link(link, up=True)
    wait_up(fabric, 41, True)


def test_the_process_of_all_agents_ends_and_is_started_again(
    fabric: Fabric, random_file: Callable[[int], Path]
) -> None:
    shared = fabric.shared_agents
    assert shared is not None
    assert shared.process is not None
    for refused in (fabric.kill_agent, fabric.start_agent):
        with pytest.raises(FabricError, match="shares its process"):
            refused(7)
    parts = Parts(fabric)
    with pytest.raises(PartError, match="is running"):
        parts.start(["h7"])
    with pytest.raises(PartError, match="shares its process with all other agents"):
        parts.stop(["h7"])
    shared.process.kill()
    shared.process.wait()
    with pytest.raises(FabricError, match="the process of all agents ended"):
        fabric.check_alive()
    parts.start(["h7", "h8"])
    fabric.wait_ready(READY_SECONDS_MAX)
    result = transfer(fabric, "k-binomial", random_file(300_000), 5, RECEIVERS, seconds_max=600)
    assert result.intact


def test_status_says_whether_the_machine_keeps_up(fabric: Fabric) -> None:
    shared = fabric.shared_agents
    assert shared is not None
    assert shared.process is not None
    shared.process.send_signal(19)  # SIGSTOP
    time.sleep(3.0)
    shared.process.send_signal(18)  # SIGCONT
    deadline = time.monotonic() + 600
    while (late := fabric.get("status")["late"])["agents"] < HOSTS // 2:
        assert time.monotonic() < deadline, late
        time.sleep(0.2)
    # They say something once a second, so of three seconds two are noticed, or a little less.
    assert late["agents_ms"] >= 1_500


def wait_up(fabric: Fabric, host: int, up: bool) -> None:
    deadline = time.monotonic() + 600
    while (status := fabric.agent_status(host)) is None or status["link"]["up"] != up:
        assert time.monotonic() < deadline, status
        time.sleep(0.1)
