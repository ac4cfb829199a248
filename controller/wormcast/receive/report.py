"""What the service says: lines for people, JSON, or entries of systemd's journal with fields; and its state to systemd."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from enum import IntEnum

JOURNAL_SOCKET = "/run/systemd/journal/socket"


class Priority(IntEnum):
    """Of syslog."""

    ERROR = 3
    WARNING = 4
    INFO = 6


class Report:
    """Where the lines go. Any thread may use it."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if _is_journal() else None

    def say(self, code: str, text: str, priority: Priority = Priority.INFO, **fields: object) -> None:
        """A line. `fields` are told to programs: as JSON, and in the journal as WORMCAST_ and the name."""
        told = {name: value for name, value in fields.items() if value is not None}
        if self._journal is not None:
            self._to_journal(text, priority, told)
        elif self._as_json:
            _write(json.dumps({"notice": {"code": code, "message": text, **told}}))
        else:
            _write(f"wormcast: {text}")

    def _to_journal(self, text: str, priority: Priority, fields: dict[str, object]) -> None:
        assert self._journal is not None
        entry = {"MESSAGE": text, "PRIORITY": int(priority), "SYSLOG_IDENTIFIER": "wormcast"}
        named = {f"WORMCAST_{name.upper()}": value for name, value in fields.items()}
        try:
            self._journal.sendto(encode_entry({**entry, **named}), JOURNAL_SOCKET)
        except OSError:
            # Our standard error is the journal too, by another way.
            for line in text.splitlines():
                _write(f"<{int(priority)}>{line}")


def encode_entry(fields: dict[str, object]) -> bytes:
    """An entry in the native protocol of systemd's journal."""
    parts = []
    for name, value in fields.items():
        data = str(value).encode(errors="surrogateescape")
        # With its length it may hold anything.
        parts.append(name.encode() + b"\n" + len(data).to_bytes(8, "little") + data + b"\n")
    return b"".join(parts)


def notify(*states: str) -> None:
    """Tells systemd, if it started this service, how it stands (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.sendto(
            "\n".join(states).encode(), address.replace("@", "\0", 1) if address[0] == "@" else address
        )


def _is_journal() -> bool:
    """Whether standard error leads to systemd's journal."""
    with contextlib.suppress(OSError, ValueError):
        device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
        found = os.fstat(2)
        return (found.st_dev, found.st_ino) == (int(device), int(inode))
    return False


def _write(line: str) -> None:
    # Whole, whichever thread writes: one write, past Python's buffers. Whom nobody reads needs no line.
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode(sys.stderr.encoding or "utf-8", "backslashreplace"))
