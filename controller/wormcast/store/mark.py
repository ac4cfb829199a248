"""Whether a state file is what was written last. SQLite takes a damaged write-ahead log for one that ends sooner, and
a deleted file for a new one; a small file beside it says how much was written."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import sqlite3
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

LOG = logging.getLogger("wormcast.store")

MARK_BYTES = 256
"""Of the file; it is written whole, in one go."""
ACCEPT = "--accept-empty-state"
"""The operator's word that an older or empty state is right."""


class StoreError(Exception):
    """A database that cannot be used; the text names the file and the reason."""


@dataclass(frozen=True)
class Written:
    """How much has been written to a state file."""

    state: str
    """Which one it is: drawn when it was made."""
    kept: int
    """Changes that somebody was notified of are kept. They are on the disk."""
    seen: int
    """Changes of what was found in the network and sent to agents. A machine that breaks down may lose the last."""

    def to_json(self) -> str:
        """As the state file and the mark have it."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str | bytes) -> Written:
        """The same read back. Raises `ValueError`."""
        value = json.loads(text)
        try:
            return Written(str(value["state"]), int(value["kept"]), int(value["seen"]))
        except (TypeError, LookupError) as error:
            raise ValueError(str(error)) from error


class StateMark:
    """The file beside a state file, open and locked: a state file has one controller."""

    def __init__(self, state: Path) -> None:
        """Raises `StoreError`, `OSError`."""
        self._state = state
        self.path = state.with_name(f"{state.name}-mark")
        self._open()

    def _open(self) -> None:
        self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b", 0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"state file {self._state} is in use by another controller") from None

    def close(self) -> None:
        """Lets go of it."""
        self._file.close()

    def read(self) -> Written | None:
        """What it says; None: nothing was ever written. Raises `StoreError`."""
        text = os.pread(self._file.fileno(), MARK_BYTES, 0).strip(b"\0 \n")
        if not text:
            return None
        try:
            return Written.from_json(text)
        except ValueError as error:
            raise StoreError(f"{self.path} does not say how much was written: {error}") from error

    def write(self, written: Written) -> None:
        """Says so from now on. It may be behind the state file, never before it."""
        try:
            if not is_same(self.path, identity(self._file.fileno())):
                self._file.close()
                self._open()
            os.pwrite(self._file.fileno(), written.to_json().encode().ljust(MARK_BYTES), 0)
        except (OSError, StoreError) as error:
            LOG.error("%s was not written: %s", self.path, error)

    def check(self, accept: bool) -> None:
        """Compares the state file with what was written; raises `StoreError` where something is missing, unless the
        operator accepts that."""
        try:
            written = self.read()
        except StoreError as error:
            problem: str | None = str(error)
        else:
            problem = None if written is None else compare(self._state, written)
        if problem is None:
            return
        if not accept:
            raise StoreError(
                f"{problem}. Put the right file back; or begin with what is there, once, with {ACCEPT}"
            )
        LOG.warning("%s; accepted", problem)


def compare(state: Path, written: Written) -> str | None:
    """What is missing of a state file. Raises `StoreError` for one that cannot be read."""
    found = look(state)
    if found is None:
        return f"state file {state} is missing or empty, and {written.kept} changes were kept in it"
    if found.state != written.state:
        return f"state file {state} is not the one that was written last"
    if found.kept < written.kept:
        return (
            f"state file {state} is older than what was written: of {written.kept} changes that were kept the last "
            f"{written.kept - found.kept} are missing; it or its log {state}-wal is damaged or was replaced"
        )
    if found.seen < written.seen:
        LOG.warning(
            "state file %s lacks the last %d changes of what was found in the network; they are found again",
            state,
            written.seen - found.seen,
        )
    return None


def look(state: Path) -> Written | None:
    """How much is in a state file; None: nothing. Raises `StoreError`.

    It looks at a copy: SQLite would tidy up, and a damaged log would be gone.
    """
    if not state.exists():
        return None
    try:
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / "state"
            for ending in ("", "-wal"):
                if (source := Path(f"{state}{ending}")).exists():
                    shutil.copyfile(source, f"{copy}{ending}")
            with contextlib.closing(sqlite3.connect(copy)) as sql:
                (version,) = sql.execute("PRAGMA user_version").fetchone()
                if version == 0:
                    return None
                (verdict,) = sql.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise StoreError(f"state file {state} is damaged: {verdict}")
                if sql.execute("SELECT 1 FROM sqlite_master WHERE name='settings'").fetchone() is None:
                    return Written("", 0, 0)
                row = sql.execute("SELECT value FROM settings WHERE name='written'").fetchone()
                return Written("", 0, 0) if row is None else Written.from_json(row[0])
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StoreError(f"state file {state}: {error}") from error


def identity(file: Path | int) -> tuple[int, int]:
    """Which file that is, whatever its name. Raises `OSError`."""
    about = os.fstat(file) if isinstance(file, int) else file.stat()
    return about.st_dev, about.st_ino


def is_same(path: Path, known: tuple[int, int]) -> bool:
    """Whether the file of that name is still the one."""
    try:
        return identity(path) == known
    except FileNotFoundError:
        return False
