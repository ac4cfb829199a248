"""The command that runs after each file: one at a time, in the order in which the files came."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable

from wormcast.receive.figures import Figures
from wormcast.receive.history import ENDED, History, Record
from wormcast.receive.report import Priority, Report

WAITING_MAX = 256
"""Commands that wait. More: whole files wait without a name, unconfirmed, until one has ended."""
STOP_S = 10.0
"""From SIGTERM until SIGKILL, for a command that runs when the service ends."""
_CANNOT_START = 126


class Commands:
    """Runs `/bin/sh -c command` for one file after another, in a thread of its own."""

    def __init__(
        self, command: str, history: History, report: Report, figures: Figures, wake: Callable[[], None]
    ) -> None:
        """Begins with what was left waiting. `wake` is called when one has ended."""
        self._command = command
        self._history = history
        self._report = report
        self._figures = figures
        self._wake = wake
        self._changed = threading.Condition()
        self._waiting: deque[Record] = deque(history.waiting())
        self._running: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run_all, name="commands", daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        """Of those that have not ended."""
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """For one more."""
        return len(self._waiting) < WAITING_MAX

    def put(self, record: Record) -> None:
        """It runs for this file too."""
        with self._changed:
            self._waiting.append(record)
            self._changed.notify()

    def stop(self) -> int:
        """Ends what runs, and gives how many have not run to their end: they wait for the next start."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
            self._signal(signal.SIGTERM)
        self._thread.join(STOP_S)
        if self._thread.is_alive():
            with self._changed:
                self._signal(signal.SIGKILL)
            self._thread.join()
        return len(self._waiting)

    def _run_all(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopping:
                    self._changed.wait()
                if self._stopping:
                    return
                record = self._waiting[0]
            status = self._run(record)
            if status is None:
                return
            self._history.update(record, command=ENDED, exit_status=status)
            self._figures.note_command(status)
            if status:
                text = f"the command for {record.file} ended with {status}"
                self._report.say(
                    "command-failed", text, Priority.WARNING, file=record.file, exit_status=status
                )
            with self._changed:
                self._waiting.popleft()
            self._wake()

    def _run(self, record: Record) -> int | None:
        """Its exit status; None if it was ended because the service ends."""
        with self._changed:
            if self._stopping:
                return None
            try:
                self._running = subprocess.Popen(
                    ["/bin/sh", "-c", self._command],
                    env=_environment(record),
                    stdin=subprocess.DEVNULL,
                    stdout=2,
                    start_new_session=True,
                )
            except OSError as error:
                text = f"the command for {record.file} cannot be started: {error.strerror or error}"
                self._report.say("command-failed", text, Priority.ERROR, file=record.file)
                return _CANNOT_START
        status = self._running.wait()
        with self._changed:
            self._running = None
            if status < 0 and self._stopping:
                return None
        return status if status >= 0 else 128 - status

    def _signal(self, number: signal.Signals) -> None:
        """To the command and all that it has started in its session."""
        if self._running is not None and self._running.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running.pid, number)


def _environment(record: Record) -> dict[str, str]:
    """Names are never part of the command: a shell would run what is in them."""
    # Whether this service is ready is for itself to say.
    own = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
    return {
        **own,
        "WORMCAST_FILE": str(record.file),
        "WORMCAST_ORIGIN": str(record.origin),
        "WORMCAST_GROUP": record.group,
        "WORMCAST_MESSAGE": str(record.message),
        "WORMCAST_SHA256": str(record.sha256),
        "WORMCAST_BYTES": str(record.bytes),
    }
