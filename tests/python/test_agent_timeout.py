"""`wormcast send --timeout` covers the whole command, and what it says of each member is right."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_lab.lab import Lab, group
from test_agent_transfer import start_recv
from wormcast.client import Agent, Receiver

LIMIT_S = 600
LARGE = 40 << 20
"""More than all windows on the way hold."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Three hosts, a group for most schemes; a message waits long for a receiver."""
    groups = [group(n, s, [0, 1, 2]) for n, s in enumerate(("repeat", "tree", "circuit", "switch"), 1)]
    lab = Lab(3, groups, "--receiver-wait", "40", "--receiver-stall", "40")
    yield lab
    lab.close()


def finish(process: subprocess.Popen[bytes]) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """Exit status, the report, and what was said on standard error, line by line."""
    out, error = process.communicate(timeout=LIMIT_S)
    lines = [json.loads(line) for line in error.decode().splitlines()]
    return process.returncode, json.loads(out) if out else {}, lines


@contextlib.contextmanager
def idle_receiver(lab: Lab, host: int, number: int) -> Iterator[Receiver]:
    """One that is open and takes nothing."""
    with Agent(lab.socket(host)) as agent:
        yield agent.open_receiver(number)


def file_of(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def states(report: dict[str, Any]) -> dict[int, str]:
    return {member["host"]: member["state"] for member in report["members"]}


@pytest.mark.network
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_limit_holds_while_blocks_are_written(lab: Lab, tmp_path: Path, number: int) -> None:
    file = file_of(tmp_path / "large", LARGE)
    with idle_receiver(lab, 1, number), idle_receiver(lab, 2, number):
        send = lab.start(0, "send", str(file), "-g", str(number), "--timeout", "2", "--json")
        code, report, said = finish(send)
        assert code == 4, (report, said)
        assert report["leftover"] == "cancelled"
        assert states(report) == {1: "pending", 2: "pending"}
        assert said[-1]["error"]["code"] == "timeout"
        assert "2 do not have it yet" in said[-1]["error"]["message"]
    # Nothing of it is left in the way of the next.
    small = file_of(tmp_path / "small", 10)
    outputs = [tmp_path / "one", tmp_path / "two"]
    receivers = []
    for host, output in enumerate(outputs, 1):
        output.mkdir()
        receivers.append(start_recv(lab, host, number, output))
    assert finish(lab.start(0, "send", str(small), "-g", str(number), "--json"))[0] == 0
    for receiver, output in zip(receivers, outputs, strict=True):
        assert receiver.wait(LIMIT_S) == 0
        assert [path.name for path in output.iterdir()] == ["small"]


@pytest.mark.network
@pytest.mark.parametrize(("number", "first"), [(1, "delivered"), (4, "delivered"), (2, "unknown")])
def test_each_member_is_said_what_is_known(lab: Lab, tmp_path: Path, number: int, first: str) -> None:
    """In a chain, what the first member has is known only with what hangs below it."""
    file = file_of(tmp_path / "small", 10)
    output = tmp_path / "one"
    output.mkdir()
    taker = start_recv(lab, 1, number, output)
    with idle_receiver(lab, 2, number):
        send = lab.start(0, "send", str(file), "-g", str(number), "--timeout", "6", "--json")
        code, report, said = finish(send)
        assert taker.wait(LIMIT_S) == 0
        assert code == 4, (report, said)
        assert states(report) == {1: first, 2: "unknown"}
        assert report["leftover"] == "continues"
        text = said[-1]["error"]["message"]
        assert f"{report['delivered']} of 2 members have the file, {report['unknown']} are unknown" in text


@pytest.mark.network
def test_standard_input_that_gives_nothing(lab: Lab) -> None:
    with idle_receiver(lab, 1, 1), idle_receiver(lab, 2, 1):
        send = lab.start(
            0, "send", "-", "-g", "1", "--timeout", "0.5", "--json", stdin=subprocess.PIPE, bufsize=0
        )
        send.wait(LIMIT_S)
        code, report, said = finish(send)
    assert (code, report["leftover"]) == (4, "cancelled"), said
    assert states(report) == {1: "pending", 2: "pending"}


@pytest.mark.parametrize("accepting", [True, False])
def test_an_agent_that_does_not_answer(tmp_path: Path, accepting: bool) -> None:
    """As one that is stopped: its kernel takes connections, or has no more room for them."""
    import os
    import sys

    file = file_of(tmp_path / "small", 10)
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stopped, contextlib.ExitStack() as others:
        stopped.bind(str(path))
        stopped.listen(1 if accepting else 0)
        while not accepting:
            other = others.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            other.setblocking(False)
            try:
                other.connect(str(path))
            except BlockingIOError:
                break
        command = [sys.executable, "-m", "wormcast.cli.main", "send", str(file), "-g", "1"]
        command += ["--timeout", "0.5", "--json", "--socket", str(path)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=os.environ.copy()) as send:
            code, report, said = finish(send)
    assert (code, report["leftover"], report["members"]) == (4, "cancelled", []), said
    assert "nothing was sent" in said[-1]["error"]["message"]


@pytest.mark.network
def test_no_receiver_is_said_while_it_waits(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "small", 10)
    send = lab.start(0, "send", str(file), "-g", "3", "--json", bufsize=0)
    assert send.stderr is not None
    notice = json.loads(send.stderr.readline())["notice"]
    assert send.poll() is None
    assert (notice["code"], notice["hosts"]) == ("no-receiver", [1, 2])
    assert "wormcast recv --group 3" in notice["message"]
    receivers = []
    for host in (1, 2):
        (tmp_path / str(host)).mkdir()
        receivers.append(lab.start(host, "recv", "-g", "3", "-o", str(tmp_path / str(host)), "--count", "1"))
    code, report, _ = finish(send)
    assert code == 0
    assert report["without_receiver"] == [1, 2]
    assert [receiver.wait(LIMIT_S) for receiver in receivers] == [0, 0]
