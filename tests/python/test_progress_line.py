"""The one line that shows how far a transfer has come, at every width, and the words and units beside it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_lab.lab import Lab, environment, group
from agent_lab.terminal import CONTROL, Terminal
from rich.cells import cell_len
from test_agent_transfer import LIMIT_S, file_of, outputs, run, start_recv, until, written
from wormcast.cli.progress import Facts, Rate, facts_of, line_of, shortened
from wormcast.counted import counted

NAMES = ["image.bin", "名前" * 30, "x" * 200, "a", ""]


@pytest.mark.parametrize("label", NAMES)
@pytest.mark.parametrize("total", [None, 0, 64 << 20, 1 << 63])
def test_no_line_is_longer_than_the_terminal(label: str, total: int | None) -> None:
    done = min(total or 0, 28 << 20)
    facts = facts_of(label, done, total, 94_600_000.0, "at 2 hosts", "28.8 MiB sent", "3 retransmissions")
    before = 0
    for width in range(400):
        line = line_of(facts, width)
        assert cell_len(line) <= width
        # More room never says less.
        assert line.count(",") >= before
        before = line.count(",")
    if total:
        assert "94.6 Mb/s" in line_of(facts, 20)
        assert "#" in line_of(facts, 300) or done * 10 < total


def test_what_matters_most_stays() -> None:
    facts = facts_of("image.bin", 32 << 20, 64 << 20, 94_600_000.0, "at 2 hosts")
    assert line_of(facts, 19) == "50 %, 94.6 Mb/s"
    assert line_of(facts, 37) == "image.bin  50 %, 94.6 Mb/s"
    assert line_of(facts, 59) == "image.bin  50 %, 94.6 Mb/s, 32.0 of 64.0 MiB, at 2 hosts"
    assert (
        line_of(facts, 80)
        == "image.bin  [##########..........]  50 %, 94.6 Mb/s, 32.0 of 64.0 MiB, at 2 hosts"
    )
    assert line_of(facts_of("stdin", 1 << 20, None, None), 40) == "stdin  1.0 MiB"
    assert line_of(Facts("only a name", None, []), 8) == "only a.."
    assert shortened("名前名前", 5) == "名.."


def test_one_is_one() -> None:
    assert [counted(n, "host") for n in (0, 1, 2)] == ["0 hosts", "1 host", "2 hosts"]
    assert [counted(n, "switch") for n in (0, 1, 2)] == ["0 switches", "1 switch", "2 switches"]


def test_the_rate_is_that_of_the_last_seconds() -> None:
    rate = Rate()
    assert rate.note(0.0, 0) is None
    for tenth in range(1, 100):
        latest = rate.note(tenth / 10, tenth * 1_000_000)
    assert latest == pytest.approx(80e6)
    for tenth in range(100, 200):
        latest = rate.note(tenth / 10, 99_000_000)
    assert latest == 0


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Three hosts, one group."""
    lab = Lab(3, [group(1, "repeat", [0, 1, 2])], "--receiver-wait", "20")
    yield lab
    lab.close()


def on(terminal: Terminal, term: str = "xterm") -> dict[str, object]:
    """Options of a command there."""
    return {"stderr": terminal.descriptor, "env": {**environment(), "TERM": term}}


@pytest.mark.network
@pytest.mark.parametrize("columns", [20, 80, 300])
def test_a_terminal_of_any_width_shows_one_line(lab: Lab, tmp_path: Path, columns: int) -> None:
    one, two = outputs(tmp_path)
    content = random.Random(columns).randbytes(2_000_000)
    with Terminal(columns) as out, Terminal(columns) as into:
        arguments = ["recv", "-g", "1", "-o", str(one), "--count", "1"]
        receiver = lab.start(1, *arguments, **on(into))
        other = start_recv(lab, 2, 1, two)
        send = lab.start(0, "send", "-", "-g", "1", "--name", "名" * 70, stdin=subprocess.PIPE, **on(out))
        assert send.stdin is not None
        send.stdin.write(content)
        send.stdin.flush()
        until(lambda: "MiB" in out.text + " MiB" * (columns == 20) and "Mb/s" in into.text)
        out.resize(15, send)
        shown = len(out.text)
        until(lambda: len(out.text) > shown)
        after = len(out.text)
        send.stdin.write(content)
        send.stdin.close()
        assert send.wait(LIMIT_S) == receiver.wait(LIMIT_S) == run(other)[0] == 0
        for part in CONTROL.split(out.text[:shown]) + CONTROL.split(into.text):
            for line in part.split("\n"):
                # What stays may be longer: the terminal breaks it.
                assert cell_len(line) < columns or "receiving" in line or "sha256" in line
        assert all(cell_len(part) < 15 for part in CONTROL.split(out.text[after:]))
        # The line is gone at the end, and no other was begun.
        assert out.text.endswith("\r\x1b[K")
        assert "\n" not in out.text
        assert into.text.count("\n") == 2


@pytest.mark.network
@pytest.mark.parametrize("term", ["dumb", ""])
def test_who_cannot_go_back_in_a_line_gets_no_control_characters(lab: Lab, tmp_path: Path, term: str) -> None:
    one, two = outputs(tmp_path)
    file = file_of(tmp_path / "f", 3_000_000)
    with Terminal(80) as out, Terminal(80) as into:
        receiver = lab.start(1, "recv", "-g", "1", "-o", str(one), "--count", "1", **on(into, term))
        other = start_recv(lab, 2, 1, two)
        until(lambda: "receiving" in into.text)
        send = lab.start(0, "send", str(file), "-g", "1", **on(out, term))
        assert send.wait(LIMIT_S) == receiver.wait(LIMIT_S) == run(other)[0] == 0
        assert "\x1b" not in out.text + into.text
        assert out.text == ""
        assert into.text.count("\n") == 2


@pytest.mark.network
def test_the_rate_is_that_of_the_network_whoever_reads_late(lab: Lab, tmp_path: Path) -> None:
    """Bytes that the agent has kept are not news when they are read."""
    one, two = outputs(tmp_path)
    other = start_recv(lab, 2, 1, two)
    send = lab.start(0, "send", "-", "-g", "1", stdin=subprocess.PIPE)
    assert send.stdin is not None
    content = random.Random(1).randbytes(250_000)
    begun = time.monotonic()
    for _ in range(10):
        send.stdin.write(content)
        send.stdin.flush()
        time.sleep(0.2)
    late = start_recv(lab, 1, 1, one, "--json")
    until(lambda: written(late, one) > 2_000_000)
    send.stdin.close()
    passed = time.monotonic() - begun
    assert send.wait(LIMIT_S) == run(other)[0] == 0
    code, out, error = run(late)
    assert code == 0, error
    report = json.loads(out)
    assert report["rate_mbit_s"] <= 2_500_000 * 8 / 1.8 / 1e6, (report, passed)
    assert report["seconds"] >= 1.8


def test_no_terminal_no_line(tmp_path: Path) -> None:
    code = (
        "from wormcast.cli.progress import ProgressLine, facts_of\n"
        "with ProgressLine(quiet=False) as line:\n"
        "    line.show(facts_of('a', 1, 2, None))\n    line.say('said')\n"
    )
    run_code = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment(), "TERM": "xterm"},
        capture_output=True,
        cwd=tmp_path,
    )
    assert run_code.stderr == b"said" + os.linesep.encode()
