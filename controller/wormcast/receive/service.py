"""`wormcast receive`: files into a directory until it is told to end, whatever becomes of agent and controller."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from wormcast.cli.arriving import FileSettings
from wormcast.cli.bundle import EXTEND_INTERVAL_S
from wormcast.cli.placing import remove_left_behind
from wormcast.client import AgentGoneError, AgentInterruptedError, AgentUnavailableError
from wormcast.exits import Exit
from wormcast.receive.commands import Commands
from wormcast.receive.figures import Figures
from wormcast.receive.files import Files
from wormcast.receive.history import History
from wormcast.receive.receivers import Receivers
from wormcast.receive.report import Priority, Report, notify

RETRY_S = 0.2
"""Between two looks for an agent that is not there."""


@dataclass(frozen=True)
class Options:
    """What the command line gives."""

    settings: FileSettings
    groups: tuple[int | str, ...]
    """None: all of this host."""
    origin: int | None
    command: str | None
    socket: Path | None
    as_json: bool


class Bell:
    """Wakes whoever waits for its descriptor; from any thread or signal handler."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        return self._out

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._in, b"!")

    def hush(self) -> None:
        """It has been heard."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._out, 1024):
                pass


class Stop:
    """SIGTERM or SIGINT has come: its bell rings on, and nothing is cut off in the middle."""

    def __init__(self) -> None:
        self.bell = Bell()
        self.signal: int | None = None
        """The first that came."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Signals ring the bell meanwhile."""
        before = {number: signal.signal(number, self._take) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self.signal = self.signal or number
        self.bell.ring()

    def wait(self, seconds: float) -> bool:
        """Whether it has come, within so long."""
        return bool(select.select([self.bell], [], [], seconds)[0])


@contextlib.contextmanager
def owning(directory: Path) -> Iterator[None]:
    """No other service receives into it meanwhile. OSError if one does, or if it is no directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = "another `wormcast receive` receives into it; end that, or choose another directory"
            raise OSError(errno.EBUSY, text, str(directory)) from None
        yield
    finally:
        os.close(descriptor)


def receive(options: Options, figures: Figures, report: Report) -> Exit:
    """Receives until SIGTERM or SIGINT. OSError if the directory cannot be used."""
    stop = Stop()
    with stop.watching(), owning(options.settings.output):
        directory = options.settings.output
        remove_left_behind(directory)
        history = History(
            directory,
            fsync=options.settings.fsync,
            trouble=lambda text: report.say("history", text, Priority.WARNING),
        )
        try:
            _Service(options, figures, report, stop, history).run()
        finally:
            history.close()
    return Exit.INTERRUPTED if stop.signal == signal.SIGINT else Exit.DONE


class _Service:
    """From READY=1 to STOPPING=1."""

    def __init__(
        self, options: Options, figures: Figures, report: Report, stop: Stop, history: History
    ) -> None:
        self._figures = figures
        self._report = report
        self._stop = stop
        self._ended = Bell()
        """A command has ended."""
        self._commands = None
        if options.command is not None:
            self._commands = Commands(options.command, history, report, figures, self._ended.ring)
        self._files = Files(
            options.settings, history, self._commands, report, figures, as_json=options.as_json
        )
        self._receivers = Receivers(
            options.groups,
            options.origin,
            options.socket,
            stop.bell.fileno(),
            report,
            self._files.group_gone,
        )
        self._status = ""

    def run(self) -> None:
        """Until it is told to end."""
        notify("READY=1")
        try:
            while self._connect():
                try:
                    self._receive()
                except AgentGoneError as gone:
                    self._files.agent_gone(str(gone))
                    self._stop.wait(RETRY_S)
                finally:
                    self._receivers.close()
        except AgentInterruptedError:
            pass
        finally:
            notify("STOPPING=1")
            self._files.agent_gone("this service has ended")
            self._files.drop_all()
            self._receivers.close()
            left = 0 if self._commands is None else self._commands.stop()
            if left:
                text = f"{left} commands have not run to their end: they run at the next start with --exec"
                self._report.say("commands-left", text, Priority.WARNING)

    def _connect(self) -> bool:
        """When the agent is there; false if this service is to end."""
        said = ""
        while self._stop.signal is None:
            try:
                self._receivers.connect()
                if said:
                    self._report.say("agent-back", "the agent is there")
                return True
            except (AgentUnavailableError, AgentGoneError) as error:
                if str(error) != said:
                    said = str(error)
                    self._report.say("agent-gone", f"waiting for the agent: {said}")
            self._note_status("waiting for the agent")
            self._stop.wait(RETRY_S)
        return False

    def _receive(self) -> None:
        """Until this service is to end, or the agent is gone."""
        self._receivers.update()
        while self._stop.signal is None:
            self._ended.hush()
            self._files.go_on()
            if self._take_all():
                self._note_status(f"receiving from {self._receivers.count} groups")
                limit = EXTEND_INTERVAL_S if self._files.waits else None
                limit = self._files.look_s or limit
                self._receivers.wait([self._stop.bell.fileno(), self._ended.fileno()], limit)
            if self._receivers.changed:
                self._receivers.update()

    def _take_all(self) -> bool:
        """Takes what has come. False if there is something else to do before all is taken."""
        for event in self._receivers.events():
            self._files.take(event)
            if self._stop.signal is not None or self._receivers.changed or self._files.can_go_on:
                return False
        return not self._receivers.changed

    def _note_status(self, doing: str) -> None:
        figures = self._figures
        figures.groups, figures.groups_left_out = self._receivers.count, self._receivers.count_left_out
        figures.commands_waiting = 0 if self._commands is None else self._commands.count
        counts = ", ".join(f"{count} {outcome}" for outcome, count in figures.files.items() if count)
        status = f"{doing}; {counts or 'no file has come'}"
        if status != self._status:
            self._status = status
            notify(f"STATUS={status}")
