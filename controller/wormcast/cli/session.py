"""Files that arrive, from their first bytes until they are confirmed or given up."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from wormcast.cli.arriving import ArrivingFile, FileSettings, is_full
from wormcast.cli.bundle import EXTEND_INTERVAL_S, shown
from wormcast.cli.offered import WHY, WHY_CHARS_MAX, Plans, answer_of
from wormcast.client import (
    AbortReason,
    AgentError,
    AgentGoneError,
    AgentInterruptedError,
    Arrival,
    FileFailed,
    FileProgress,
    IncomingMessage,
    MessageBegin,
    MessageData,
    MessageEnd,
    MessageLost,
    ReceiverEvent,
    RefusedError,
    WrittenFile,
)
from wormcast.client.files import FileFormatError

OFFER_LOOK_S = 0.05
"""Between two looks whether what is here has been compared with a list."""
NAMED_MOST = 4
"""Of what a message has placed."""


def place_of(file: ArrivingFile, path: Path | None) -> str:
    """What came, for people: its path, or the first of them."""
    names = ", ".join(map(shown, file.placed[:NAMED_MOST])) or shown(path or file.name or "")
    more = len(file.placed) - NAMED_MOST
    return f"{names} and {more} more" if more > 0 else names


def report_of(
    file: ArrivingFile, path: Path | None, digest: str, arrival: Arrival | None
) -> dict[str, object]:
    """What is told of a file that is whole, as JSON."""
    rate = None if arrival is None else arrival.rate
    return {
        "origin": file.origin,
        "name": file.name,
        "path": None if path is None else str(path),
        **({"placed": [str(one) for one in file.placed]} if file.placed else {}),
        "bytes": file.size,
        "sha256": digest,
        "seconds": None if arrival is None else round(arrival.seconds, 6),
        "rate_mbit_s": None if rate is None else round(rate / 1e6, 3),
    }


def described(file: ArrivingFile, digest: str, arrival: Arrival | None) -> str:
    """The same for people."""
    rate = None if arrival is None else arrival.rate
    at = "" if rate is None else f"{rate / 1e6:.1f} Mb/s, "
    return f"{file.size} bytes, {at}sha256 {digest}"


def _abort_reason(code: str) -> AbortReason:
    """Why a message is given up whose content the agent could not write."""
    if code == "no_space":
        return "no_space"
    return "storage" if code == "storage" else "cancelled"


class Session(ABC):
    """All files that are arriving, of all receivers of a program. Who uses it says what becomes of those that came."""

    def __init__(self, settings: FileSettings, *, stream: bool = False) -> None:
        """`stream`: what is for standard output is written as it comes."""
        self._settings = settings
        self._stream = stream
        self._extend_at = 0.0
        self._files: dict[IncomingMessage, ArrivingFile] = {}
        self._plans = Plans()

    def take(self, event: ReceiverEvent) -> None:
        """Handles an event; trouble with one file does not end the session."""
        if isinstance(event, MessageBegin):
            self._files[event.message] = ArrivingFile(self._settings, event.message, stream=self._stream)
        file = self._files.get(event.message)
        if file is None:
            return
        with self._trouble_of(file):
            match event:
                case MessageBegin() if event.header is not None:
                    file.place(event.header, self._plans)
                    self._show()
                case MessageData():
                    file.write(event.data)
                    self._show()
                case FileProgress():
                    file.note_written(event.size)
                    self._show()
                case FileFailed(code="storage") if (fault := file.fault()) is not None:
                    raise fault
                case FileFailed():
                    self._fail(file, event.reason, _abort_reason(event.code))
                case MessageEnd() if file.offer is not None:
                    file.has_ended = True
                case MessageEnd():
                    self._finish(file, event.arrival, event.file)
                case MessageLost():
                    self._lose(file, event.reason)

    @property
    def look_s(self) -> float | None:
        """How long to wait for what comes next: something may be made of what has come, or compared with it."""
        if any(file.has_ended for file in self._files.values()):
            return OFFER_LOOK_S
        return EXTEND_INTERVAL_S if any(file.is_at_work for file in self._files.values()) else None

    def answer_offers(self) -> None:
        """Those that have been compared: their senders learn what is lacking here."""
        for file in [file for file in self._files.values() if file.has_ended and not file.is_at_work]:
            with self._trouble_of(file):
                assert file.offer is not None
                plan = file.offer.plan()
                self._plans.add(file.message, plan)
                # Without it all is sent.
                with contextlib.suppress(RefusedError):
                    file.message.answer(answer_of(plan))
                self._files.pop(file.message)
                file.drop()
                with contextlib.suppress(RefusedError):
                    file.message.confirm()

    def extend(self) -> None:
        """To be called every EXTEND_INTERVAL_S: the agent learns that nobody stands still who is at work."""
        if (now := time.monotonic()) < self._extend_at:
            return
        for file in [file for file in self._files.values() if self._is_kept(file)]:
            self._extend_at = now + EXTEND_INTERVAL_S
            file.message.extend()

    def _is_kept(self, file: ArrivingFile) -> bool:
        return file.is_at_work

    def _extend_all(self) -> None:
        """While one is finished, the others wait."""
        for file in list(self._files.values()):
            file.message.extend()

    @contextlib.contextmanager
    def _trouble_of(self, file: ArrivingFile) -> Iterator[None]:
        """What goes wrong here ends this file alone."""
        try:
            yield
        except FileFormatError as error:
            self._fail(file, str(error), "cancelled")
        except RefusedError as error:
            if file.message.open:
                self._fail(file, str(error), _abort_reason(error.code))
            # Else it is lost, and the reason comes next.
        except OSError as error:
            self._fail_to_write(file, error)

    def agent_gone(self, why: str) -> None:
        """What was arriving will not go on."""
        for file in list(self._files.values()):
            self._fail(file, why, None)

    def drop_all(self) -> None:
        """Leaves nothing behind that is not whole."""
        for file in self._files.values():
            file.drop()
        self._files.clear()

    @abstractmethod
    def _settled(self, file: ArrivingFile, path: Path | None, digest: str, arrival: Arrival | None) -> None:
        """It is whole and in its place; confirmed, unless it is `lost`."""

    @abstractmethod
    def _failed(self, file: ArrivingFile, reason: str) -> None:
        """Nothing of it is kept."""

    @abstractmethod
    def _refused(self, file: ArrivingFile, reason: str) -> None:
        """What goes with a list will not be taken."""

    @abstractmethod
    def _show(self) -> None:
        """Something is as it was not before."""

    def _lose(self, file: ArrivingFile, reason: str) -> None:
        self._fail(file, reason, None)

    def _finish(self, file: ArrivingFile, arrival: Arrival | None, written: WrittenFile | None) -> None:
        path, digest = file.finish(written, self._extend_all)
        self._confirm(file, path, digest, arrival)

    def _confirm(self, file: ArrivingFile, path: Path | None, digest: str, arrival: Arrival | None) -> None:
        """The file is whole and in its place: its sender may know."""
        if file.lost is None:
            try:
                file.message.confirm()
            except (RefusedError, AgentGoneError, AgentInterruptedError) as error:
                file.lost = str(error)
                if not isinstance(error, RefusedError):
                    self._settle(file, path, digest, arrival)
                    raise
        self._settle(file, path, digest, arrival)

    def _settle(self, file: ArrivingFile, path: Path | None, digest: str, arrival: Arrival | None) -> None:
        self._files.pop(file.message)
        file.drop()
        self._settled(file, path, digest, arrival)
        self._show()

    def _fail_to_write(self, file: ArrivingFile, error: OSError) -> None:
        why = error.strerror or str(error)
        text = why[:1].lower() + why[1:] if is_full(error) else f"cannot write: {why}"
        self._fail(file, text, "no_space" if is_full(error) else "storage")

    def _fail(self, file: ArrivingFile, reason: str, abort: AbortReason | None) -> None:
        self._files.pop(file.message, None)
        header, is_offer = file.header, file.offer is not None
        file.drop()
        if abort is not None:
            if header is not None and (header.offer or header.offered):
                with contextlib.suppress(AgentError):
                    file.message.answer(WHY + reason[:WHY_CHARS_MAX])
            with contextlib.suppress(AgentError):
                file.message.abort(abort)
        if not is_offer:
            self._failed(file, reason)
        elif abort is not None:
            self._refused(file, reason)
        self._show()
