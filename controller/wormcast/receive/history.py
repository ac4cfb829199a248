"""What has come, in a file beside what has come: the last RECORDS_MAX.

Each line is a record as JSON; a later line of the same number takes its place. Lines are appended, and the file is
written anew, and put in the place of the old one, when it has LINES_MAX. A line that was cut off counts for nothing.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from wormcast.cli.placing import sync_directory

HISTORY_NAME = ".wormcast-history.jsonl"
"""Files that arrive never have a name that begins with a dot."""
RECORDS_MAX = 1000
"""More: the oldest goes whose command does not wait."""
LINES_MAX = 4 * RECORDS_MAX

RECEIVED, UNCONFIRMED, FAILED = "received", "unconfirmed", "failed"
WAITING, ENDED = "waiting", "ended"


@dataclass
class Record:
    """A file that came, or did not."""

    number: int
    """Counts the records of a directory."""
    time: str
    """When it was settled: ISO 8601, UTC."""
    group: str
    group_number: int
    origin: int
    message: int
    """Which it is of this origin in this group; the same at all members."""
    name: str | None
    """As its sender named it, made safe; None if that had not come."""
    outcome: str
    """RECEIVED: its sender knows that it is here. UNCONFIRMED: it is here, but its sender may count this host as
    failed. FAILED: nothing of it is kept."""
    file: str | None = None
    """Where it is."""
    bytes: int | None = None
    sha256: str | None = None
    seconds: float | None = None
    """From its first byte to its last."""
    reason: str | None = None
    """Of what is not RECEIVED."""
    command: str | None = None
    """WAITING: it has not run, or not to its end. ENDED. None: there is none for this file."""
    exit_status: int | None = None
    """Of the command; 128 and the number of the signal if one ended it."""


_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "str": str,
    "float": (int, float),
    "None": type(None),
}


def _fits(value: Any, annotation: str) -> bool:
    return not isinstance(value, bool) and any(
        isinstance(value, _TYPES[name]) for name in annotation.split(" | ")
    )


def parse_record(line: bytes) -> Record | None:
    """None if the line is no record."""
    try:
        record = Record(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    return record if all(_fits(getattr(record, one.name), str(one.type)) for one in fields(record)) else None


def encode_record(record: Record) -> bytes:
    """Its line."""
    return json.dumps(asdict(record)).encode() + b"\n"


def read_history(directory: Path) -> tuple[list[Record], int]:
    """The records of a directory, the oldest first, and how many lines are none. OSError if there is no such
    directory; without a file there are none."""
    try:
        content = (directory / HISTORY_NAME).read_bytes()
    except FileNotFoundError:
        if not directory.is_dir():
            raise
        return [], 0
    records: dict[int, Record] = {}
    damaged = 0
    *lines, rest = content.split(b"\n")
    for line in lines:
        record = parse_record(line)
        if record is None:
            damaged += 1
        else:
            records[record.number] = record
    return sorted(_kept(records).values(), key=lambda record: record.number), damaged + bool(rest)


def _kept(records: dict[int, Record]) -> dict[int, Record]:
    """As many as there may be."""
    over = len(records) - RECORDS_MAX
    old = (number for number in sorted(records) if records[number].command != WAITING)
    gone = {number for number, _ in zip(old, range(over), strict=False)}
    return {number: record for number, record in records.items() if number not in gone}


class History:
    """The file of a directory that this process alone writes. Any thread may use it."""

    def __init__(self, directory: Path, *, fsync: bool, trouble: Callable[[str], None]) -> None:
        """Reads it, and writes it anew. `trouble` is told, once, that it cannot be written, and what was damaged.
        OSError if the directory cannot be written."""
        self._directory = directory
        self._path = directory / HISTORY_NAME
        self._fsync = fsync
        self._trouble = trouble
        self._failed = False
        self._lock = threading.Lock()
        records, damaged = read_history(directory)
        self._records = {record.number: record for record in records}
        self._next = records[-1].number + 1 if records else 0
        self._out = -1
        self._lines = 0
        self._rewrite()
        if damaged:
            trouble(f"{self._path}: {damaged} damaged lines are left out")

    def waiting(self) -> list[Record]:
        """Those whose command has not run to its end, the oldest first."""
        with self._lock:
            return [record for record in self._records.values() if record.command == WAITING]

    def has_command(self, file: str) -> bool:
        """Whether what came last under this path has had a command, or is about to."""
        with self._lock:
            found = [
                record.command
                for record in self._records.values()
                # What was sent again and was here already has none of its own.
                if record.file == file and (record.outcome != RECEIVED or record.command is not None)
            ]
            return bool(found) and found[-1] is not None

    def add(self, make: Callable[[int], Record]) -> Record:
        """A record more; `make` is given its number."""
        with self._lock:
            record = make(self._next)
            self._next += 1
            self._records[record.number] = record
            if len(self._records) > RECORDS_MAX:
                self._records = _kept(self._records)
            self._keep(record)
            return record

    def update(self, record: Record, **values: Any) -> None:
        """Of a record other values are true now."""
        with self._lock:
            for name, value in values.items():
                setattr(record, name, value)
            if record.number in self._records:
                self._keep(record)

    def close(self) -> None:
        """Lets go of the file."""
        with self._lock:
            os.close(self._out)

    def _keep(self, record: Record) -> None:
        try:
            if self._failed or self._lines >= LINES_MAX:
                self._rewrite()
            else:
                self._append([record])
        except OSError as error:
            # A line may be out in part: all is written anew when there is room again.
            if not self._failed:
                self._trouble(f"{self._path} cannot be written: {error.strerror or error}")
            self._failed = True
        else:
            self._failed = False

    def _append(self, records: Iterable[Record]) -> None:
        lines = [encode_record(record) for record in records]
        content = b"".join(lines)
        if os.write(self._out, content) != len(content):
            raise OSError("no space left on device")
        if self._fsync:
            os.fsync(self._out)
        self._lines += len(lines)

    def _rewrite(self) -> None:
        new = self._path.with_name(f"{HISTORY_NAME}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        out = os.open(new, flags, 0o666)
        old, self._out, self._lines = self._out, out, 0
        if old >= 0:
            os.close(old)
        self._append(self._records.values())
        new.replace(self._path)
        if self._fsync:
            sync_directory(self._directory)
