"""A member that is away has not got what was sent, and the operator's group is the group."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric

SECONDS_MAX = 600.0
"""Only against hanging for ever."""
GONE_AFTER_S = 6
AWAY = r"away since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, controller_arguments=("--gone-after", str(GONE_AFTER_S)))


@pytest.fixture(params=[False, True], ids=["plain", "ordered"])
def group(fabric: Fabric, request: pytest.FixtureRequest) -> Iterator[int]:
    """Hosts 0, 1 and 3; afterwards all agents run."""
    request_body = {"scheme": "switch", "members": [0, 1, 3], "parameters": {"ordered": request.param}}
    number = fabric.post("groups", request_body)["id"]
    fabric.wait_group(number)
    try:
        yield number
    finally:
        for host in (1, 3):
            if host not in fabric.agents:
                fabric.start_agent(host)
        fabric.delete(f"groups/{number}")
        fabric.wait_ready()


def receive(fabric: Fabric, host: int, group: int, into: Path) -> subprocess.Popen[str]:
    into.mkdir(exist_ok=True)
    arguments = ["recv", "--group", str(group), "--output", str(into), "--count", "1", "--overwrite"]
    process = fabric.popen(host, ["wormcast", *arguments, "--json"], text=True)
    wait_for_receivers(fabric, [(host, group)])
    return process


def send(fabric: Fabric, file: Path, group: int, *options: str) -> tuple[int, str]:
    """From host 0; its exit code and what it printed."""
    argv = ["wormcast", "send", str(file), "--group", str(group), *options]
    sending = fabric.popen(0, argv, text=True)
    said, complaints = sending.communicate(timeout=SECONDS_MAX)
    return sending.returncode, said + complaints


def lose(fabric: Fabric, group: int, *hosts: int) -> None:
    """Ends agents, and waits until the controller and the agent of host 0 say that these are away."""
    for host in set(hosts) & fabric.agents.keys():
        fabric.kill_agent(host)
    deadline = time.monotonic() + SECONDS_MAX
    while left_out(fabric, group) != [[*hosts]] * 2:
        assert time.monotonic() < deadline, fabric.get(f"groups/{group}")
        time.sleep(0.1)


def wait_for_packets(fabric: Fabric, group: int, host: int) -> None:
    """Until something of a message has come to a host: it was a member when the message began."""
    deadline = time.monotonic() + SECONDS_MAX
    while not any(
        one["streams"]
        for one in (fabric.agent_status(host) or {"groups": []})["groups"]
        if one["group"] == group
    ):
        assert time.monotonic() < deadline, fabric.agent_status(host)
        time.sleep(0.05)


def left_out(fabric: Fabric, group: int) -> list[list[int]]:
    """By the controller, and by the agent of host 0."""
    status = fabric.agent_status(0)
    assert status is not None
    told = next((one for one in status["groups"] if one["group"] == group), {"left_out": []})
    return [[one["host"] for one in said["left_out"]] for said in (fabric.get(f"groups/{group}"), told)]


def outcome(said: str) -> dict[int, dict[str, Any]]:
    """Members of a report, by host."""
    return {member["host"]: member for member in json.loads(said.splitlines()[0])["members"]}


def test_who_is_away_is_named_and_send_exits_3(
    fabric: Fabric, group: int, random_file: Callable[[int], Path], tmp_path: Path
) -> None:
    file = random_file(100_000)
    lose(fabric, group, 3)
    shown = fabric.get(f"groups/{group}")
    assert shown["members"] == [0, 1, 3], "nobody removed it"
    (left_out,) = shown["left_out"]
    assert re.fullmatch(AWAY, left_out["reason"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", left_out["away_since"])
    assert left_out["name"] == "h3"
    events = [e for e in fabric.get("events?after=0&follow=false")["events"] if e["kind"] == "plan"]
    assert {"group": group, "host": 3, "reason": left_out["reason"]} in events[-1]["shortfalls"]

    receiver = receive(fabric, 1, group, tmp_path / "h1")
    code, said = send(fabric, file, group, "--json")
    assert code == 3, said
    assert receiver.wait(SECONDS_MAX) == 0
    members = outcome(said)
    assert members[1]["delivered"]
    assert not members[1]["left_out"]
    assert members[3] == {"host": 3, "delivered": False, "reason": left_out["reason"], "left_out": True}

    receiver = receive(fabric, 1, group, tmp_path / "h1")
    code, said = send(fabric, file, group, "--only-present")
    assert code == 0, said
    assert re.search(rf"1 of 1 present members have it; host 3 {AWAY}", said), said
    assert receiver.wait(SECONDS_MAX) == 0

    lose(fabric, group, 1, 3)
    for options in ((), ("--only-present",)):
        code, said = send(fabric, file, group, *options)
        assert code == 3, said
        assert len(re.findall(AWAY, said)) == 2, said

    for host in (1, 3):
        fabric.start_agent(host)
    fabric.wait_ready()
    fabric.wait_group(group)
    receivers = [receive(fabric, host, group, tmp_path / f"h{host}") for host in (1, 3)]
    code, said = send(fabric, file, group, "--json")
    assert code == 0, said
    assert [receiver.wait(SECONDS_MAX) for receiver in receivers] == [0, 0]
    assert fabric.get(f"groups/{group}")["left_out"] == []


def test_who_goes_in_the_middle_is_away_and_not_removed(
    fabric: Fabric, group: int, random_file: Callable[[int], Path], tmp_path: Path
) -> None:
    """Nobody reads at the other member, so the message cannot end before the agent is gone."""
    file = random_file(4_000_000)
    sending = fabric.popen(0, ["wormcast", "send", str(file), "--group", str(group), "--json"], text=True)
    receiver = receive(fabric, 1, group, tmp_path / "h1")
    wait_for_packets(fabric, group, 3)
    lose(fabric, group, 3)
    said, _ = sending.communicate(timeout=SECONDS_MAX)
    assert sending.returncode == 3
    assert receiver.wait(SECONDS_MAX) == 0
    members = outcome(said)
    assert members[1]["delivered"]
    assert re.fullmatch(AWAY, members[3]["reason"]), members
    assert not members[3]["left_out"], "it was there when the message began"
