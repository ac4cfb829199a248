"""Files that arrive for the service: what is written down of each, and the command that follows."""

from __future__ import annotations

import json
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from wormcast.cli.arriving import ArrivingFile, FileSettings
from wormcast.cli.session import Session, described, place_of, report_of
from wormcast.client import Arrival, IncomingMessage, WrittenFile
from wormcast.receive.commands import Commands
from wormcast.receive.figures import Figures
from wormcast.receive.history import FAILED, RECEIVED, UNCONFIRMED, WAITING, History, Record
from wormcast.receive.report import Priority, Report


class Files(Session):
    """Those of `wormcast receive`. A file is written down before it is confirmed, so that its command runs
    even if the service is killed between the two."""

    def __init__(
        self,
        settings: FileSettings,
        history: History,
        commands: Commands | None,
        report: Report,
        figures: Figures,
        *,
        as_json: bool,
    ) -> None:
        super().__init__(settings)
        self._history = history
        self._commands = commands
        self._report = report
        self._figures = figures
        self._as_json = as_json
        self._records: dict[IncomingMessage, Record] = {}
        """Of files that are being confirmed."""
        self._whole: deque[tuple[ArrivingFile, Arrival | None, WrittenFile | None]] = deque()
        """They wait until commands have ended."""
        self._mute = False

    @property
    def waits(self) -> bool:
        """Some are whole, and wait for a command to end."""
        return bool(self._whole)

    @property
    def can_go_on(self) -> bool:
        """One of these need not wait any more."""
        return self.waits and self._has_room

    def go_on(self) -> None:
        """With those that wait; the agent learns of the others that they are not forgotten."""
        while self.can_go_on:
            file, arrival, written = self._whole.popleft()
            with self._trouble_of(file):
                self._finish(file, arrival, written)
        self.answer_offers()
        self.extend()

    def _is_kept(self, file: ArrivingFile) -> bool:
        return super()._is_kept(file) or any(one is file for one, _, _ in self._whole)

    def group_gone(self, number: int, why: str) -> None:
        """Nothing more comes of this group."""
        for file in [file for file in self._files.values() if file.message.group.number == number]:
            self._fail(file, why, None)

    @property
    def _has_room(self) -> bool:
        return self._commands is None or self._commands.has_room

    def _finish(self, file: ArrivingFile, arrival: Arrival | None, written: WrittenFile | None) -> None:
        if self._commands is not None and not self._commands.has_room:
            if not self._whole:
                text = f"{self._commands.count} commands wait: files are not confirmed until one has ended"
                self._report.say("commands-wait", text, Priority.WARNING)
            self._whole.append((file, arrival, written))
            return
        path, digest = file.finish(written, self._extend_all)
        # Sent again, it is here already, and its command has been seen to. Several things have one path.
        is_known = file.is_unchanged and len(file.placed) == 1 and self._history.has_command(str(path))
        command = None if self._commands is None or is_known else WAITING
        seconds = None if arrival is None else round(arrival.seconds, 6)
        more = {"file": str(path), "bytes": file.size, "sha256": digest, "seconds": seconds}
        reason = "the service ended before its sender was told"
        self._records[file.message] = self._write_down(file, UNCONFIRMED, reason, command=command, **more)
        self._confirm(file, path, digest, arrival)

    def _settled(self, file: ArrivingFile, path: Path | None, digest: str, arrival: Arrival | None) -> None:
        record = self._records.pop(file.message)
        where = f"{place_of(file, path)} from host {file.origin}, group {file.message.group.label}"
        if file.lost is None:
            self._history.update(record, outcome=RECEIVED, reason=None)
            if self._commands is not None and record.command is not None:
                self._commands.put(record)
            text, priority = f"{where}: {described(file, digest, arrival)}", Priority.INFO
        else:
            self._history.update(record, reason=file.lost, command=None)
            text = f"{where}: it is whole, but its sender counts this host as failed: {file.lost}"
            priority = Priority.WARNING
        self._figures.files[record.outcome] += 1
        self._figures.bytes += file.size
        self._figures.last_at = time.time()
        if arrival is not None:
            self._figures.last_seconds = arrival.seconds
        if self._as_json:
            error = {} if file.lost is None else {"error": file.lost}
            self._print({**report_of(file, path, digest, arrival), **error}, record)
        if not self._as_json or file.lost is not None:
            self._tell(text, priority, record)

    def _failed(self, file: ArrivingFile, reason: str) -> None:
        self._whole = deque(one for one in self._whole if one[0] is not file)
        record = self._write_down(file, FAILED, reason)
        self._figures.files[FAILED] += 1
        if self._as_json:
            self._print({"origin": file.origin, "name": file.name, "error": reason}, record)
        else:
            text = f"{file.shown}, group {file.message.group.label}: {reason}"
            self._tell(text, Priority.WARNING, record)

    def _refused(self, file: ArrivingFile, reason: str) -> None:
        text = f"{file.shown}, group {file.message.group.label}, will not be taken: {reason}"
        self._report.say("refused", text, Priority.WARNING, origin=file.origin)

    def _show(self) -> None:
        self._figures.arriving = len(self._files)

    def _write_down(self, arriving: ArrivingFile, outcome: str, reason: str, **more: Any) -> Record:
        message = arriving.message
        return self._history.add(
            lambda number: Record(
                number=number,
                time=datetime.now(UTC).isoformat(timespec="milliseconds"),
                group=message.group.name or str(message.group.number),
                group_number=message.group.number,
                origin=message.origin,
                message=message.number,
                name=arriving.name,
                outcome=outcome,
                reason=reason,
                **more,
            )
        )

    def _tell(self, text: str, priority: Priority, record: Record) -> None:
        self._report.say(
            record.outcome,
            text,
            priority,
            origin=record.origin,
            group=record.group,
            message=record.message,
            file=record.file,
            bytes=record.bytes,
            sha256=record.sha256,
        )

    def _print(self, told: dict[str, object], record: Record) -> None:
        try:
            click.echo(json.dumps({**told, "group": record.group, "message": record.message}))
        except OSError as error:
            if not self._mute:
                text = f"standard output cannot be written: {error.strerror or error}; receiving goes on"
                self._report.say("mute", text, Priority.WARNING)
            self._mute = True
