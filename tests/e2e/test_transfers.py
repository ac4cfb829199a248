"""Records of files sent on running fabrics: who has one, who has not and why, and how others ended, also over a restart of
the controller. Senders read from a pipe, so what is under way stays so for as long as the test wants."""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric

Json = dict[str, Any]
SECONDS_MAX = 600.0
"""Only against hanging for ever."""
ORIGIN = 0
RECEIVING = [1, 2]
UNREAD = 3
BYTES = 300_000
INTERRUPTED = 130


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, agent_arguments=("--receiver-wait", "2"))


@pytest.fixture
def group(fabric: Fabric) -> Iterator[int]:
    body = {"name": "news", "scheme": "switch", "members": [ORIGIN, *RECEIVING, UNREAD]}
    number = fabric.post("groups", body)["id"]
    fabric.wait_group(number)
    yield number
    fabric.delete(f"groups/{number}")
    fabric.wait_ready()


def receive(fabric: Fabric, group: int, into: Path, hosts: list[int]) -> list[subprocess.Popen[Any]]:
    receivers = []
    for host in hosts:
        (into / str(host)).mkdir(exist_ok=True)
        argv = ["wormcast", "recv", "--group", str(group), "--output", str(into / str(host)), "--json"]
        receivers.append(fabric.popen(host, argv, stdout=subprocess.PIPE, text=True))
    wait_for_receivers(fabric, [(host, group) for host in hosts])
    return receivers


def begin(fabric: Fabric, group: int, name: str) -> subprocess.Popen[bytes]:
    """A file whose end has not come."""
    argv = ["wormcast", "send", "-", "--name", name, "--group", str(group), "--json"]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    sender = fabric.popen(ORIGIN, argv, **streams)
    assert sender.stdin is not None
    sender.stdin.write(secrets.token_bytes(BYTES))
    sender.stdin.flush()
    return sender


def end(sender: subprocess.Popen[bytes]) -> tuple[int, Json]:
    """Its exit code and its report."""
    out, _ = sender.communicate(timeout=SECONDS_MAX)
    return sender.returncode, json.loads(out.splitlines()[-1])


def wait_for(fabric: Fabric, name: str, state: str) -> Json:
    """The record of a file, once it is so."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        shown = [one for one in fabric.get("transfers")["transfers"] if one["name"] == name]
        if shown and shown[0]["state"] == state:
            assert len(shown) == 1
            record: Json = fabric.get(f"transfers/{shown[0]['number']}")
            return record
        assert time.monotonic() < deadline, (name, state, fabric.get("transfers"))
        time.sleep(0.1)


def told(fabric: Fabric) -> list[tuple[str, str]]:
    events = fabric.get("events?after=0&follow=false")["events"]
    return [(event["name"], event["state"]) for event in events if event["kind"] == "transfer"]


def restart_controller(fabric: Fabric, meanwhile: Callable[[], object] = lambda: None) -> None:
    fabric.stop_controller()
    meanwhile()
    fabric.start_controller()
    fabric.wait_ready()


def outcomes(record: Json) -> dict[int, tuple[str, str | None]]:
    return {member["host"]: (member["state"], member["reason"]) for member in record["members"]}


def test_records_say_who_has_a_file_and_how_others_ended(fabric: Fabric, group: int, tmp_path: Path) -> None:
    # The group's number is lower than that of records before: each fabric has a controller of its own.
    assert fabric.get("transfers") == {"transfers": [], "not_recorded": 0}
    receivers = receive(fabric, group, tmp_path, RECEIVING)
    file = tmp_path / "whole.bin"
    file.write_bytes(secrets.token_bytes(BYTES))

    done = fabric.run(ORIGIN, ["wormcast", "send", str(file), "--group", "news", "--json"], SECONDS_MAX)
    assert done.returncode == 3, done.stderr
    said = {member["host"]: member for member in json.loads(done.stdout)["members"]}
    record = wait_for(fabric, "whole.bin", "stable")
    assert outcomes(record) == {
        **dict.fromkeys(RECEIVING, ("delivered", None)),
        UNREAD: ("failed", said[UNREAD]["reason"]),
    }
    assert [said[host]["delivered"] for host in sorted(said)] == [True, True, False]
    assert (record["number"], record["origin"], record["group"]) == (1, ORIGIN, group)
    assert (record["bytes"], record["scheme"], record["message"]) == (BYTES, "switch", 0)
    assert record["seconds"] > 2, "as long as the agent waits for a receiver"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["began"])

    sender = begin(fabric, group, "interrupted.bin")
    under_way = wait_for(fabric, "interrupted.bin", "under_way")
    assert under_way["agent_connected"]
    assert set(outcomes(under_way).values()) == {("unknown", None)}
    sender.send_signal(signal.SIGINT)
    assert sender.wait(SECONDS_MAX) == INTERRUPTED
    record = wait_for(fabric, "interrupted.bin", "cancelled")
    assert record["number"] == under_way["number"] == 2
    states = outcomes(record)
    assert sorted(states) == [*RECEIVING, UNREAD]
    assert all(state == "failed" for state, _ in states.values())
    assert {states[host][1] for host in RECEIVING} == {"cancelled"}
    assert told(fabric) == [("whole.bin", "stable"), ("interrupted.bin", "cancelled")]

    listed = fabric.run(0, ["wormcast", "transfers", "--group", "news"], SECONDS_MAX).stdout
    assert "2 transfers" in listed
    one = fabric.run(0, ["wormcast", "transfers", "1"], SECONDS_MAX).stdout
    assert "2 of 3 have it, 1 failed" in one
    for receiver in receivers:
        receiver.send_signal(signal.SIGINT)
        receiver.wait(SECONDS_MAX)
    # What the receivers have is what the record says.
    assert sorted(path.name for host in RECEIVING for path in (tmp_path / str(host)).iterdir()) == [
        "whole.bin",
        "whole.bin",
    ]


def test_what_is_under_way_outlives_the_controller_and_ends_with_the_agent(
    fabric: Fabric, group: int, tmp_path: Path
) -> None:
    receivers = receive(fabric, group, tmp_path, [*RECEIVING, UNREAD])
    ends_meanwhile, cut_off = begin(fabric, group, "meanwhile.bin"), None
    wait_for(fabric, "meanwhile.bin", "under_way")
    reports: list[tuple[int, Json]] = []
    restart_controller(fabric, lambda: reports.append(end(ends_meanwhile)))
    assert reports[0][0] == 0
    record = wait_for(fabric, "meanwhile.bin", "stable")
    assert (record["number"], record["bytes"]) == (1, BYTES), "the controller has started anew"
    assert {state for state, _ in outcomes(record).values()} == {"delivered"}
    assert fabric.get("transfers")["not_recorded"] == 0

    cut_off = begin(fabric, group, "cut-off.bin")
    wait_for(fabric, "cut-off.bin", "under_way")
    restart_controller(fabric)
    assert wait_for(fabric, "cut-off.bin", "under_way")["number"] == 1
    fabric.kill_agent(ORIGIN)
    code, _ = end(cut_off)
    assert code == 3
    deadline = time.monotonic() + SECONDS_MAX
    while wait_for(fabric, "cut-off.bin", "under_way")["agent_connected"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert told(fabric) == [], "an agent that is silent may go on"
    fabric.start_agent(ORIGIN)
    record = wait_for(fabric, "cut-off.bin", "agent_gone")
    assert set(outcomes(record).values()) == {("unknown", None)}
    assert told(fabric) == [("cut-off.bin", "agent_gone")]

    fabric.wait_ready()
    fabric.wait_group(group)
    last = begin(fabric, group, "last.bin")
    assert end(last)[0] == 0
    record = wait_for(fabric, "last.bin", "stable")
    assert (record["number"], record["message"]) == (2, 0)
    assert fabric.get("transfers")["not_recorded"] == 0
    for receiver in receivers:
        receiver.send_signal(signal.SIGINT)
        receiver.wait(SECONDS_MAX)
