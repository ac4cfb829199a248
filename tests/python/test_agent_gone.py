"""What `wormcast send` and `recv` say and do when an agent ends in the middle, or every receiver."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_lab.lab import Lab, group
from test_agent_transfer import (
    LIMIT_S,
    file_of,
    names,
    open_receivers,
    outputs,
    run,
    start_recv,
    until,
    written,
)
from wormcast.client import Agent, AgentError
from wormcast.client.files import encode_file_start

pytestmark = pytest.mark.network

CONTENT = random.Random(3).randbytes(3_000_000)


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Three hosts, groups of two schemes."""
    lab = Lab(3, [group(1, "repeat", [0, 1, 2]), group(2, "circuit", [0, 1, 2])], "--receiver-wait", "20")
    yield lab
    lab.close()


def test_a_receiver_waits_for_its_agent_and_goes_on(lab: Lab, tmp_path: Path) -> None:
    one, two = outputs(tmp_path)
    restarted = start_recv(lab, 1, 1, one, "--count", "2", "--json")
    other = start_recv(lab, 2, 1, two, "--count", "2")
    assert restarted.stderr is not None
    with Agent(lab.socket(0)) as agent, agent.open_sender(1) as sender:
        sender.write(encode_file_start("first", len(CONTENT)) + CONTENT)
        until(lambda: written(restarted, one) > 1_000_000)
        lab.agent("kill", 1)
        said = [json.loads(restarted.stderr.readline())]
        assert said[0]["notice"]["code"] == "agent-gone"
        assert names(one) == []
        lab.agent("start", 1)
        until(lambda: open_at(lab, 1, 1))
        sender.write(hashlib.sha256(CONTENT).digest())
        first = sender.wait_stable(sender.end(), LIMIT_S)
        assert [(o.host, o.delivered) for o in first.outcomes] == [(1, False), (2, True)]
    file = file_of(tmp_path / "second", 1000)
    assert run(lab.start(0, "send", str(file), "-g", "1"))[0] == 0
    code, out, error = run(restarted)
    assert code == 3, error
    reports = [json.loads(line) for line in out.splitlines()]
    assert [report["name"] for report in reports] == ["first", "second"]
    assert "the agent is gone" in reports[0]["error"]
    assert "agent-back" in error
    assert names(one) == ["second"]
    assert run(other)[0] == 0
    assert names(two) == ["first", "second"]


def open_at(lab: Lab, host: int, number: int) -> bool:
    try:
        return open_receivers(lab, host, number) == 1
    except (AgentError, StopIteration):
        return False


def test_a_sender_whose_agent_ends_says_what_is_known(lab: Lab, tmp_path: Path) -> None:
    one, two = outputs(tmp_path)
    receivers = [start_recv(lab, 1, 1, one), start_recv(lab, 2, 1, two)]
    send = lab.start(0, "send", "-", "-g", "1", "--json", stdin=subprocess.PIPE)
    assert send.stdin is not None
    send.stdin.write(CONTENT)
    until(lambda: min(written(receivers[0], one), written(receivers[1], two)) > 1_000_000)
    # It does not wait for more from standard input to notice.
    lab.agent("kill", 0)
    assert send.wait(LIMIT_S) == 3
    assert send.stdout is not None
    assert send.stderr is not None
    report = json.loads(send.stdout.read())
    assert (report["leftover"], report["delivered"], report["failed"]) == ("cancelled", 0, 2)
    assert json.loads(send.stderr.read())["error"]["code"] == "agent-gone"
    for receiver in receivers:
        receiver.kill()
        run(receiver)
    assert names(one) == names(two) == []


def test_what_was_all_sent_may_have_come(lab: Lab, tmp_path: Path) -> None:
    one, _ = outputs(tmp_path)
    receiver = start_recv(lab, 1, 1, one)
    send = lab.start(0, "send", str(file_of(tmp_path / "x", 1000)), "-g", "1")
    # Nobody receives at host 2, so it cannot be over.
    assert run(receiver)[0] == 0
    lab.agent("kill", 0)
    code, out, error = run(send)
    assert code == 3
    assert "unknown" in out
    assert "may not get it; send the file again when the agent is back" in out
    assert "0 of 2 members have the file, 2 are unknown" in error


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("ending", ["kill", "interrupt"])
def test_a_sender_stops_when_nobody_is_left(lab: Lab, tmp_path: Path, number: int, ending: str) -> None:
    """Standard input goes on for ever: only that can end the command."""
    one, two = outputs(tmp_path)
    receivers = [start_recv(lab, 1, number, one), start_recv(lab, 2, number, two)]
    send = lab.start(0, "send", "-", "-g", str(number), "--json", stdin=subprocess.PIPE)

    def feed() -> None:
        assert send.stdin is not None
        try:
            while True:
                send.stdin.write(CONTENT)
        except OSError:
            pass

    feeder = threading.Thread(target=feed)
    feeder.start()
    until(lambda: min(written(receivers[0], one), written(receivers[1], two)) > 1_000_000)
    receivers[0].kill()
    run(receivers[0])
    before = written(receivers[1], two)
    # As long as one is left it goes on.
    until(lambda: written(receivers[1], two) > before + 5_000_000)
    assert send.poll() is None
    if ending == "kill":
        receivers[1].kill()
    else:
        receivers[1].terminate()
    run(receivers[1])
    assert send.wait(LIMIT_S) == 3
    assert send.stdout is not None
    report = json.loads(send.stdout.read())
    assert (report["stopped"], report["delivered"], report["failed"], report["sha256"]) == (True, 0, 2, None)
    assert [member["reason"] for member in report["members"]] == ["application gave up"] * 2
    feeder.join(LIMIT_S)
    assert names(one) == names(two) == []


def test_one_that_pauses_is_no_reason_to_stop(lab: Lab, tmp_path: Path) -> None:
    one, two = outputs(tmp_path)
    receivers = [start_recv(lab, 1, 1, one), start_recv(lab, 2, 1, two)]
    send = lab.start(0, "send", "-", "-g", "1", stdin=subprocess.PIPE)
    assert send.stdin is not None
    send.stdin.write(CONTENT)
    until(lambda: min(written(receivers[0], one), written(receivers[1], two)) > 1_000_000)
    receivers[0].kill()
    run(receivers[0])
    receivers[1].send_signal(signal.SIGSTOP)
    time.sleep(3)
    assert send.poll() is None
    receivers[1].send_signal(signal.SIGCONT)
    out, _ = send.communicate(CONTENT, timeout=LIMIT_S)
    assert (send.returncode, b"1 of 2 members have it" in out) == (3, True)
    assert run(receivers[1])[0] == 0
    assert (two / "stdin").read_bytes() == CONTENT * 2
