"""`wormcast send --changed` and `--retry` with real agents: only what is lacking is sent, and what broke goes on."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_lab.lab import Lab, group
from test_agent_bundles import example, tree
from test_agent_transfer import file_of, names, open_receivers, outputs, run, start_recv, until
from wormcast.cli.offered import LACKS
from wormcast.client import Agent

pytestmark = pytest.mark.network

BLOCK_BYTES = 256 << 10
SMALL_BYTES = 64 << 10
"""More than a list and headers have."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Three hosts, one group; the agents wait for nobody long."""
    groups = [group(1, "repeat", [0, 1, 2]), group(2, "circuit", [0, 1, 2])]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    lab = Lab(3, groups, "--receiver-wait", "3", "--receiver-stall", "60")
    yield lab
    lab.close()
    signal.signal(signal.SIGINT, before)


def send(lab: Lab, path: Path, *more: str) -> tuple[int, dict[str, Any], str]:
    """The exit status, the report and what was said meanwhile."""
    code, out, error = run(lab.start(0, "send", str(path), "-g", "1", "--changed", "--json", *more))
    return code, json.loads(out) if out else {}, error


def receive(lab: Lab, *into: Path, more: tuple[str, ...] = ()) -> list[subprocess.Popen[bytes]]:
    return [start_recv(lab, host, 1, one, "--json", *more) for host, one in enumerate(into, 1)]


def change(path: Path, block: int) -> None:
    """A byte of a block is another."""
    with path.open("r+b") as file:
        file.seek(block * BLOCK_BYTES + 7)
        before = file.read(1)
        file.seek(block * BLOCK_BYTES + 7)
        file.write(bytes([before[0] ^ 1]))


def kept(directory: Path) -> list[Path]:
    return list(directory.glob(".wormcast-kept-*"))


def bytes_in(directory: Path) -> int:
    """Of files below, as far as they can be seen now."""
    size = 0
    for place, _, files in os.walk(directory):
        for name in files:
            try:
                size += (Path(place) / name).stat().st_blocks * 512
            except FileNotFoundError:
                continue
    return size


def whole(where: tuple[Path, ...], file: Path) -> None:
    for one in where:
        assert (one / file.name).read_bytes() == file.read_bytes()


def test_only_changed_blocks_are_sent(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "image.bin", 20_000_000)
    where = outputs(tmp_path)
    for blocks in ([], [3, 40], [9]):
        for block in blocks:
            change(file, block)
        receivers = receive(lab, *where, more=("--overwrite",))
        code, report, error = send(lab, file)
        assert (code, report["delivered"]) == (0, 2), error
        assert report["total_bytes"] == 20_000_000
        most = (len(blocks) * BLOCK_BYTES if blocks else 20_000_000) + SMALL_BYTES
        assert most - SMALL_BYTES <= report["bytes"] <= most
        said = [run(receiver) for receiver in receivers]
        assert [code for code, _, _ in said] == [0, 0], said
        whole(where, file)
        assert [names(one) for one in where] == [["image.bin"]] * 2


def test_who_has_it_is_sent_the_list_alone_and_keeps_what_it_has(lab: Lab, tmp_path: Path) -> None:
    top = example(tmp_path)
    where = outputs(tmp_path)
    for again in range(3):
        receivers = receive(lab, *where)
        code, report, error = send(lab, top)
        assert (code, report["delivered"]) == (0, 2), error
        assert (report["bytes"] < SMALL_BYTES) is (again > 0)
        said = [run(receiver) for receiver in receivers]
        assert [code for code, _, _ in said] == [0, 0], said
        assert [json.loads(out)["path"] for _, out, _ in said] == [str(one / "data") for one in where]
        assert [names(one) for one in where] == [["data"]] * 2
        assert [tree(one / "data") for one in where] == [tree(top)] * 2
    # One host has another: it gets what it lacks, beside what it has, and the other nothing.
    (where[0] / "data" / "d0" / "more").write_bytes(b"own")
    shutil.rmtree(where[0] / "data" / "d1")
    receivers = receive(lab, *where)
    code, report, error = send(lab, top)
    assert (code, report["delivered"]) == (0, 2), error
    assert report["bytes"] < report["total_bytes"] / 5
    assert [run(receiver)[0] for receiver in receivers] == [0, 0]
    assert [names(one) for one in where] == [["data", "data.1"], ["data"]]
    assert tree(where[0] / "data.1") == tree(top)
    assert (where[0] / "data" / "d0" / "more").read_bytes() == b"own"


def half_way(process: subprocess.Popen[bytes], *where: Path, size: int) -> None:
    """Until a good part has come everywhere."""
    until(lambda: process.poll() is not None or all(bytes_in(one) > size // 4 for one in where))
    assert process.poll() is None, process.communicate()


def start_slow(lab: Lab, file: Path, *more: str) -> subprocess.Popen[bytes]:
    return lab.start(0, "send", str(file), "-g", "1", "--changed", "--json", "--rate", "40M", *more)


def goes_on(lab: Lab, file: Path, *where: Path) -> None:
    """Sent again, less comes, and it is whole."""
    receivers = receive(lab, *where)
    code, report, error = send(lab, file)
    assert (code, report["delivered"]) == (0, 2), error
    size = file.stat().st_size
    assert report["bytes"] < size - size // 8, "a part of it was there"
    assert [run(receiver)[0] for receiver in receivers] == [0, 0]
    whole(where, file)
    assert [names(one) for one in where] == [[file.name]] * 2, "nothing else is left"


def test_a_transfer_goes_on_whose_sender_was_killed(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "image.bin", 40_000_000)
    where = outputs(tmp_path)
    receivers = receive(lab, *where)
    sender = start_slow(lab, file)
    half_way(sender, *where, size=40_000_000)
    sender.kill()
    sender.communicate()
    said = [run(receiver) for receiver in receivers]
    assert [code for code, _, _ in said] == [3, 3], said
    for one in where:
        assert [path.name for path in one.iterdir()] == [path.name for path in kept(one)]
    goes_on(lab, file, *where)


def test_a_transfer_goes_on_whose_receiver_was_killed(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "image.bin", 40_000_000)
    where = outputs(tmp_path)
    receivers = receive(lab, *where)
    sender = start_slow(lab, file)
    half_way(sender, *where, size=40_000_000)
    receivers[0].kill()
    receivers[0].communicate()
    code, out, error = run(sender)
    assert code == 3, error
    members = {one["host"]: one["delivered"] for one in json.loads(out)["members"]}
    assert members == {1: False, 2: True}
    assert run(receivers[1])[0] == 0
    assert [path.name for path in where[0].iterdir()] == [path.name for path in kept(where[0])]
    goes_on(lab, file, *where)


@pytest.mark.parametrize("host", [0, 2], ids=["sender", "receiver"])
def test_a_transfer_goes_on_whose_agent_was_killed(lab: Lab, tmp_path: Path, host: int) -> None:
    file = file_of(tmp_path / "image.bin", 40_000_000)
    where = outputs(tmp_path)
    receivers = [lab.start(one, "recv", "-g", "1", "-o", str(into)) for one, into in enumerate(where, 1)]
    until(lambda: all(open_receivers(lab, one, 1) == 1 for one in (1, 2)))
    sender = start_slow(lab, file, "--retry", "60")
    half_way(sender, *where, size=40_000_000)
    lab.agent("kill", host)
    lab.agent("start", host)
    code, out, error = run(sender)
    assert code == 0, (out, error)
    report = json.loads(out)
    assert report["delivered"] == 2
    assert report["bytes"] < 36_000_000
    assert '"again"' in error
    for receiver in receivers:
        receiver.send_signal(signal.SIGINT)
        run(receiver)
    whole(where, file)
    assert [names(one) for one in where] == [["image.bin"]] * 2


def test_retry_stops_when_all_have_it_and_gives_up_after_the_last(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "a.bin", 3_000_000)
    where = outputs(tmp_path)
    [receiver] = receive(lab, where[0])
    code, report, error = send(lab, file, "--retry", "1")
    assert code == 3
    members = {one["host"]: one["delivered"] for one in report["members"]}
    assert members == {1: True, 2: False}, "the first has it, whatever became of its receiver"
    assert error.count('"again"') == 1
    assert run(receiver)[0] == 0


def test_what_a_member_had_in_a_try_before_does_not_count_where_it_lacks_it_now(
    lab: Lab, tmp_path: Path
) -> None:
    """The second host never receives, so that there is another try."""
    file = file_of(tmp_path / "image.bin", 8_000_000)
    where = outputs(tmp_path)
    [receiver] = receive(lab, where[0])
    sender = lab.start(0, "send", str(file), "-g", "1", "--retry", "4", "--json")
    assert run(receiver)[0] == 0
    whole(where[:1], file)
    # As a host that was replaced: it has nothing, and no room.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(where[0])], check=True)
    try:
        [receiver] = receive(lab, where[0])
        code, out, error = run(sender)
        assert code == 3, error
        members = {one["host"]: one for one in json.loads(out)["members"]}
        assert not members[1]["delivered"], members
        assert "no space left on device" in members[1]["reason"]
        receiver.send_signal(signal.SIGINT)
        run(receiver)
    finally:
        subprocess.run(["umount", str(where[0])], check=True)


def test_what_comes_again_for_others_counts_once(lab: Lab, tmp_path: Path) -> None:
    first, second = file_of(tmp_path / "a.bin", 3_000_000), file_of(tmp_path / "b.bin", 300_000, seed=2)
    where = outputs(tmp_path)
    counting = start_recv(lab, 1, 1, where[0], "--json", "--count", "2")
    sender = lab.start(0, "send", str(first), "-g", "1", "--retry", "20", "--json")
    until(lambda: sender.poll() is not None or (where[0] / "a.bin").exists())
    other = start_recv(lab, 2, 1, where[1], "--json", "--count", "2")
    code, _, error = run(sender)
    assert code == 0, error
    assert '"again"' in error, "the first host got it in a try before"
    assert counting.poll() is None, "it waits for another file"
    code, report, error = send(lab, second)
    assert (code, report["delivered"]) == (0, 2), error
    assert [run(one)[0] for one in (counting, other)] == [0, 0]
    whole(where, first)
    whole(where, second)


def test_the_deadline_ends_all_tries(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "a.bin", 3_000_000)
    started = time.monotonic()
    code, report, error = send(lab, file, "--retry", "1000", "--deadline", "8")
    assert code in (3, 4), error
    assert time.monotonic() - started >= 3, "a receiver is waited for"
    assert [one["host"] for one in report["members"]] == [1, 2]
    for wrong in ("0", "-3", "soon", "2020-01-01T00:00"):
        code, _, error = run(lab.start(0, "send", str(file), "-g", "1", "--deadline", wrong))
        assert code == 2
        assert wrong in error


def test_what_changes_at_a_receiver_meanwhile_fails_it_alone(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "image.bin", 30_000_000)
    where = outputs(tmp_path)
    for one in where:
        shutil.copy(file, one)
    for block in range(0, 100, 2):
        change(file, block)
    receivers = receive(lab, *where, more=("--overwrite",))
    sender = start_slow(lab, file)
    # The list has been compared once something is made of it.
    until(lambda: sender.poll() is not None or all(bytes_in(one) > 32_000_000 for one in where))
    change(where[0] / "image.bin", 101)
    mine = (where[0] / "image.bin").read_bytes()
    code, out, error = run(sender)
    assert code == 3, error
    members = {one["host"]: one["reason"] for one in json.loads(out)["members"]}
    assert members == {1: "image.bin changed here since the list came", 2: None}
    code, out, _ = run(receivers[0])
    assert (code, json.loads(out)["error"]) == (3, "image.bin changed here since the list came")
    assert (where[0] / "image.bin").read_bytes() == mine
    assert run(receivers[1])[0] == 0
    whole(where[1:], file)
    goes_on_overwriting = receive(lab, *where, more=("--overwrite",))
    assert send(lab, file)[0] == 0
    assert [run(receiver)[0] for receiver in goes_on_overwriting] == [0, 0]
    whole(where, file)


def test_without_room_a_receiver_refuses_before_anything_is_sent(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "image.bin", 8_000_000)
    where = outputs(tmp_path)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(where[0])], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(where[1])], check=True)
    try:
        receivers = receive(lab, *where)
        code, report, _ = send(lab, file)
        assert (code, report["bytes"]) == (3, 0)
        assert all("no space left on device" in one["reason"] for one in report["members"])
        for receiver in receivers:
            receiver.send_signal(signal.SIGINT)
            assert "will not be taken: no space" in run(receiver)[2]
        assert [names(one) for one in where] == [[], []]
    finally:
        for one in where:
            subprocess.run(["umount", str(one)], check=True)


def test_answers_that_are_none_mean_that_all_is_lacking(lab: Lab, tmp_path: Path) -> None:
    """A receiver that has the file, and one that says that it has it, and more."""
    file = file_of(tmp_path / "image.bin", 3_000_000)
    where = outputs(tmp_path)
    shutil.copy(file, where[0])
    for text in (
        "",
        "lacks",
        LACKS,
        LACKS + "!!",
        LACKS + "QUJD",
        LACKS + "A" * 60_000,
        "why:" + "\x1b" * 500,
    ):
        [receiver] = receive(lab, where[0])
        sender = lab.start(0, "send", str(file), "-g", "1", "--changed", "--json")
        with Agent(lab.socket(2), timeout_s=None) as agent, agent.open_receiver(1) as liar:
            answered = 0
            while answered < 2:
                event = liar.next_event(600)
                assert event is not None
                if type(event).__name__ == "MessageEnd":
                    if answered == 0:
                        event.message.answer(text)
                        with pytest.raises(Exception, match="was answered before"):
                            event.message.answer(text)
                        with pytest.raises(Exception, match="at most 65536"):
                            event.message.answer("x" * 65_537)
                    event.message.confirm()
                    answered += 1
        code, out, error = run(sender)
        assert code == 0, error
        assert json.loads(out)["bytes"] > 3_000_000
        assert run(receiver)[0] == 0
        assert names(where[0]) == ["image.bin"]


def test_a_directory_of_which_one_in_a_hundred_files_changed(lab: Lab, tmp_path: Path) -> None:
    draw = random.Random(5)
    top = tmp_path / "data"
    for number in range(300):
        (top / f"d{number % 9}").mkdir(parents=True, exist_ok=True)
        (top / f"d{number % 9}" / f"f{number}").write_bytes(draw.randbytes(5_000))
    where = outputs(tmp_path)
    for changed in ([], [7, 70, 170]):
        for number in changed:
            (top / f"d{number % 9}" / f"f{number}").write_bytes(draw.randbytes(5_000))
        receivers = receive(lab, *where, more=("--overwrite",))
        code, report, error = send(lab, top)
        assert code == 0, error
        if changed:
            assert 15_000 <= report["bytes"] < 15_000 + SMALL_BYTES
        assert [run(receiver)[0] for receiver in receivers] == [0, 0]
        assert [tree(one / "data") for one in where] == [tree(top)] * 2
        assert [names(one) for one in where] == [["data"]] * 2


def test_who_has_the_list_has_nothing_yet(lab: Lab, tmp_path: Path) -> None:
    """One confirms the list, the other never does."""
    file = file_of(tmp_path / "image.bin", 3_000_000)
    with (
        Agent(lab.socket(1), timeout_s=None) as one,
        Agent(lab.socket(2), timeout_s=None) as two,
        one.open_receiver(1) as holding,
        two.open_receiver(1) as confirming,
    ):
        words = ["send", str(file), "-g", "1", "--changed", "--json", "--timeout", "5"]
        sender = lab.start(0, *words)
        ended = set()
        while len(ended) < 2:
            for receiver in (holding, confirming):
                event = receiver.next_event(0.05)
                if type(event).__name__ == "MessageEnd":
                    ended.add(receiver)
                    if receiver is confirming:
                        event.message.confirm()
        code, out, error = run(sender)
    assert code == 4, error
    report = json.loads(out)
    assert report["leftover"] == "cancelled"
    assert {one["host"]: one["state"] for one in report["members"]} == {1: "pending", 2: "pending"}


def test_what_is_unchanged_is_not_overwritten_by_what_has_its_name_here(lab: Lab, tmp_path: Path) -> None:
    """Both of them are shown as `env`."""
    (tmp_path / ".env").write_bytes(b"first")
    (tmp_path / "env").write_bytes(b"second")
    where = outputs(tmp_path)
    for _ in range(3):
        receivers = receive(lab, *where, more=("--overwrite",))
        code, _, error = send(lab, tmp_path / ".env", str(tmp_path / "env"))
        assert code == 0, error
        assert [run(receiver)[0] for receiver in receivers] == [0, 0]
        for one in where:
            assert {path.read_bytes() for path in one.iterdir()} == {b"first", b"second"}


def test_what_broken_transfers_have_left_goes_when_room_is_short(lab: Lab, tmp_path: Path) -> None:
    file = file_of(tmp_path / "image.bin", 2_500_000)
    where = outputs(tmp_path)
    for one in where:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(one)], check=True)
    try:
        for one in where:
            for number in range(2):
                (left := one / f".wormcast-kept-{number}").mkdir(mode=0o700)
                file_of(left / "other.bin", 1_200_000)
                os.utime(left, (time.time() - number * 1000,) * 2)
        receivers = receive(lab, *where)
        code, report, error = send(lab, file)
        assert (code, report["delivered"]) == (0, 2), error
        assert [run(receiver)[0] for receiver in receivers] == [0, 0]
        whole(where, file)
        assert [[path.name for path in kept(one)] for one in where] == [[".wormcast-kept-0"]] * 2
    finally:
        for one in where:
            subprocess.run(["umount", str(one)], check=True)
