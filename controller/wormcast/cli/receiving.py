"""Receives files: whole and checked, or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBars

from wormcast.client import (
    AbortReason,
    Agent,
    AgentError,
    AgentTimeoutError,
    IncomingMessage,
    MessageBegin,
    MessageData,
    MessageEnd,
    MessageLost,
    RefusedError,
)
from wormcast.client.files import FileDecoder, FileFormatError, other_names
from wormcast.exits import Exit

_PARTIAL_PREFIX = ".wormcast-"


@dataclass(frozen=True)
class FileSettings:
    """Where files go, and how."""

    output: Path
    overwrite: bool
    fsync: bool

    @property
    def to_stdout(self) -> bool:
        """Files go to standard output, one after the other."""
        return str(self.output) == "-"


def receive_files(
    group: int | str,
    settings: FileSettings,
    count: int | None,
    origin: int | None,
    timeout_s: float | None,
    socket: Path | None,
    as_json: bool,
) -> int:
    """Receives until ``count`` files are settled; returns the exit status."""
    if not settings.to_stdout and not settings.output.is_dir():
        raise NotADirectoryError(f"{settings.output} is not a directory; make it first")
    quiet = as_json or settings.to_stdout
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    with contextlib.ExitStack() as stack:
        try:
            # However long the agent takes, but for what the user allows.
            agent = stack.enter_context(Agent(socket, timeout_s=None, deadline=deadline))
            receiver = agent.open_receiver(group, origin=origin)
        except AgentTimeoutError:
            raise AgentTimeoutError(f"the agent has not answered for {timeout_s:g} s") from None
        agent.deadline = None
        display = stack.enter_context(_Display(quiet=quiet))
        if not quiet:
            click.echo(f"receiving from group {receiver.group.label}", err=True)
        session = _Session(settings, display, as_json)
        try:
            while count is None or session.settled < count:
                event = receiver.next_event(timeout_s)
                if event is None:
                    session.give_up()
                    click.echo(f"wormcast: nothing has come for {timeout_s:g} s", err=True)
                    return Exit.TIMEOUT if count is not None else session.exit_status()
                session.take(event)
        except KeyboardInterrupt:
            session.give_up()
            return Exit.INTERRUPTED
        except BaseException:
            session.drop_partial_files()
            raise
        receiver.close()
    return session.exit_status()


class _Session:
    """All files that are arriving."""

    def __init__(self, settings: FileSettings, display: _Display, as_json: bool) -> None:
        self._settings = settings
        self._display = display
        self._as_json = as_json
        self._files: dict[int, _ArrivingFile] = {}
        self.settled = 0
        self._failed = 0

    def exit_status(self) -> int:
        """0 if every file came through."""
        return Exit.INCOMPLETE if self._failed else Exit.DONE

    def take(self, event: MessageBegin | MessageData | MessageEnd | MessageLost) -> None:
        """Handles an event; trouble with one file does not end the session."""
        handle = event.message.handle
        if isinstance(event, MessageBegin):
            self._files[handle] = _ArrivingFile(self._settings, self._display, event.message.origin)
            return
        file = self._files.get(handle)
        if file is None:
            return
        try:
            match event:
                case MessageData():
                    file.write(event.data)
                case MessageEnd():
                    path, digest = file.finish()
                    event.message.confirm()
                    self._settle(handle, path, digest)
                case MessageLost():
                    self._fail(event.message, event.reason, None)
        except FileFormatError as error:
            self._fail(event.message, str(error), "cancelled")
        except RefusedError as error:
            # The message was lost while the file was being finished.
            self._fail(event.message, str(error), None)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            text = "no space left on device" if full else f"cannot write: {error.strerror or error}"
            self._fail(event.message, text, "no_space" if full else "storage")

    def give_up(self) -> None:
        """Aborts what is arriving."""
        for handle in list(self._files):
            self._files.pop(handle).drop()

    def drop_partial_files(self) -> None:
        """Leaves nothing behind that is not whole."""
        self.give_up()

    def _settle(self, handle: int, path: Path | None, digest: str) -> None:
        file = self._files.pop(handle)
        self.settled += 1
        seconds = time.monotonic() - file.started
        if self._as_json:
            report = {
                "origin": file.origin,
                "name": file.name,
                "path": None if path is None else str(path),
                "bytes": file.size,
                "sha256": digest,
                "seconds": round(seconds, 6),
            }
            click.echo(json.dumps(report), err=self._settings.to_stdout)
        elif not self._settings.to_stdout:
            rate = file.size * 8 / max(seconds, 1e-9) / 1e6
            where = f"{path} from host {file.origin}"
            self._display.print(f"{where}: {file.size} bytes, {rate:.1f} Mb/s, sha256 {digest}")

    def _fail(self, message: IncomingMessage, reason: str, abort: AbortReason | None) -> None:
        file = self._files.pop(message.handle)
        file.drop()
        self.settled += 1
        self._failed += 1
        if abort is not None:
            with contextlib.suppress(AgentError):
                message.abort(abort)
        if self._as_json:
            report = {"origin": message.origin, "name": file.name, "error": reason}
            click.echo(json.dumps(report), err=self._settings.to_stdout)
        click.echo(f"wormcast: {file.name or 'file'} from host {message.origin}: {reason}", err=True)


class _ArrivingFile:
    """One file on its way: a temporary file beside its place, renamed when it is whole."""

    def __init__(self, settings: FileSettings, display: _Display, origin: int) -> None:
        self.origin = origin
        self.started = time.monotonic()
        self._settings = settings
        self._display = display
        self._decoder = FileDecoder()
        self._out: BinaryIO | None = None
        self._partial: Path | None = None
        self._task: TaskID | None = None

    @property
    def name(self) -> str | None:
        """As the sender gave it, made safe; None before the header has come."""
        return None if self._decoder.header is None else self._decoder.header.name

    @property
    def size(self) -> int:
        """Bytes of content so far."""
        return self._decoder.size

    def write(self, data: bytes) -> None:
        """Takes message bytes."""
        content = self._decoder.feed(data)
        if self._decoder.header is None:
            return
        if self._task is None:
            label = f"{self.name} from host {self.origin}"
            self._task = self._display.add(label, self._decoder.header.size)
        if content:
            self._open().write(content)
            self._display.update(self._task, self.size)

    def finish(self) -> tuple[Path | None, str]:
        """Checks the whole and gives it its name; the path (None: standard output) and digest."""
        digest = self._decoder.finish()
        out = self._open()
        out.flush()
        if self._settings.to_stdout or self._partial is None:
            self._end_display()
            return None, digest
        if self._settings.fsync:
            os.fsync(out.fileno())
        out.close()
        path = self._place(self._partial)
        self._partial = None
        if self._settings.fsync:
            _sync_directory(path.parent)
        self._end_display()
        return path, digest

    def drop(self) -> None:
        """Removes what has come."""
        if self._out is not None and not self._settings.to_stdout:
            # A full disk may object to the last flush; the file goes anyway.
            with contextlib.suppress(OSError):
                self._out.close()
        if self._partial is not None:
            self._partial.unlink(missing_ok=True)
            self._partial = None
        self._end_display()

    def _open(self) -> BinaryIO:
        if self._out is None:
            if self._settings.to_stdout:
                self._out = sys.stdout.buffer
            else:
                descriptor, partial = tempfile.mkstemp(prefix=_PARTIAL_PREFIX, dir=self._settings.output)
                self._partial = Path(partial)
                os.fchmod(descriptor, 0o666 & ~_umask())
                self._out = os.fdopen(descriptor, "wb")
        return self._out

    def _place(self, partial: Path) -> Path:
        directory = self._settings.output
        name = self.name or "unnamed"
        if self._settings.overwrite:
            path = directory / name
            partial.replace(path)
            return path
        for other in other_names(name):
            path = directory / other
            try:
                # A link fails if the name is taken, where a rename would replace.
                path.hardlink_to(partial)
            except FileExistsError:
                continue
            except OSError:
                # No hard links on this file system.
                if path.exists():
                    continue
                partial.replace(path)
                return path
            partial.unlink()
            return path
        raise OSError(errno.EEXIST, f"too many files named like {name}")

    def _end_display(self) -> None:
        if self._task is not None:
            self._display.remove(self._task)
            self._task = None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Display:
    """A bar for each file that arrives. None of it when not on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        console = Console(stderr=True)
        self._bars = ProgressBars(
            TextColumn("{task.description}", markup=False),  # names come from others
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
        )

    def __enter__(self) -> _Display:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def add(self, label: str, total: int | None) -> TaskID:
        """A new bar."""
        return self._bars.add_task(label, total=total)

    def update(self, task: TaskID, done: int) -> None:
        """Moves a bar."""
        self._bars.update(task, completed=done)

    def remove(self, task: TaskID) -> None:
        """Takes a bar away."""
        self._bars.remove_task(task)

    def print(self, text: str) -> None:
        """A line of its own above the bars."""
        self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
