"""The history of `wormcast receive`: bounded, and whole whatever happens to it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from wormcast.cli.main import main
from wormcast.receive import history as module
from wormcast.receive.history import (
    ENDED,
    HISTORY_NAME,
    LINES_MAX,
    RECORDS_MAX,
    WAITING,
    History,
    Record,
    encode_record,
    read_history,
)

ONE = Record(
    0,
    "2026-01-02T03:04:05.678+00:00",
    "images",
    3,
    7,
    1 << 40,
    "a.bin",
    "received",
    "/d/a.bin",
    5,
    "00",
    0.25,
)


def opened(directory: Path, said: list[str] | None = None) -> History:
    return History(directory, fsync=False, trouble=(said if said is not None else []).append)


def add(history: History, **values: object) -> Record:
    return history.add(lambda number: replace(ONE, number=number, **values))  # type: ignore[arg-type]


def test_the_last_records_are_kept_over_restarts_and_the_file_stays_small(tmp_path: Path) -> None:
    history = opened(tmp_path)
    most = 0
    for _ in range(LINES_MAX + RECORDS_MAX + 10):
        add(history)
        most = max(most, (tmp_path / HISTORY_NAME).read_bytes().count(b"\n"))
    history.close()
    assert most == LINES_MAX
    records, damaged = read_history(tmp_path)
    last = LINES_MAX + RECORDS_MAX + 9
    assert [record.number for record in records] == list(range(last - RECORDS_MAX + 1, last + 1))
    assert damaged == 0
    again = opened(tmp_path)
    assert add(again).number == last + 1
    again.close()
    assert len(read_history(tmp_path)[0]) == RECORDS_MAX
    assert [path.name for path in tmp_path.iterdir()] == [HISTORY_NAME]


def test_what_comes_again_unchanged_has_had_its_command_however_often(tmp_path: Path) -> None:
    history = opened(tmp_path)
    assert not history.has_command("/d/a.bin")
    add(history, command="0")
    for _ in range(3):
        assert history.has_command("/d/a.bin")
        add(history, command=None)
    assert not history.has_command("/d/b.bin")
    history.close()


def test_what_waits_for_its_command_is_never_forgotten(tmp_path: Path) -> None:
    history = opened(tmp_path)
    waiting = add(history, command=WAITING)
    for _ in range(2 * RECORDS_MAX):
        add(history)
    assert history.waiting() == [waiting]
    history.close()
    again = opened(tmp_path)
    (still,) = again.waiting()
    assert still == waiting
    again.update(still, command=ENDED, exit_status=3)
    add(again)
    assert again.waiting() == []
    again.close()
    assert still.number not in {record.number for record in read_history(tmp_path)[0]}


def test_the_last_line_of_a_record_counts(tmp_path: Path) -> None:
    history = opened(tmp_path)
    record = add(history, outcome="unconfirmed", reason="x")
    history.update(record, outcome="received", reason=None)
    history.close()
    assert read_history(tmp_path) == ([record], 0)
    assert record.outcome == "received"


@pytest.mark.parametrize(
    "damage",
    [
        b"{",
        b"[]\n",
        b"\xff\xff\n",
        b"[" * 100_000 + b"\n",
        json.dumps({"number": 1}).encode() + b"\n",
        encode_record(ONE).replace(b'"bytes": 5', b'"bytes": "5"'),
        encode_record(ONE).replace(b'"number": 0', b'"number": true'),
        encode_record(ONE).replace(b'"group"', b'"colour"'),
        encode_record(ONE)[:-20],
    ],
)
def test_a_damaged_line_is_left_out_and_the_next_one_is_whole(tmp_path: Path, damage: bytes) -> None:
    whole = encode_record(replace(ONE, number=4))
    (tmp_path / HISTORY_NAME).write_bytes(whole + damage)
    said: list[str] = []
    history = opened(tmp_path, said)
    assert len(said) == 1
    assert "1 damaged lines are left out" in said[0]
    assert add(history).number == 5
    history.close()
    records, damaged = read_history(tmp_path)
    assert ([record.number for record in records], damaged) == ([4, 5], 0)


def test_a_full_disk_is_told_once_and_costs_nothing_once_there_is_room(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=True)
    try:
        said: list[str] = []
        history = opened(small, said)
        filler = small / "filler"
        with filler.open("wb", buffering=0) as out:
            try:
                while out.write(bytes(512)):
                    pass
            except OSError:
                pass
        added = [add(history) for _ in range(50)]
        assert len(said) == 1
        assert "cannot be written: " in said[0]
        filler.unlink()
        added.append(add(history))
        history.close()
        assert read_history(small) == (added, 0)
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    into = tmp_path / "into"
    into.mkdir()
    (into / f"{HISTORY_NAME}.new").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        opened(into)
    assert target.read_text() == "precious"


def shown(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["receive", "--history", *(str(word) for word in words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.stdout, result.stderr


def test_it_is_shown_as_a_table_and_as_json(tmp_path: Path) -> None:
    assert shown("--into", tmp_path, "--json") == (0, "", "")
    history = opened(tmp_path)
    add(history, command=ENDED, exit_status=0)
    failed = add(
        history, outcome="failed", reason="no space left on device", file=None, bytes=None, seconds=None
    )
    history.close()
    code, out, error = shown("--into", tmp_path)
    assert (code, error) == (0, "")
    heads, first, second = out.splitlines()
    assert heads.split() == ["time", "group", "origin", "file", "bytes", "seconds", "outcome", "command"]
    assert first.split() == [
        "2026-01-02T03:04:05Z",
        "images",
        "7",
        "/d/a.bin",
        "5",
        "0.250",
        "received",
        "done",
    ]
    assert second.split()[:4] == ["2026-01-02T03:04:05Z", "images", "7", "a.bin"]
    assert second.endswith("failed: no space left on device")
    code, out, _ = shown("--into", tmp_path, "--json")
    assert Record(**json.loads(out.splitlines()[1])) == failed
    (tmp_path / HISTORY_NAME).write_bytes(b"nonsense")
    assert shown("--into", tmp_path)[2] == "wormcast: 1 damaged lines are left out\n"


def test_names_cannot_collide_with_those_of_files() -> None:
    from wormcast.client.files import safe_file_name

    assert module.HISTORY_NAME.startswith(".")
    assert safe_file_name(HISTORY_NAME) != HISTORY_NAME
