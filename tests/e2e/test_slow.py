"""A receiver that takes a file slower than it comes is named, and others do not wait for it where the sender says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric

SECONDS_MAX = 600.0
"""Only against hanging for ever."""
SLOW = 3
READER = textwrap.dedent(
    """
    import os, sys, time
    taken = 0
    while piece := os.read(0, 20_000):
        taken += len(piece)
        time.sleep(0.2)
    print(taken)
    """
)
"""Takes 100 KB/s at most."""


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch)


@pytest.fixture(scope="module", params=["switch", "circuit"])
def group(fabric: Fabric, request: pytest.FixtureRequest) -> Iterator[int]:
    number = fabric.post("groups", {"scheme": request.param, "members": [0, 1, 2, SLOW]})["id"]
    fabric.wait_group(number)
    yield number
    fabric.delete(f"groups/{number}")


def start_receivers(fabric: Fabric, group: int, into: Path) -> list[subprocess.Popen[str]]:
    """Of hosts 1 and 2, and behind a slow program of host 3; that one's last words say how much it got."""
    receivers = []
    for host in (1, 2):
        (folder := into / f"h{host}").mkdir()
        argv = ["wormcast", "recv", "--group", str(group), "--output", str(folder), "--count", "1"]
        receivers.append(fabric.popen(host, argv, text=True))
    command = (
        f"wormcast recv --group {group} --from 0 --output - --count 1 | '{sys.executable}' -c '{READER}'"
    )
    receivers.append(fabric.popen(SLOW, ["bash", "-o", "pipefail", "-c", command], text=True))
    wait_for_receivers(fabric, [(host, group) for host in (1, 2, SLOW)])
    return receivers


def send(fabric: Fabric, file: Path, group: int, *options: str) -> tuple[int, dict[str, object], str]:
    """From host 0: its exit code, its report, and what it said meanwhile."""
    argv = ["wormcast", "send", str(file), "--group", str(group), "--json", *options]
    sending = fabric.popen(0, argv, text=True)
    said, notices = sending.communicate(timeout=SECONDS_MAX)
    return sending.returncode, json.loads(said.splitlines()[-1]), notices


def slow_events(fabric: Fabric, group: int) -> list[dict[str, object]]:
    events = fabric.get("events?after=0&follow=false")["events"]
    return [event for event in events if event["kind"] == "member_slow" and event["group"] == group]


def test_who_is_slow_is_named_and_all_have_the_file(
    fabric: Fabric, group: int, random_file: Callable[[int], Path], tmp_path: Path
) -> None:
    file = random_file(1_500_000)
    receivers = start_receivers(fabric, group, tmp_path)
    code, report, notices = send(fabric, file, group)
    assert code == 0, report
    assert report["slow"] == [SLOW]
    assert "host 3 takes it slower than it comes" in notices
    said = [receiver.communicate(timeout=SECONDS_MAX)[0] for receiver in receivers]
    assert [receiver.returncode for receiver in receivers] == [0, 0, 0], said
    assert said[2].split() == [str(file.stat().st_size)]
    event = slow_events(fabric, group)[-1]
    assert (event["by"], event["origin"], event["host"]) == (0, 0, SLOW)
    assert 'wormcast_member_slow_total{host="3"}' in fabric.api.get("metrics").text


def test_others_do_not_wait_where_the_sender_says_so(
    fabric: Fabric, group: int, random_file: Callable[[int], Path], tmp_path: Path
) -> None:
    """The slow one reads for a minute or so; the others have the file long before."""
    file = random_file(6_000_000)
    receivers = start_receivers(fabric, group, tmp_path)
    code, report, _ = send(fabric, file, group, "--slow", "drop", "--lag", "512k")
    assert code == 3, report
    members = {member["host"]: member for member in report["members"]}
    assert [members[host]["delivered"] for host in (1, 2, SLOW)] == [True, True, False]
    assert members[SLOW]["reason"] == "too slow"
    said = [receiver.communicate(timeout=SECONDS_MAX)[0] for receiver in receivers]
    assert [receiver.returncode for receiver in receivers[:2]] == [0, 0], said
    for host in (1, 2):
        assert (tmp_path / f"h{host}" / file.name).read_bytes() == file.read_bytes()
    assert receivers[2].returncode == 3
    assert int(said[2]) < file.stat().st_size // 2, "it was to lose the file soon"


def test_who_was_too_slow_gets_the_rest_when_the_others_have_all(
    fabric: Fabric, group: int, random_file: Callable[[int], Path], tmp_path: Path
) -> None:
    """Its receiver stands still from the middle of the file until the others have it."""
    file = random_file(6_000_000)
    folders = {host: tmp_path / f"h{host}" for host in (1, 2, SLOW)}
    receivers = {}
    for host, folder in folders.items():
        folder.mkdir()
        argv = ["wormcast", "recv", "--group", str(group), "--output", str(folder), "--count", "1"]
        receivers[host] = fabric.popen(host, argv, text=True)
    wait_for_receivers(fabric, [(host, group) for host in folders])
    argv = ["wormcast", "send", str(file), "--group", str(group), "--slow", "late", "--lag", "1M", "--json"]
    sending = fabric.popen(0, argv, text=True)
    deadline = time.monotonic() + SECONDS_MAX
    while not any(folders[SLOW].iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(receivers[SLOW].pid, signal.SIGSTOP)
    try:
        while not all((folders[host] / file.name).exists() for host in (1, 2)):
            assert time.monotonic() < deadline
            assert sending.poll() is None
            time.sleep(0.05)
        assert not (folders[SLOW] / file.name).exists()
    finally:
        os.kill(receivers[SLOW].pid, signal.SIGCONT)
    said, notices = sending.communicate(timeout=SECONDS_MAX)
    assert sending.returncode == 0, said + notices
    assert f"host {SLOW} too slow; now what they lack" in notices
    assert [receiver.wait(SECONDS_MAX) for receiver in receivers.values()] == [0, 0, 0]
    for folder in folders.values():
        assert (folder / file.name).read_bytes() == file.read_bytes()
        assert [one.name for one in folder.iterdir()] == [file.name]
