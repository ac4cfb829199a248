"""What `wormcast recv` leaves where it writes: whole files, with the sender's permissions, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_lab.lab import Lab, environment, group
from test_agent_transfer import (
    HIDDEN,
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
from wormcast.cli.placing import PARTIAL_PREFIX, PartialFile, remove_left_behind
from wormcast.client import Agent, Sender
from wormcast.client.files import FileDecoder, FileFormatError, encode_file_start

CONTENT = random.Random(7).randbytes(3_000_000)
DIGEST = hashlib.sha256(CONTENT).digest()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Three hosts, one group; the agents wait for nobody long."""
    lab = Lab(3, [group(1, "repeat", [0, 1, 2])], "--receiver-wait", "3", "--receiver-stall", "15")
    yield lab
    lab.close()


@contextmanager
def half_sent(lab: Lab, host: int, name: str) -> Iterator[Sender]:
    """A sender in the middle of a file: its content is out, its digest is not."""
    with Agent(lab.socket(host)) as agent, agent.open_sender(1) as sender:
        sender.write(encode_file_start(name, len(CONTENT)) + CONTENT)
        yield sender


def finish(sender: Sender) -> list[tuple[int, bool]]:
    sender.write(DIGEST)
    stable = sender.wait_stable(sender.end(), LIMIT_S)
    return [(outcome.host, outcome.delivered) for outcome in stable.outcomes]


def send(lab: Lab, host: int, file: Path) -> tuple[int, str, str]:
    return run(lab.start(host, "send", str(file), "-g", "1"))


@pytest.mark.network
@pytest.mark.parametrize("mode", [0o755, 0o4755, 0o600, 0o777, 0o444])
def test_permissions_and_time_come_along_and_no_rights_of_others(lab: Lab, tmp_path: Path, mode: int) -> None:
    file = file_of(tmp_path / "script.sh", 1000)
    file.chmod(mode)
    os.utime(file, ns=(1, 1_234_567_890_123_456_789))
    one, two = outputs(tmp_path)
    receivers = [start_recv(lab, 1, 1, one), start_recv(lab, 2, 1, two, "--no-preserve")]
    before = time.time()
    assert send(lab, 0, file)[0] == 0
    assert [run(receiver)[0] for receiver in receivers] == [0, 0]
    here = (one / "script.sh").stat()
    assert oct(here.st_mode & 0o7777) == oct(mode & 0o777 & ~0o022)
    assert here.st_mtime_ns == 1_234_567_890_123_456_789
    fresh = (two / "script.sh").stat()
    assert oct(fresh.st_mode & 0o7777) == oct(0o644)
    assert fresh.st_mtime >= before - 1


@pytest.mark.network
def test_a_pipe_has_no_permissions_to_give(lab: Lab, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o777)
    one, two = outputs(tmp_path)
    receivers = [start_recv(lab, 1, 1, one), start_recv(lab, 2, 1, two)]
    sending = lab.start(0, "send", str(fifo), "-g", "1")
    fifo.write_bytes(b"through a pipe")
    assert run(sending)[0] == 0
    assert [run(receiver)[0] for receiver in receivers] == [0, 0]
    assert (one / "fifo").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": "755"},
        {"mode": 0o4755},
        {"mode": -1},
        {"mode": True},
        {"mode": 1.5},
        {"mtime_ns": -1},
        {"mtime_ns": 1 << 63},
        {"mtime_ns": 10**4000},
        {"mtime_ns": "now"},
        {"lag_bytes": 65_535},
        {"lag_bytes": "8M"},
        {"lag_bytes": True},
    ],
)
def test_a_header_that_says_what_cannot_be_is_refused(fields: dict[str, object]) -> None:
    header = json.dumps({"name": "f", "size": 1, **fields}).encode()
    with pytest.raises(FileFormatError, match=r"possible: \d+ to|damaged"):
        FileDecoder().feed(b"WCFILE1\n" + len(header).to_bytes(4, "big") + header)


def test_what_the_header_cannot_say_is_left_out() -> None:
    decoder = FileDecoder()
    decoder.feed(encode_file_start("old", None, 0o104755, -5))
    assert decoder.header is not None
    assert (decoder.header.mode, decoder.header.mtime_ns, decoder.header.size) == (0o755, None, None)


@pytest.mark.network
def test_a_file_that_shrinks_meanwhile_is_not_sent(lab: Lab, tmp_path: Path) -> None:
    one, two = outputs(tmp_path)
    file = tmp_path / "large"
    file.touch()
    os.truncate(file, 1 << 33)
    receivers = [start_recv(lab, 1, 1, one), start_recv(lab, 2, 1, two)]
    sending = lab.start(0, "send", str(file), "-g", "1")
    until(lambda: written(receivers[0], one) > 1_000_000)
    until(lambda: written(receivers[1], two) > 1_000_000)
    os.truncate(file, 1000)
    code, _, error = run(sending)
    assert code == 2, error
    assert f"the file changed while it was sent: {1 << 33} bytes at first, then 1000" in " ".join(
        error.split()
    )
    for receiver, directory in zip(receivers, (one, two), strict=True):
        code, _, error = run(receiver)
        assert code == 3
        assert "large from host 0: its origin cancelled it" in error
        assert names(directory) == []


def process_of(path: Path) -> int:
    """Of the program that listens there."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("3i", credentials)[0])


@pytest.mark.network
def test_a_file_too_large_for_the_agent_is_that_files_failure(lab: Lab, tmp_path: Path) -> None:
    one, two = outputs(tmp_path)
    file = file_of(tmp_path / "large", 3_000_000)
    agent = process_of(lab.socket(2))
    before = resource.prlimit(agent, resource.RLIMIT_FSIZE)
    resource.prlimit(agent, resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        receivers = [start_recv(lab, 1, 1, one), start_recv(lab, 2, 1, two)]
        code, said, _ = send(lab, 0, file)
        assert code == 3
        assert "input/output error" in " ".join(said.split())
    finally:
        resource.prlimit(agent, resource.RLIMIT_FSIZE, before)
    assert run(receivers[0])[0] == 0
    code, _, error = run(receivers[1])
    assert code == 3
    assert "large from host 0: cannot write the file: File too large" in error
    assert names(two) == []


@pytest.mark.network
def test_a_killed_receiver_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    one, two = outputs(tmp_path)
    killed, other = start_recv(lab, 1, 1, one), start_recv(lab, 2, 1, two)
    with half_sent(lab, 0, "f") as sender:
        until(lambda: written(killed, one) > 1_000_000)
        assert names(one) == []
        killed.kill()
        run(killed)
        assert finish(sender) == [(1, False), (2, True)]
    assert names(one) == []
    assert run(other)[0] == 0
    assert (two / "f").read_bytes() == CONTENT


@pytest.mark.network
def test_without_unnamed_files_the_next_receiver_cleans_up_what_no_program_has(
    lab: Lab, tmp_path: Path
) -> None:
    one, two = outputs(tmp_path)
    own = one / f"{PARTIAL_PREFIX}of-the-user"
    own.write_bytes(b"not a temporary file")
    killed = start_recv(lab, 1, 1, one, program=HIDDEN)
    alive = start_recv(lab, 2, 1, one, program=HIDDEN)
    with half_sent(lab, 0, "f") as sender:
        until(lambda: min(written(killed, one), written(alive, one)) > 1_000_000)
        killed.kill()
        run(killed)
        assert len(names(one)) == 3
        # It begins while the other one still writes there.
        third = start_recv(lab, 1, 1, one)
        assert len(names(one)) == 2
        assert finish(sender) == [(1, False), (2, True)]
    assert run(alive)[0] == 0
    assert names(one) == [own.name, "f"]
    assert (one / "f").read_bytes() == CONTENT
    third.kill()
    run(third)
    assert two.exists()


@pytest.mark.parametrize("unnamed", [True, False])
def test_many_at_once_of_one_name_all_find_a_place(
    tmp_path: Path, unnamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    (tmp_path / "a.txt").mkdir()
    (tmp_path / "a.1.txt").symlink_to("/nowhere")
    partial = [PartialFile(tmp_path) for _ in range(8)]
    assert remove_left_behind(tmp_path) == 0
    for number, file in enumerate(partial):
        file.out.write(str(number).encode())
        file.out.flush()
    threads = [
        threading.Thread(target=file.place, args=("a.txt",), kwargs={"overwrite": False}) for file in partial
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for file in partial:
        file.close()
    assert names(tmp_path) == sorted(["a.txt", *(f"a.{n}.txt" for n in range(1, 10))])
    found = sorted((tmp_path / f"a.{n}.txt").read_text() for n in range(2, 10))
    assert found == [str(n) for n in range(8)]


@pytest.mark.parametrize("unnamed", [True, False])
def test_one_that_replaces_leaves_no_other_name(
    tmp_path: Path, unnamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE")
    (tmp_path / "target").write_bytes(b"kept")
    (tmp_path / "a").symlink_to("target")
    (tmp_path / "directory").mkdir()
    file = PartialFile(tmp_path)
    file.out.write(b"new")
    file.out.flush()
    with pytest.raises(IsADirectoryError):
        file.place("directory", overwrite=True)
    assert file.place("a", overwrite=True) == tmp_path / "a"
    file.close()
    assert names(tmp_path) == ["a", "directory", "target"]
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "target").read_bytes() == b"kept"


def start_stdout(
    lab: Lab, host: int, output: object, *more: str, **options: object
) -> subprocess.Popen[bytes]:
    process = lab.start(host, "recv", "-g", "1", "-o", "-", "--json", *more, output=output, **options)
    until(lambda: open_receivers(lab, host, 1) == 1)
    return process


@pytest.mark.network
def test_standard_output_gets_one_whole_message_after_another(lab: Lab, tmp_path: Path) -> None:
    """Two origins at once, of which one stops in its middle for a while."""
    out = tmp_path / "out"
    with out.open("wb") as output:
        receiver = start_stdout(lab, 2, output, "--count", "2")
    small = file_of(tmp_path / "small", 700_000)
    one, _ = outputs(tmp_path)
    other = start_recv(lab, 1, 1, one)
    with half_sent(lab, 0, "first") as sender:
        other_too = start_recv(lab, 0, 1, one)
        assert send(lab, 1, small)[0] == 0
        # The one that stands still holds up nobody.
        until(lambda: receiver.poll() is None and out.stat().st_size)
        assert out.read_bytes() == small.read_bytes()
        assert finish(sender) == [(1, True), (2, True)]
    assert [run(process)[0] for process in (other, other_too)] == [0, 0]
    assert receiver.wait(LIMIT_S) == 0
    assert out.read_bytes() == small.read_bytes() + CONTENT


@pytest.mark.network
def test_who_reads_slowly_loses_nothing_however_long_it_takes(lab: Lab, tmp_path: Path) -> None:
    """Longer than the agent waits for a program that takes nothing."""
    receiver = start_stdout(lab, 2, subprocess.PIPE, "--count", "2")
    assert receiver.stdout is not None
    one, _ = outputs(tmp_path)
    takers = [start_recv(lab, 1, 1, one), start_recv(lab, 0, 1, one)]
    first, second = file_of(tmp_path / "first", 400_000), file_of(tmp_path / "second", 5, 2)
    sending = [lab.start(0, "send", str(first), "-g", "1")]
    got = bytearray(os.read(receiver.stdout.fileno(), 4096))
    sending.append(lab.start(1, "send", str(second), "-g", "1"))
    begun = time.monotonic()
    while time.monotonic() - begun < 25:
        got += os.read(receiver.stdout.fileno(), 4096)
        time.sleep(0.5)
    assert [process.poll() for process in sending] == [None, None]
    got += receiver.stdout.read()
    assert bytes(got) == first.read_bytes() + second.read_bytes()
    assert [run(process)[0] for process in [*sending, *takers]] == [0, 0, 0, 0]
    assert receiver.wait(LIMIT_S) == 0
    assert receiver.stderr is not None
    said = [json.loads(line) for line in receiver.stderr.read().splitlines()]
    assert "second from host 1 is here and waits: first from host 0" in said[0]["notice"]["message"]


@pytest.mark.network
def test_nothing_follows_half_a_message(lab: Lab, tmp_path: Path) -> None:
    """With --from it is written as it comes; without, only what is whole."""
    streamed = start_stdout(lab, 1, subprocess.PIPE, "--from", "0")
    kept = start_stdout(
        lab, 2, subprocess.PIPE, "--count", "2", env={**environment(), "TMPDIR": str(tmp_path)}
    )
    assert streamed.stdout is not None
    with half_sent(lab, 0, "first") as sender:
        assert streamed.stdout.read(100_000) == CONTENT[:100_000]
        until(lambda: written(kept, tmp_path) > 1_000_000)
        rest = threading.Thread(target=streamed.stdout.read)
        rest.start()
        sender.cancel()
        rest.join(LIMIT_S)
        sender.write(encode_file_start("second", 4) + b"four" + hashlib.sha256(b"four").digest())
        assert not [o for o in sender.wait_stable(sender.end()).outcomes if o.host == 2 and not o.delivered]
    assert streamed.wait(LIMIT_S) == 3
    assert streamed.stderr is not None
    assert b"are on standard output, so nothing can follow" in streamed.stderr.read()
    out, error = kept.communicate(timeout=LIMIT_S)
    assert (kept.returncode, out) == (3, b"four"), error


@pytest.mark.network
def test_a_full_disk_for_what_is_kept_is_said(lab: Lab, tmp_path: Path) -> None:
    one, small = outputs(tmp_path)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], check=True)
    try:
        good = start_recv(lab, 1, 1, one)
        arguments = ["recv", "-g", "1", "-o", "-", "--count", "1"]
        full = lab.start(2, *arguments, env={**environment(), "TMPDIR": str(small)})
        until(lambda: open_receivers(lab, 2, 1) == 1)
        file = file_of(tmp_path / "large", 4_000_000)
        code, sent, _ = send(lab, 0, file)
        assert code == 3
        assert "no space left on device" in " ".join(sent.split())
        assert "1 of 2 members have it" in " ".join(sent.split())
        out, error = full.communicate(timeout=LIMIT_S)
        assert (full.returncode, out) == (3, b"")
        assert b"large from host 0: no space left on device" in error
        assert run(good)[0] == 0
    finally:
        subprocess.run(["umount", str(small)], check=True)
