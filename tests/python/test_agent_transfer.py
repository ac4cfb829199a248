"""`wormcast send`, `recv` and `status` with real agents, and what they do when things go wrong."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_lab.lab import Lab, group
from wormcast.client import Agent, MessageBegin, RefusedError
from wormcast.client.files import LAG_BYTES_MIN, encode_file_start
from wormcast.network.groups import RATE_BITS_MAX, RATE_BITS_MIN

pytestmark = pytest.mark.network

LIMIT_S = 600
# As on a file system without unnamed files.
HIDDEN = [
    sys.executable,
    "-c",
    "import os; del os.O_TMPFILE\nfrom wormcast.cli.main import main\nmain(prog_name='wormcast')",
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Three hosts, a group for most schemes."""
    groups = [group(n, s, [0, 1, 2]) for n, s in enumerate(("repeat", "tree", "circuit", "switch"), 1)]
    # Shells start what runs in the background deaf to SIGINT, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    lab = Lab(3, groups, "--receiver-wait", "3")
    yield lab
    lab.close()
    signal.signal(signal.SIGINT, before)


def run(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, error = process.communicate(timeout=LIMIT_S)
    return process.returncode, out.decode(), error.decode()


def start_recv(
    lab: Lab, host: int, number: int, output: Path, *more: str, **options: Any
) -> subprocess.Popen[bytes]:
    """A receiver that is open when this returns."""
    arguments = ["recv", "-g", str(number), "-o", str(output), "--count", "1", "--timeout", "300", *more]
    process = lab.start(host, *arguments, **options)
    until(lambda: open_receivers(lab, host, number) == 1)
    return process


def open_receivers(lab: Lab, host: int, number: int) -> int:
    with Agent(lab.socket(host)) as agent:
        return next(int(g["receivers"]) for g in agent.status()["groups"] if g["group"] == number)


def until(condition: object, limit_s: float = 600.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)


def file_of(path: Path, size: int, seed: int = 1) -> Path:
    path.write_bytes(random.Random(seed).randbytes(size))
    return path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def written(process: subprocess.Popen[bytes], directory: Path) -> int:
    """Bytes of the file without name, or with a hidden one, that a process has open in a directory."""
    size = 0
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            if directory in link.readlink().parents:
                size += link.stat().st_size
        except FileNotFoundError:
            continue
    return size


def outputs(tmp_path: Path) -> tuple[Path, Path]:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    return one, two


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_file_reaches_every_member(lab: Lab, tmp_path: Path, number: int) -> None:
    file = file_of(tmp_path / "image.bin", 3_000_001, number)
    one, two = outputs(tmp_path)
    receivers = [start_recv(lab, 1, number, one, "--json"), start_recv(lab, 2, number, two, "--fsync")]
    code, out, error = run(lab.start(0, "send", str(file), "-g", str(number), "--json"))
    assert code == 0, error
    report = json.loads(out)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert (report["name"], report["bytes"], report["sha256"]) == ("image.bin", 3_000_001, digest)
    assert report["members"] == [
        {"host": host, "delivered": True, "reason": None, "left_out": False} for host in (1, 2)
    ]
    assert (report["delivered"], report["failed"]) == (2, 0)
    results = [run(receiver) for receiver in receivers]
    assert [result[0] for result in results] == [0, 0], results
    received = json.loads(results[0][1])
    assert (received["origin"], received["sha256"]) == (0, digest)
    assert Path(received["path"]) == one / "image.bin"
    for directory in (one, two):
        assert names(directory) == ["image.bin"]
        assert (directory / "image.bin").read_bytes() == file.read_bytes()
        assert (directory / "image.bin").stat().st_mode & 0o777 == 0o644


def test_a_full_disk_fails_that_member_alone(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "large.bin", 4_000_000)
    one, small = outputs(tmp_path)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=True)
    try:
        good = start_recv(lab, 1, 3, one)
        full = start_recv(lab, 2, 3, small)
        code, out, _ = run(lab.start(0, "send", str(file), "-g", "3"))
        assert code == 3
        assert "no space left on device" in out
        assert "1 of 2 members have it" in out
        code, _, error = run(full)
        assert code == 3
        assert "large.bin from host 0: no space left on device" in error
        assert names(small) == []
        code, _, error = run(good)
        assert code == 0, error
        assert (one / "large.bin").read_bytes() == file.read_bytes()
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_the_command_knows_the_rates_that_the_agent_takes(lab: Lab) -> None:
    with Agent(lab.socket(0)) as agent:
        for wrong in (RATE_BITS_MIN - 1, RATE_BITS_MAX + 1):
            with pytest.raises(RefusedError, match=f"it must be {RATE_BITS_MIN} to {RATE_BITS_MAX}$"):
                agent.open_sender(1, rate_bits=wrong)
        for right in (RATE_BITS_MIN, RATE_BITS_MAX):
            agent.open_sender(1, rate_bits=right).close()


def test_the_command_knows_how_far_the_agent_lets_receivers_lag(lab: Lab) -> None:
    with Agent(lab.socket(0)) as sending, Agent(lab.socket(1)) as receiving:
        receiver = receiving.open_receiver(1, origin=0)
        sender = sending.open_sender(1)
        sender.write(bytes(100_000))
        event = receiver.next_event(600.0)
        assert isinstance(event, MessageBegin)
        with pytest.raises(RefusedError, match=f": {LAG_BYTES_MIN} or more$"):
            event.message.bound_lag(LAG_BYTES_MIN - 1)
        for right in (LAG_BYTES_MIN, 1 << 60):
            event.message.bound_lag(right)


def test_a_file_goes_no_faster_than_asked(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "paced", 500_000)
    receivers = [start_recv(lab, host, 1, where) for host, where in enumerate(outputs(tmp_path), start=1)]
    code, out, _ = run(lab.start(0, "send", str(file), "-g", "1", "--rate", "2M", "--json"))
    assert code == 0
    # What is saved up of the rate goes at once.
    assert json.loads(out)["seconds"] > 1.9
    assert [run(receiver)[0] for receiver in receivers] == [0, 0]


def test_a_member_without_receiver_is_named(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "x", 1000)
    one, _ = outputs(tmp_path)
    good = start_recv(lab, 1, 1, one)
    code, out, _ = run(lab.start(0, "send", str(file), "-g", "group1", "--json"))
    assert code == 3
    assert json.loads(out)["members"][1] == {
        "host": 2,
        "delivered": False,
        "reason": "application gave up",
        "left_out": False,
    }
    assert run(good)[0] == 0
    good = start_recv(lab, 1, 1, one)
    code, out, _ = run(lab.start(0, "send", str(file), "-g", "group1"))
    assert (code, "no receiver took it in time, or it ended" in " ".join(out.split())) == (3, True)
    assert run(good)[0] == 0


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("/etc/shadow", "shadow"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("..", "unnamed"),
        (".bashrc", "bashrc"),
        ("a\nb\x1b[2J", "a_b_[2J"),
        ("n" * 400, "n" * 200),
    ],
)
def test_names_of_strangers_stay_in_the_directory(lab: Lab, tmp_path: Path, name: str, kept: str) -> None:
    one, two = outputs(tmp_path)
    receivers = [start_recv(lab, 1, 2, one), start_recv(lab, 2, 2, two)]
    content = b"content"
    header = json.dumps({"name": name, "size": len(content)}).encode()
    with Agent(lab.socket(0)) as agent, agent.open_sender(2) as sender:
        start = b"WCFILE1\n" + len(header).to_bytes(4, "big") + header
        stable = sender.send(start + content + hashlib.sha256(content).digest(), LIMIT_S)
    assert not stable.failed
    assert [run(receiver)[0] for receiver in receivers] == [0, 0]
    for directory in (one, two):
        assert names(directory) == [kept]
    assert names(tmp_path) == ["one", "two"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda good: good[:-1] + bytes([good[-1] ^ 1]), "SHA-256"),
        (lambda good: good[:-40], "announced"),
        (lambda good: good[:-32] + b"more" + good[-32:], "announced"),
        (lambda good: b"JPEG" + good[4:], "not a file"),
        (lambda _: b"", "too short"),
    ],
    ids=["digest", "short", "long", "magic", "empty"],
)
def test_a_damaged_file_is_not_kept(lab: Lab, tmp_path: Path, damage: object, words: str) -> None:
    one, two = outputs(tmp_path)
    receivers = [start_recv(lab, 1, 1, one), start_recv(lab, 2, 1, two)]
    content = b"content" * 100
    good = encode_file_start("f", len(content)) + content + hashlib.sha256(content).digest()
    with Agent(lab.socket(0)) as agent, agent.open_sender(1) as sender:
        stable = sender.send(damage(good), LIMIT_S)  # type: ignore[operator]
    assert [outcome.reason for outcome in stable.failed] == ["application gave up"] * 2
    for receiver, directory in zip(receivers, (one, two), strict=True):
        code, _, error = run(receiver)
        assert code == 3
        assert words in error
        assert names(directory) == []


@pytest.mark.parametrize("size", [10**30, 1 << 63, -1, 10**4000, 1e400, True, "7", [7]])
def test_a_size_that_no_file_has_ends_no_recv_at_a_terminal(
    lab: Lab, tmp_path: Path, size: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes standard error for a terminal then
    one, two = outputs(tmp_path)
    receivers = [start_recv(lab, 1, 1, one, "--count", "2"), start_recv(lab, 2, 1, two, "--count", "2")]
    header = json.dumps({"name": "large", "size": size}).encode()
    # Markup of rich in a name is only a name.
    good = encode_file_start("[/red]a", 1) + b"x" + hashlib.sha256(b"x").digest()
    with Agent(lab.socket(0)) as agent, agent.open_sender(1) as sender:
        stable = sender.send(b"WCFILE1\n" + len(header).to_bytes(4, "big") + header + bytes(1000), LIMIT_S)
        assert [outcome.reason for outcome in stable.failed] == ["application gave up"] * 2
        assert not sender.send(good, LIMIT_S).failed
    for receiver, directory in zip(receivers, (one, two), strict=True):
        code, _, error = run(receiver)
        assert code == 3, error
        assert "Traceback" not in error
        assert "announced" in error or "damaged" in error
        assert names(directory) == ["red]a"]


def test_existing_files_are_kept_unless_asked(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "a.txt", 100)
    one, two = outputs(tmp_path)
    for directory in (one, two):
        (directory / "a.txt").write_bytes(b"old")
    receivers = [start_recv(lab, 1, 1, one), start_recv(lab, 2, 1, two, "--overwrite")]
    assert run(lab.start(0, "send", str(file), "-g", "1"))[0] == 0
    assert [run(receiver)[0] for receiver in receivers] == [0, 0]
    assert names(one) == ["a.1.txt", "a.txt"]
    assert (one / "a.txt").read_bytes() == b"old"
    assert names(two) == ["a.txt"]
    assert (two / "a.txt").read_bytes() == file.read_bytes()


def test_pipes_from_standard_input_to_standard_output(lab: Lab, tmp_path: Path) -> None:
    content = random.Random(4).randbytes(700_000)
    one, _ = outputs(tmp_path)
    taken = tmp_path / "taken"
    with taken.open("wb") as out:
        piped = lab.start(1, "recv", "-g", "2", "-o", "-", "--count", "1", output=out)
    receiver = start_recv(lab, 2, 2, one)
    until(lambda: open_receivers(lab, 1, 2) == 1)
    sender = lab.start(0, "send", "-", "-g", "2", "--name", "piped", stdin=subprocess.PIPE)
    sender.communicate(content, timeout=LIMIT_S)
    assert sender.returncode == 0
    _, error = piped.communicate(timeout=LIMIT_S)
    assert (piped.returncode, error) == (0, b"")
    assert taken.read_bytes() == content
    assert run(receiver)[0] == 0
    assert (one / "piped").read_bytes() == content


def test_an_interrupted_receiver_leaves_nothing_behind(lab: Lab, tmp_path: Path) -> None:
    one, two = outputs(tmp_path)
    interrupted, other = start_recv(lab, 1, 1, one, program=HIDDEN), start_recv(lab, 2, 1, two)
    with Agent(lab.socket(0)) as agent, agent.open_sender(1) as sender:
        content = random.Random(5).randbytes(2_000_000)
        sender.write(encode_file_start("f", len(content)) + content)
        until(lambda: written(interrupted, one) > 1_000_000)
        assert len(names(one)) == 1
        interrupted.send_signal(signal.SIGINT)
        assert run(interrupted)[0] == 130
        assert names(one) == []
        sender.write(hashlib.sha256(content).digest())
        stable = sender.wait_stable(sender.end(), LIMIT_S)
    assert [(o.host, o.delivered) for o in stable.outcomes] == [(1, False), (2, True)]
    assert run(other)[0] == 0
    assert (two / "f").read_bytes() == content


def test_waiting_in_vain_ends_with_its_own_status(lab: Lab, tmp_path: Path) -> None:
    arguments = ["recv", "-g", "1", "-o", str(tmp_path), "--timeout", "0.3"]
    code, _, error = run(lab.start(1, *arguments, "--count", "1"))
    assert code == 4
    assert "nothing has come for 0.3 s" in error
    assert run(lab.start(1, *arguments))[0] == 0
    file = file_of(tmp_path / "x", 10)
    code, _, error = run(lab.start(0, "send", str(file), "-g", "1", "--timeout", "0.2"))
    assert code == 4
    assert "after 0.2 s" in error
    # The file is on its way all the same, for whoever opens a receiver soon enough.
    one, two = outputs(tmp_path)
    late = [lab.start(h, "recv", "-g", "1", "-o", str(d), "--count", "1") for h, d in ((1, one), (2, two))]
    assert [run(receiver)[0] for receiver in late] == [0, 0]


def test_wrong_use_says_what_is_right(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "x", 10)
    code, out, error = run(lab.start(0, "send", str(file), "-g", "9", "--json"))
    assert code == 2
    assert "host 0 is not a member of group 9; it is a member of: 1 (group1), 2 (group2)" in error
    refusal = json.loads(error)["error"]
    assert (refusal["code"], refusal["choices"], out) == ("unknown-group", [1, 2, 3, 4], "")
    code, _, error = run(lab.start(0, "recv", "-g", "255", "-o", str(tmp_path)))
    assert (code, "broadcast" in error) == (2, True)
    code, _, error = run(lab.start(0, "recv", "-g", "1", "-o", str(file)))
    assert (code, "is a file, not a directory" in error) == (2, True)
    for rate in ("7999", "2000G", "x", "-1M", "20Mb", ""):
        code, _, error = run(lab.start(0, "send", str(file), "-g", "1", "--rate", rate))
        assert (code, "from 8000 to 1000G; write it as 20M" in error) == (2, True)
    for lag in ("65535", "63k", "1025G", "8MM", "-1", ""):
        code, _, error = run(lab.start(0, "send", str(file), "-g", "1", "--slow", "drop", "--lag", lag))
        assert (code, "from 64k to 1024G; write it as 8M" in error) == (2, True)
    code, _, error = run(lab.start(0, "send", str(file), "-g", "1", "--lag", "8M"))
    assert (code, "--lag has no effect with --slow wait" in error) == (2, True)
    code, _, error = run(lab.start(0, "send", str(tmp_path / "none"), "-g", "1"))
    assert (code, "No such file" in error) == (2, True)
    code, _, error = run(lab.start(None, "status"))
    assert code == 69
    assert "no agent at /nowhere/agent.sock: there is no such socket; is wormcast-agent running?" in error
    receiver = start_recv(lab, 1, 1, tmp_path)
    code, _, error = run(lab.start(1, "recv", "-g", "1", "-o", str(tmp_path)))
    assert code == 2
    assert f"process {receiver.pid}" in error
    receiver.send_signal(signal.SIGINT)
    run(receiver)


def test_status_for_people_and_programs(lab: Lab) -> None:
    code, out, _ = run(lab.start(0, "status", "--json"))
    value = json.loads(out)
    assert code == 0
    assert (value["name"], value["host"], value["plan_epoch"]) == ("h0", 0, 1)
    assert value["controller"]["connected"] is True
    assert [g["group"] for g in value["groups"]] == [1, 2, 3, 4]
    code, out, _ = run(lab.start(0, "status"))
    assert code == 0
    assert "h0: host 0" in out
    assert "connected" in out
