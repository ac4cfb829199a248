"""`wormcast send --to`: hosts in place of a group; and `--wait-for-members`: who is waited for until they receive."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from wormcast.mininet.fabric import Fabric

SECONDS_MAX = 600.0
"""Only against hanging for ever."""
GONE_AFTER_S = 6
AWAY = r"away since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric]) -> Fabric:
    # However long a receiver takes to start.
    return make_fabric(
        "testbed",
        controller_arguments=("--gone-after", str(GONE_AFTER_S)),
        agent_arguments=("--receiver-wait", str(int(SECONDS_MAX))),
    )


@pytest.fixture(autouse=True)
def without_groups(fabric: Fabric) -> Iterator[None]:
    """Afterwards all agents run, and no group is left."""
    yield
    for host in range(8):
        if host not in fabric.agents:
            fabric.start_agent(host)
    for group in fabric.get("groups")["groups"]:
        fabric.delete(f"groups/{group['id']}")
    fabric.wait_ready()


@pytest.fixture
def file(random_file: Callable[[int], Path]) -> Path:
    return random_file(100_000)


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + SECONDS_MAX
    while not (found := condition()):
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)
    return found


def start(fabric: Fabric, host: int, *words: object) -> subprocess.Popen[str]:
    argv = ["wormcast", *map(str, words)]
    return fabric.popen(host, argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def send(fabric: Fabric, host: int, *words: object) -> subprocess.Popen[str]:
    return start(fabric, host, "send", *words, "--json")


def ended(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any], str]:
    """Exit code, report and what was said beside it."""
    said, complaints = process.communicate(timeout=SECONDS_MAX)
    return process.returncode, json.loads(said) if said else {}, complaints


def receive(fabric: Fabric, host: int, group: str, into: Path) -> subprocess.Popen[str]:
    """A receiver of one file. The controller knows of it when this returns, or it is over: what was sent has come."""
    directory = into / f"h{host}"
    directory.mkdir(exist_ok=True)
    words = ["recv", "--group", group, "--output", directory, "--count", 1, "--overwrite"]
    until(lambda: member(fabric, host, group)["installed"])
    process = start(fabric, host, *words)
    until(lambda: receives(fabric, host, group) or process.poll() is not None)
    return process


def receives(fabric: Fabric, host: int, group: str) -> Any:
    return member(fabric, host, group)["receives"]


def member(fabric: Fabric, host: int, group: str) -> dict[str, Any]:
    return next(one for one in fabric.get(f"groups/{group}")["state"] if one["host"] == host)


def names(fabric: Fabric) -> list[str]:
    return [group["name"] for group in fabric.get("groups")["groups"]]


def planned(fabric: Fabric, *members: int) -> str:
    """The name of the group of some hosts, which all of them have when this returns."""
    group = fabric.put("groups", {"members": members})
    until(lambda: all(m["installed"] for m in fabric.get(f"groups/{group['id']}")["state"]))
    return str(group["name"])


def test_hosts_get_a_group_that_all_of_them_use_again(fabric: Fabric, file: Path, tmp_path: Path) -> None:
    """The first sender makes it and waits for those who then receive; two do so at the same time."""
    first = [
        send(fabric, host, file, "--to", to, "--wait-for-members", SECONDS_MAX)
        for host, to in ((0, "h1,h2"), (1, "2 0"))
    ]
    until(lambda: "to-0-1-2" in names(fabric))
    until(lambda: all(member(fabric, host, "to-0-1-2")["installed"] for host in (0, 1, 2)))
    directories = [tmp_path / "a", tmp_path / "b"]
    for directory in directories:
        directory.mkdir()
    # The receivers of host 2 get both files; the senders receive what the other one sends.
    two = start(fabric, 2, "recv", "--group", "to-0-1-2", "--output", directories[0], "--count", 2)
    others = [
        start(
            fabric,
            host,
            "recv",
            "--group",
            "to-0-1-2",
            "--output",
            directories[1],
            "--count",
            1,
            "--from",
            1 - host,
        )
        for host in (0, 1)
    ]
    reports = [ended(process) for process in first]
    assert [code for code, _, _ in reports] == [0, 0], reports
    groups = {report["group"] for _, report, _ in reports}
    assert len(groups) == 1
    assert [process.wait(SECONDS_MAX) for process in (two, *others)] == [0, 0, 0]
    assert [path.read_bytes() for path in directories[0].iterdir()] == [file.read_bytes()] * 2

    shown = fabric.get("groups/to-0-1-2")
    assert (shown["members"], shown["scheme"]) == ([0, 1, 2], "auto")
    for sender, hosts in ((0, ("-w", "h[1-2]")), (2, ("--to", "h0", "--to", "h1")), (1, ("-w", "[0-2]"))):
        receivers = [receive(fabric, host, "to-0-1-2", tmp_path) for host in {0, 1, 2} - {sender}]
        code, report, complaints = ended(send(fabric, sender, file, *hosts))
        assert code == 0, complaints
        assert {report["group"]} == groups
        assert [receiver.wait(SECONDS_MAX) for receiver in receivers] == [0, 0]
    assert names(fabric) == ["to-0-1-2"]


def test_a_host_that_is_away_is_named(fabric: Fabric, file: Path, tmp_path: Path) -> None:
    fabric.kill_agent(3)
    until(lambda: fabric.get("hosts/h3")["gone"])
    # Nobody receives at host 1 either, until the group is there.
    sending = send(fabric, 0, file, "--to", "1,3")
    until(lambda: "to-0-1-3" in names(fabric))
    receiver = receive(fabric, 1, "to-0-1-3", tmp_path)
    code, report, complaints = ended(sending)
    assert code == 3, complaints
    members = {member["host"]: member for member in report["members"]}
    assert members[1]["delivered"]
    assert members[3]["left_out"]
    assert re.fullmatch(AWAY, members[3]["reason"])
    assert receiver.wait(SECONDS_MAX) == 0

    code, report, complaints = ended(send(fabric, 0, file, "--to", "1,3", "--wait-for-members", 1))
    assert code == 4
    assert re.search(
        rf"after 1 s \(--wait-for-members\): .*host 3 \(h3\): {AWAY}.*nothing was sent", complaints
    )
    assert "host 1 (h1): no receiver is open" in complaints

    receiver = receive(fabric, 1, "to-0-1-3", tmp_path)
    words = ("--to", "1,3", "--only-present", "--wait-for-members", SECONDS_MAX)
    code, report, complaints = ended(send(fabric, 0, file, *words))
    assert code == 0, complaints
    assert receiver.wait(SECONDS_MAX) == 0


def test_nothing_is_sent_before_all_receive(fabric: Fabric, file: Path, tmp_path: Path) -> None:
    group = planned(fabric, 0, 1, 2)
    receiver = receive(fabric, 1, group, tmp_path)
    words = ("--group", group, "--wait-for-members")
    code, report, complaints = ended(send(fabric, 0, file, *words, 1.5))
    assert code == 4
    assert "host 2 (h2): no receiver is open; nothing was sent" in complaints
    assert report["members"] == [
        {"host": 1, "state": "pending", "reason": None},
        {"host": 2, "state": "pending", "reason": "no receiver is open"},
    ]
    assert (report["leftover"], report["wait_for_members_s"]) == ("cancelled", 1.5)
    assert receiver.poll() is None, "it has got nothing"
    for host in (0, 1, 2):
        status = fabric.agent_status(host)
        assert status is not None
        assert [one["streams"] for one in status["groups"]] == [[]], f"host {host} has seen a message"

    sending = send(fabric, 0, file, *words, SECONDS_MAX)
    assert sending.stderr is not None
    notice = json.loads(sending.stderr.readline())["notice"]
    assert notice == {
        "code": "members-missing",
        "message": "waiting for host 2 (h2): no receiver is open",
        "hosts": [2],
    }
    time.sleep(3)
    assert sending.poll() is None
    late = receive(fabric, 2, group, tmp_path)
    code, report, complaints = ended(sending)
    assert code == 0, complaints
    assert report["without_receiver"] == []
    assert [process.wait(SECONDS_MAX) for process in (receiver, late)] == [0, 0]


@contextlib.contextmanager
def paused(process: subprocess.Popen[Any]) -> Iterator[None]:
    """It stands still, and goes on in any case."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def test_a_controller_or_an_agent_that_stands_still_is_no_failure(
    fabric: Fabric, file: Path, tmp_path: Path
) -> None:
    assert fabric.controller is not None
    to = ("--to", "h[1-2]")
    with paused(fabric.agents[2]):
        with paused(fabric.controller):
            sending = send(fabric, 0, file, *to)
            code, _, complaints = ended(send(fabric, 0, file, *to, "--timeout", 1))
            assert code == 4
            assert "after 1 s (--timeout): the controller does not answer; nothing was sent" in complaints
            assert sending.poll() is None
        assert sending.stderr is not None
        notice = json.loads(sending.stderr.readline())["notice"]
        assert (notice["code"], notice["hosts"]) == ("members-missing", [2])
        assert notice["message"] == "waiting for host 2 (h2): its agent does not have the group yet"
        first = receive(fabric, 1, "to-0-1-2", tmp_path)
        assert first.poll() is None
    second = receive(fabric, 2, "to-0-1-2", tmp_path)
    code, _, complaints = ended(sending)
    assert code == 0, complaints
    assert [process.wait(SECONDS_MAX) for process in (first, second)] == [0, 0]


def test_the_time_of_the_command_ends_the_wait_too(fabric: Fabric, file: Path) -> None:
    group = planned(fabric, 0, 1)
    words = ("--group", group, "--wait-for-members", SECONDS_MAX, "--timeout", 1)
    code, report, complaints = ended(send(fabric, 0, file, *words))
    assert code == 4
    assert "after 1 s (--timeout): host 1 (h1): no receiver is open; nothing was sent" in complaints
    assert report["timeout_s"] == 1


def test_a_receiver_for_one_origin_is_none_for_another(fabric: Fabric, file: Path, tmp_path: Path) -> None:
    group = planned(fabric, 0, 1, 2)
    words = ("recv", "--group", group, "--output", tmp_path, "--count", 1, "--from", 2)
    receiver = start(fabric, 1, *words)

    until(lambda: member(fabric, 1, group)["receives_from"] == [2])
    assert receives(fabric, 1, group) is False
    shown, _ = start(fabric, 0, "group", "show", group).communicate(timeout=SECONDS_MAX)
    assert re.search(r"^ *1 +h1 .* from 2 ", shown, re.MULTILINE), shown
    other = receive(fabric, 0, group, tmp_path)
    wait = ("--group", group, "--wait-for-members")
    code, _, complaints = ended(send(fabric, 0, file, *wait, 1))
    assert code == 4
    assert "hosts 1 (h1), 2 (h2): no receiver is open" in complaints
    code, _, complaints = ended(send(fabric, 2, file, *wait, SECONDS_MAX))
    assert code == 0, complaints
    assert [process.wait(SECONDS_MAX) for process in (receiver, other)] == [0, 0]


def test_who_is_gone_does_not_receive_and_who_is_back_tells_again(fabric: Fabric, tmp_path: Path) -> None:
    group = planned(fabric, 0, 1)
    receiver = receive(fabric, 1, group, tmp_path)
    fabric.stop_controller()
    fabric.start_controller()
    fabric.wait_ready()
    until(lambda: receives(fabric, 1, group))
    receiver.kill()
    receiver.wait()
    until(lambda: receives(fabric, 1, group) is False)
    receiver = receive(fabric, 1, group, tmp_path)
    fabric.kill_agent(1)
    until(lambda: receives(fabric, 1, group) is None)
    receiver.kill()
    receiver.wait()
    fabric.start_agent(1)
    until(lambda: receives(fabric, 1, group) is False)
    assert receive(fabric, 1, group, tmp_path).poll() is None


def test_a_group_that_is_made_again_has_no_receivers_of_the_one_before(
    fabric: Fabric, tmp_path: Path
) -> None:
    group = planned(fabric, 0, 1)
    number = fabric.get(f"groups/{group}")["id"]
    receiver = receive(fabric, 1, group, tmp_path)
    fabric.delete(f"groups/{group}")
    assert receiver.wait(SECONDS_MAX) == 1
    assert planned(fabric, 0, 1) == group
    assert fabric.get(f"groups/{group}")["id"] == number
    assert receives(fabric, 1, group) is False


def waiting(fabric: Fabric, file: Path, group: str) -> subprocess.Popen[str]:
    """A sender that waits, as it has said."""
    process = send(fabric, 0, file, "--group", group, "--wait-for-members", SECONDS_MAX)
    assert process.stderr is not None
    assert json.loads(process.stderr.readline())["notice"]["code"] == "members-missing"
    return process


def test_a_sender_that_waits_outlives_the_controller(fabric: Fabric, file: Path, tmp_path: Path) -> None:
    group = planned(fabric, 0, 1)
    sending = waiting(fabric, file, group)
    fabric.stop_controller()
    receiver = start(fabric, 1, "recv", "--group", group, "--output", tmp_path, "--count", 1, "--overwrite")
    fabric.start_controller()
    code, _, complaints = ended(sending)
    assert code == 0, complaints
    assert receiver.wait(SECONDS_MAX) == 0


def test_a_group_that_is_deleted_ends_the_wait(fabric: Fabric, file: Path) -> None:
    group = planned(fabric, 0, 1)
    sending = waiting(fabric, file, group)
    fabric.delete(f"groups/{group}")
    code, _, complaints = ended(sending)
    assert code == 1
    assert f"({group}) was deleted meanwhile; nothing was sent" in complaints
