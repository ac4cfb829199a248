"""Costs measured in a live fabric."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wormcast import routing
from wormcast.mininet.fabric import Fabric

WORMCAST = str(Path(sys.executable).parent / "wormcast")
RATES_MBPS = {"wormcast": 20.0, "bmv2": 5.0}
SHORT = ["--most", "65536", "--json"]


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("line:3", switch=switch, rate_mbps=RATES_MBPS[switch])


def measure(fabric: Fabric, *options: str, host: int = 0) -> subprocess.CompletedProcess[str]:
    command = [WORMCAST, "costs", "measure", *SHORT, *options]
    process = fabric.popen(host, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def test_measured_costs_are_in_force_and_the_groups_are_gone(fabric: Fabric) -> None:
    before = fabric.get("costs")
    assert before == routing.costs("agents")
    tried = measure(fabric, "--dry-run")
    assert tried.returncode == 0, tried.stderr
    assert json.loads(tried.stdout)["in_force"] is False
    assert fabric.get("costs") == before
    found = measure(fabric)
    assert found.returncode == 0, found.stderr
    answer: dict[str, Any] = json.loads(found.stdout)
    assert answer["in_force"] is True
    assert fabric.get("costs") == answer["costs"] != before
    # Links are shaped, which no machine is too slow for; a slow one makes them seem slower.
    assert answer["costs"]["link_bits_per_s"] < 2e6 * RATES_MBPS[fabric.options.switch]
    rows = answer["measured"]
    assert {row["scheme"] for row in rows} == {"repeat", "circuit", "switch"}
    assert {len(row["members"]) for row in rows} == {2, 3}
    assert {row["bytes"] for row in rows} == {64, 1024, 4096, 16384, 65536}
    off = [abs(row["after_microseconds"] / row["microseconds"] - 1) for row in rows]
    old = [abs(row["before_microseconds"] / row["microseconds"] - 1) for row in rows]
    assert sum(off) < sum(old), "the new costs are nearer to what was measured"
    assert fabric.get("groups")["groups"] == []


def test_groups_go_when_the_command_is_ended(fabric: Fabric) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        command = [WORMCAST, "costs", "measure", *SHORT]
        process = fabric.popen(1, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not fabric.get("groups")["groups"]:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(number)
        process.communicate()
        assert process.returncode != 0
        assert fabric.get("groups")["groups"] == []


def test_hosts_that_are_not_there_are_refused(fabric: Fabric) -> None:
    refused = measure(fabric, "h9")
    assert refused.returncode == 2
    error = json.loads(refused.stderr.splitlines()[-1])["error"]
    assert error["value"] == "h9"
    assert "0 (h0)" in error["choices"]
    alone = measure(fabric, "h0")
    assert alone.returncode == 2
    assert "two or more" in alone.stderr
    assert fabric.get("groups")["groups"] == []


def test_auto_says_what_it_takes_and_how_long(fabric: Fabric) -> None:
    made = fabric.post("groups", {"name": "any", "scheme": "auto", "members": [0, 1, 2], "sink": True})
    fabric.wait_group(made["id"])
    send = [WORMCAST, "send", "--group", "any", str(Path(__file__))]
    assert fabric.popen(0, send, stdout=subprocess.DEVNULL).wait() == 0
    shown = json.loads(
        fabric.popen(0, [WORMCAST, "status", "--json"], stdout=subprocess.PIPE, text=True).communicate()[0]
    )
    (group,) = [group for group in shown["groups"] if group["name"] == "any"]
    assert group["scheme"] == "auto"
    told = fabric.get("groups/any")["structures"]
    assert [one["scheme"] for one in group["structures"]] == [one["scheme"] for one in told]
    expected = [one["bytes"] for structure in group["structures"] for one in structure["expected"]]
    assert len(expected) == 10
    assert expected == sorted(expected)
    text = fabric.popen(0, [WORMCAST, "status"], stdout=subprocess.PIPE, text=True).communicate()[0]
    assert "messages take" in text
    assert "in about ms" in text
    (stream,) = group["streams"]
    assert sum(stream[f"messages_by_structure.{number}"] for number in range(len(told))) == 1
    fabric.delete("groups/any")
