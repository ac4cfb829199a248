"""Sends a file and shows how far it has come."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBars
from rich.table import Table

from wormcast.agent import Agent, HandleClosedError, Progress, RefusedError, Sender, StableMessage
from wormcast.agent.files import encode_file_start, safe_file_name

EXIT_INCOMPLETE = 3
EXIT_TIMEOUT = 4
_CHUNK_BYTES = 256 << 10


def send_file(
    file: Path,
    group: int | str,
    name: str | None,
    timeout_s: float | None,
    socket: Path | None,
    as_json: bool,
) -> int:
    """Sends the file; returns the exit status."""
    with _open(file) as (content, size), Agent(socket) as agent:
        shown = safe_file_name(name or ("stdin" if str(file) == "-" else file.name))
        with _Display(shown, size, quiet=as_json) as display:
            sender = agent.open_sender(group, on_progress=display.update)
            display.describe(sender)
            started = time.monotonic()
            try:
                count, digest = _write(sender, content, shown, size)
                message = sender.end()
                stable = sender.wait_stable(message, timeout_s)
            except RefusedError as error:
                if error.code != "timeout":
                    raise
                text = f"not every member has the file after {timeout_s:g} s"
                if as_json:
                    click.echo(json.dumps({"error": text, "code": error.code}))
                click.echo(f"wormcast: {text}", err=True)
                return EXIT_TIMEOUT
            seconds = time.monotonic() - started
            display.finish()
    report = {
        "group": sender.group.number,
        "scheme": sender.group.scheme,
        "message": stable.message,
        "name": shown,
        "bytes": count,
        "sha256": digest,
        "seconds": round(seconds, 6),
        "rate_mbit_s": round(count * 8 / seconds / 1e6, 3),
        "retransmissions": sender.progress.retransmissions,
        "delivered": len(stable.outcomes) - len(stable.failed),
        "failed": len(stable.failed),
        "members": [asdict(outcome) for outcome in stable.outcomes],
    }
    if as_json:
        click.echo(json.dumps(report))
    else:
        _print_outcomes(stable, count, seconds, sender.progress.retransmissions)
    return EXIT_INCOMPLETE if stable.failed else 0


@contextlib.contextmanager
def _open(file: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file's content and size; size None for a pipe."""
    if str(file) == "-":
        yield sys.stdin.buffer, None
        return
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a directory; pack it into one file first, e.g. with tar")
    with file.open("rb") as content:
        yield content, file.stat().st_size if file.is_file() else None


def _write(sender: Sender, content: BinaryIO, name: str, size: int | None) -> tuple[int, str]:
    """Header, content, digest. A file that changes its size meanwhile is not sent."""
    digest = hashlib.sha256()
    count = 0
    sender.write(encode_file_start(name, size))
    try:
        while chunk := content.read(_CHUNK_BYTES):
            count += len(chunk)
            if size is not None and count > size:
                break
            digest.update(chunk)
            sender.write(chunk)
    except BaseException as error:
        # Members drop what they have rather than wait for the rest.
        if not isinstance(error, HandleClosedError):
            sender.cancel()
        raise
    if size is not None and count != size:
        sender.cancel()
        raise OSError(f"the file changed while it was sent: {size} bytes at first, then {count}")
    sender.write(digest.digest())
    return count, digest.hexdigest()


class _Display:
    """Two bars: sent, and stable at every member. None of it when not on a terminal."""

    def __init__(self, name: str, size: int | None, *, quiet: bool) -> None:
        console = Console(stderr=True)
        self._name = name
        self._size = size
        self._bars = ProgressBars(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self._tasks: list[TaskID] = []
        self._last = Progress()

    def __enter__(self) -> _Display:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def describe(self, sender: Sender) -> None:
        """Once the group is known."""
        members = len(sender.group.members) - 1
        descriptions = [f"{self._name}: sent", f"stable at {members} members ({sender.group.scheme})"]
        self._tasks = [self._bars.add_task(text, total=self._size, note="") for text in descriptions]

    def update(self, progress: Progress) -> None:
        """The engine's figures."""
        self._last = progress
        self._show(progress.sent_bytes, progress.stable_bytes)

    def finish(self) -> None:
        """Everything is stable."""
        if self._size is not None:
            self._show(self._size, self._size)

    def _show(self, sent: int, stable: int) -> None:
        most = self._size if self._size is not None else max(sent, stable)
        note = f"{self._last.retransmissions} retransmissions"
        for task, done in zip(self._tasks, (sent, stable), strict=False):
            self._bars.update(task, completed=min(done, most))
        if self._tasks:
            self._bars.update(self._tasks[0], note=note)


def _print_outcomes(stable: StableMessage, count: int, seconds: float, retransmissions: int) -> None:
    console = Console()
    table = Table(
        title=f"{len(stable.outcomes) - len(stable.failed)} of {len(stable.outcomes)} members have it"
    )
    table.add_column("host", justify="right")
    table.add_column("outcome")
    for outcome in stable.outcomes:
        text = "[green]has it, checked[/]" if outcome.delivered else f"[red]failed: {outcome.reason}[/]"
        table.add_row(str(outcome.host), text)
    console.print(table)
    rate = count * 8 / seconds / 1e6
    console.print(f"{count} bytes in {seconds:.2f} s, {rate:.1f} Mb/s, {retransmissions} retransmissions")
