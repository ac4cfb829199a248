"""Directories and several files as one message: they arrive as they were, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_lab.lab import PROGRAM, Lab, environment, group
from test_agent_transfer import LIMIT_S, file_of, names, open_receivers, outputs, run, start_recv, until
from wormcast.cli.placing import PARTIAL_PREFIX, remove_left_behind
from wormcast.client import Agent
from wormcast.client.files import Bundle, encode_file_start


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Three hosts, one group; the agents wait for nobody long."""
    lab = Lab(3, [group(1, "repeat", [0, 1, 2])], "--receiver-wait", "3", "--receiver-stall", "15")
    yield lab
    lab.close()


def send(lab: Lab, *words: str | Path) -> tuple[int, str, str]:
    return run(lab.start(0, "send", *map(str, words), "-g", "1"))


def example(root: Path, files: int = 40) -> Path:
    """A directory with files of many lengths, links, holes, and names of any bytes."""
    draw = random.Random(files)
    top = root / "data"
    for number in range(files):
        length = draw.choice([0, 1, 100, 4096, 70_000])
        place = top / f"d{number % 7}" / f"e{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{number}").write_bytes(draw.randbytes(length))
    (top / os.fsdecode(b"\xff '$(x)\n")).write_bytes(b"any")
    (top / "large").write_bytes(draw.randbytes(2_000_000))
    (top / "empty").mkdir(mode=0o700)
    (top / "link").symlink_to("../outside")
    (top / "again").hardlink_to(top / "large")
    with (top / "sparse").open("wb") as sparse:
        sparse.truncate(50_000_000)
    os.utime(top / "d0", ns=(1, 1_234_567_890_123_456_789))
    return top


def tree(top: Path) -> dict[bytes, tuple[object, ...]]:
    """All that is below, with modes, times and contents."""
    found: dict[bytes, tuple[object, ...]] = {}
    for directory, below, files in os.walk(os.fsencode(top)):
        for name in [b"", *below, *files]:
            path = os.path.join(directory, name)  # noqa: PTH118 - bytes
            about = os.lstat(path)
            content: object = None
            if os.path.islink(path):  # noqa: PTH114
                content = os.readlink(path)  # noqa: PTH115
            elif not os.path.isdir(path):  # noqa: PTH112
                digest = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()
                content = (about.st_nlink, about.st_size, digest)
            place = path[len(os.fsencode(top)) :]
            found[place] = (oct(about.st_mode), about.st_mtime_ns, content)
    return found


@pytest.mark.network
def test_a_directory_and_files_arrive_as_they_were(lab: Lab, tmp_path: Path) -> None:
    top = example(tmp_path)
    single = file_of(tmp_path / "notes.txt", 1000)
    (where := outputs(tmp_path))[0].joinpath("data").mkdir()
    receivers = [start_recv(lab, 1, 1, where[0]), start_recv(lab, 2, 1, where[1], "--fsync")]
    code, out, error = send(lab, top, single)
    assert (code, error) == (0, ""), out
    said = [run(receiver) for receiver in receivers]
    assert [code for code, _, _ in said] == [0, 0], said
    assert "data.1" in said[0][2]
    assert "notes.txt" in said[0][2]
    wanted = tree(top)
    assert tree(where[0] / "data.1") == wanted
    assert tree(where[1] / "data") == wanted
    assert (where[1] / "data" / "sparse").stat().st_blocks < 1000
    assert all((one / "notes.txt").read_bytes() == single.read_bytes() for one in where)
    assert sorted(path.name for path in where[1].iterdir()) == ["data", "notes.txt"]
    assert not list((where[0] / "data").iterdir())


@pytest.mark.network
def test_what_is_there_is_replaced_only_when_asked(lab: Lab, tmp_path: Path) -> None:
    top = example(tmp_path, 3)
    where = outputs(tmp_path)
    for one in where:
        (one / "data").mkdir()
        (one / "data" / "old").write_bytes(b"old")
    receivers = [start_recv(lab, host, 1, where[host - 1], "--overwrite", "--json") for host in (1, 2)]
    assert send(lab, top)[0] == 0
    for host, receiver in enumerate(receivers):
        code, out, _ = run(receiver)
        report = json.loads(out)
        assert (code, report["path"]) == (0, str(where[host] / "data"))
        assert tree(where[host] / "data") == tree(top)
        assert names(where[host]) == ["data"]


@pytest.mark.network
def test_a_directory_that_changes_while_it_is_sent_arrives_nowhere(lab: Lab, tmp_path: Path) -> None:
    top = tmp_path / "data"
    top.mkdir()
    for name in "abc":
        file_of(top / name, 30_000_000)
    where = outputs(tmp_path)
    receivers = [start_recv(lab, host, 1, where[host - 1]) for host in (1, 2)]
    sender = lab.start(0, "send", str(top), "-g", "1")
    until(lambda: any(names(where[0])))
    with (top / "c").open("ab") as file:
        file.write(b"more")
    code, _, error = run(sender)
    assert code == 2
    assert "c changed while it was sent" in error
    assert [run(receiver)[0] for receiver in receivers] == [3, 3]
    assert [names(one) for one in where] == [[], []]


@pytest.mark.network
def test_a_last_file_that_grows_while_it_is_read_arrives_nowhere(lab: Lab, tmp_path: Path) -> None:
    """All that was announced is read before that is found."""
    top = tmp_path / "data"
    top.mkdir()
    file_of(top / "log", 20_000_000)
    where = outputs(tmp_path)
    receivers = [start_recv(lab, host, 1, where[host - 1]) for host in (1, 2)]
    sender = lab.start(0, "send", str(top), "-g", "1", "--rate", "40M")
    until(lambda: any(names(where[0])))
    with (top / "log").open("ab") as file:
        file.write(b"more")
    code, _, error = run(sender)
    assert code == 2
    assert "log changed while it was sent" in error
    assert [run(receiver)[0] for receiver in receivers] == [3, 3]
    assert [names(one) for one in where] == [[], []]


@pytest.mark.network
def test_who_has_no_room_says_so_and_the_others_get_it(lab: Lab, tmp_path: Path) -> None:
    top = example(tmp_path, 3)
    file_of(top / "more", 3_000_000)
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True)
    try:
        other = outputs(tmp_path)[1]
        receivers = [start_recv(lab, 1, 1, small), start_recv(lab, 2, 1, other)]
        code, out, _ = send(lab, top, "--json")
        assert code == 3
        members = {member["host"]: member for member in json.loads(out)["members"]}
        assert members[1]["reason"] == "no space left on device"
        assert members[2]["delivered"]
        code, _, error = run(receivers[0])
        assert code == 3
        assert "bytes are to come, there is room for" in error
        assert run(receivers[1])[0] == 0
        assert names(small) == []
        assert tree(other / "data") == tree(top)
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.network
def test_a_killed_receiver_leaves_nothing_that_stays(lab: Lab, tmp_path: Path) -> None:
    top = tmp_path / "data"
    top.mkdir()
    file_of(top / "large", 100_000_000)
    where = outputs(tmp_path)
    receivers = [start_recv(lab, host, 1, where[host - 1]) for host in (1, 2)]
    sender = lab.start(0, "send", str(top), "-g", "1", "--json")
    until(lambda: any(names(where[0])))
    receivers[0].kill()
    run(receivers[0])
    code, out, _ = run(sender)
    delivered = {member["host"]: member["delivered"] for member in json.loads(out)["members"]}
    assert (code, delivered) == (3, {1: False, 2: True})
    assert run(receivers[1])[0] == 0
    [left] = names(where[0])
    assert left.startswith(PARTIAL_PREFIX)
    assert remove_left_behind(where[0]) == 1
    assert names(where[0]) == []


@pytest.mark.network
@pytest.mark.parametrize(
    ("start", "why"),
    [
        (Bundle(1, 40), "its list is none"),
        (Bundle(1, 0), "nothing is in it"),
        (Bundle(1, 1000), "its list is none"),
    ],
)
def test_a_bundle_that_is_none_is_refused(lab: Lab, tmp_path: Path, start: Bundle, why: str) -> None:
    where = outputs(tmp_path)
    receivers = [start_recv(lab, host, 1, where[host - 1]) for host in (1, 2)]
    content = b"\xff" * 1000
    with Agent(lab.socket(0)) as agent, agent.open_sender(1) as sender:
        sender.write(
            encode_file_start("data", 1000, bundle=start) + content + hashlib.sha256(content).digest()
        )
        stable = sender.wait_stable(sender.end(), LIMIT_S)
    assert [outcome.delivered for outcome in stable.outcomes] == [False, False]
    for receiver in receivers:
        code, _, error = run(receiver)
        assert code == 3
        assert why in error
    assert [names(one) for one in where] == [[], []]


@pytest.mark.network
def test_directories_are_not_for_standard_output(lab: Lab, tmp_path: Path) -> None:
    top = example(tmp_path, 2)
    receivers = [start_recv(lab, host, 1, "-") for host in (1, 2)]
    assert send(lab, top)[0] == 3
    for receiver in receivers:
        code, out, error = run(receiver)
        assert (code, out) == (3, "")
        assert "for a directory, not for standard output" in error


@pytest.mark.network
def test_nothing_of_a_bundle_replaces_another_part_of_it(lab: Lab, tmp_path: Path) -> None:
    files = [file_of(tmp_path / name, 1000, seed) for seed, name in enumerate((".env", "env", "x.txt"))]
    where = outputs(tmp_path)
    file_of(where[0] / "env", 10)
    receivers = [start_recv(lab, host, 1, where[host - 1], "--overwrite") for host in (1, 2)]
    assert send(lab, *files)[0] == 0
    assert [run(receiver)[0] for receiver in receivers] == [0, 0]
    for one in where:
        assert names(one) == ["env", "env.1", "x.txt"]
        found = {(one / name).read_bytes() for name in names(one)}
        assert found == {file.read_bytes() for file in files}


@pytest.mark.network
def test_a_slow_disk_is_no_failure(lab: Lab, tmp_path: Path) -> None:
    """The agents wait 15 s for who takes nothing."""
    top = example(tmp_path)
    where = outputs(tmp_path)
    slow = "import time, wormcast_bundle as b; u = b.unpack; b.unpack = lambda *a, **k: (time.sleep(20), u(*a, **k))[1]"
    command = f"{slow}; from wormcast.cli.main import main; main()"
    slowed = [sys.executable, "-c", command]
    arguments = ["recv", "-g", "1", "-o", str(where[0]), "--count", "1"]
    receivers = [lab.start(1, *arguments, program=slowed), start_recv(lab, 2, 1, where[1])]
    until(lambda: open_receivers(lab, 1, 1) == 1)
    code, out, _ = send(lab, top)
    assert code == 0, out
    assert [run(receiver)[0] for receiver in receivers] == [0, 0]
    assert tree(where[0] / "data") == tree(top)


def test_what_nobody_may_write_is_removed_all_the_same() -> None:
    """By a user without the rights of root: those left behind, and those given up."""
    script = """
import os, socket, sys, threading, wormcast_bundle as bundle
from pathlib import Path
from wormcast.cli.placing import remove_left_behind
root = Path(sys.argv[1])
top = root / "data"
(top / "d" / "e").mkdir(parents=True)
(top / "d" / "e" / "f").write_bytes(b"x" * 5000)
for path in (top / "d" / "e", top / "d", top):
    path.chmod(0o555)
into = root / "into"
into.mkdir()
packed = bundle.pack([os.fsencode(top)], [], False, False)
def unpacked():
    one, two = socket.socketpair()
    def write():
        packed.write(one.fileno())
        one.close()
    threading.Thread(target=write).start()
    return bundle.unpack(two.fileno(), os.fsencode(into), len(packed), packed.list_bytes, packed.size,
                         umask=0o22, preserve=True, owners=False, attributes=False, sync=False)
unpacked().close()
assert os.listdir(into) == [], os.listdir(into)
for _ in range(2):
    made = unpacked()
    assert made.place(0, b"data", True)
    made.close()
    assert os.listdir(into) == ["data"], os.listdir(into)
assert oct((into / "data").stat().st_mode & 0o777) == "0o555"
left = into / ".wormcast-partial-abcDEF12"
(left / "a" / "b").mkdir(parents=True)
(left / "a" / "b").chmod(0)
(left / "a").chmod(0o500)
assert remove_left_behind(into) == 1
assert os.listdir(into) == ["data"]
for each in (top, into / "data"):
    for path in (each, each / "d", each / "d" / "e"):
        path.chmod(0o755)
"""
    who = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    # Not pytest's own directory, which nobody else may enter.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        command = [sys.executable, "-c", script, place]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, **who)
    assert done.returncode == 0, done.stderr


def dry_run(*words: str | Path) -> tuple[int, str, str]:
    command = [*PROGRAM, "send", "--dry-run", *map(str, words)]
    done = subprocess.run(command, capture_output=True, env=environment(), timeout=LIMIT_S)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_what_would_be_sent_is_shown(tmp_path: Path) -> None:
    top = example(tmp_path, 3)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(top / "control"))
    code, out, _ = dry_run(top, "--json", "--exclude", "f[12]", "--exclude", "data/large")
    value = json.loads(out)
    paths = {entry["path"] for entry in value["entries"]}
    assert code == 0
    assert "data/d0/e0/f0" in paths
    assert paths.isdisjoint({"data/d1/e1/f1", "data/d2/e2/f2", "data/large", "data/control"})
    assert {"path": "data/again", "kind": "file", "bytes": 2_000_000} in value["entries"]
    assert value["left_out"] == [str(top / "control")]
    code, out, _ = dry_run(top)
    assert code == 0
    assert "not sent" in out
    listener.close()


def test_what_cannot_be_sent_is_refused_before_anything_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "x").write_bytes(b"x")
    (tmp_path / "loop").symlink_to("loop")
    for words, why in [
        ((tmp_path / "a", tmp_path / "a"), "have the same name"),
        (("/",), "has no name that it could arrive under"),
        ((tmp_path / "a", tmp_path / "none"), "none: No such file or directory"),
        ((tmp_path / "a", "-"), "standard input (-) goes alone"),
        (("-", "--owner"), "standard input (-) goes alone"),
        (("",), "an empty name is no file"),
        ((tmp_path / "a", "--exclude", "a"), "everything is excluded"),
        ((tmp_path / "x", "--exclude", "x"), "--exclude has no effect on one file"),
        ((tmp_path / "loop",), "symbolic links"),
        ((tmp_path / "a", "--name", "x"), "--name has no effect on directories"),
    ]:
        code, _, error = dry_run(*words)
        assert code == 2, error
        assert why in error
    deep = tmp_path / "deep"
    for _ in range(140):
        deep /= "d"
    deep.mkdir(parents=True)
    code, _, error = dry_run(tmp_path / "deep")
    assert code == 2
    assert "at most 128" in error
    shutil.rmtree(tmp_path / "deep")
