"""Receives files: whole and checked, or not at all."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from wormcast.cli.arriving import ArrivingFile, FileSettings
from wormcast.cli.outlet import Outlet
from wormcast.cli.placing import remove_left_behind
from wormcast.cli.progress import ProgressLine, facts_of
from wormcast.cli.refusal import Refusal, show
from wormcast.cli.send_report import TOO_SLOW
from wormcast.cli.session import OFFER_LOOK_S, Session, described, place_of, report_of
from wormcast.client import (
    Agent,
    AgentGoneError,
    AgentTimeoutError,
    AgentUnavailableError,
    Arrival,
    IncomingMessage,
    Receiver,
    RefusedError,
    WrittenFile,
)
from wormcast.exits import Exit

__all__ = ["FileSettings", "receive_files"]

_RETRY_S = 0.2
"""Between two looks for an agent that is gone."""
_NOT_YET = ("no_plan", "unknown_group")
"""What an agent that has just started answers until the controller has sent it its groups."""


class _NothingCameError(Exception):
    """Nothing was received for as long as the user allows."""


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
    if not settings.to_stdout:
        if not settings.output.is_dir():
            what = "a file, not a directory" if settings.output.exists() else "not a directory; make it first"
            raise NotADirectoryError(f"{settings.output} is {what}")
        remove_left_behind(settings.output)
    quiet = as_json or settings.to_stdout
    with ProgressLine(quiet=quiet, as_json=as_json) as line:
        # Messages of one origin come one after the other: they need not be kept to stay whole.
        session = _Session(settings, line, as_json, count, stream=origin is not None)
        try:
            agent, receiver = _open(group, origin, timeout_s, socket, settings)
            if not quiet:
                line.say(f"receiving from group {receiver.group.label}")
            while True:
                with agent:
                    try:
                        session.receive(agent, receiver, timeout_s)
                        receiver.close()
                        break
                    except AgentGoneError as gone:
                        session.agent_gone(str(gone))
                if session.is_over:
                    break
                agent, receiver = _open_again(group, origin, timeout_s, socket, settings, line)
        except _NothingCameError as nothing:
            line.close()
            if as_json:
                show(Refusal(str(nothing), code="timeout"), as_json)
            else:
                line.say(f"wormcast: {nothing}")
            return Exit.TIMEOUT if count is not None else session.exit_status()
        except KeyboardInterrupt:
            return Exit.INTERRUPTED
        finally:
            session.drop_all()
    return session.exit_status()


def _open(
    group: int | str,
    origin: int | None,
    timeout_s: float | None,
    socket: Path | None,
    settings: FileSettings,
) -> tuple[Agent, Receiver]:
    """However long the agent takes, but for what the user allows."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    try:
        agent = Agent(socket, timeout_s=None, deadline=deadline)
        try:
            receiver = agent.open_receiver(group, origin=origin, files=not settings.to_stdout)
        except BaseException:
            agent.close()
            raise
    except AgentTimeoutError:
        raise AgentTimeoutError(f"the agent has not answered for {timeout_s:g} s") from None
    agent.deadline = None
    return agent, receiver


def _open_again(
    group: int | str,
    origin: int | None,
    timeout_s: float | None,
    socket: Path | None,
    settings: FileSettings,
    line: ProgressLine,
) -> tuple[Agent, Receiver]:
    """When the agent is there again, and knows the group. What is waited for is shown."""
    over = None if timeout_s is None else time.monotonic() + timeout_s
    shown = ""
    while True:
        try:
            opened = _open(group, origin, timeout_s, socket, settings)
            line.note("agent-back", f"the agent is there again; receiving from group {opened[1].group.label}")
            return opened
        except (AgentUnavailableError, AgentGoneError) as error:
            why = str(error)
        except RefusedError as error:
            if error.code not in _NOT_YET:
                raise
            why = str(error)
        if why != shown:
            line.note("agent-gone", f"waiting for the agent: {why}")
            shown = why
        if over is not None and over <= time.monotonic():
            raise _NothingCameError(f"nothing has come for {timeout_s:g} s")
        time.sleep(_RETRY_S)


class _Session(Session):
    """Those of `wormcast recv`: into a directory, or whole to standard output, one after another."""

    def __init__(
        self, settings: FileSettings, line: ProgressLine, as_json: bool, count: int | None, *, stream: bool
    ) -> None:
        super().__init__(settings, stream=stream)
        self._line = line
        self._as_json = as_json
        self._count = count
        self._outlet = Outlet() if settings.to_stdout and not stream else None
        self._digests: dict[IncomingMessage, tuple[str, Arrival | None]] = {}
        """Of files that wait for standard output."""
        self._taken = 0
        self._missed = 0
        self._had: set[tuple[int, str | None]] = set()
        """What came whole and may come again: of whom, and its name. `count` at most; without that nothing is counted."""
        self._stopped = False

    @property
    def is_over(self) -> bool:
        """No more files are wanted, or there is nowhere to put them."""
        return self._stopped or (self._count is not None and self._taken >= self._count)

    def exit_status(self) -> int:
        """0 if every file came through."""
        return Exit.INCOMPLETE if self._missed else Exit.DONE

    def receive(self, agent: Agent, receiver: Receiver, timeout_s: float | None) -> None:
        """Takes what comes until no more is wanted."""
        came = time.monotonic()
        while not self.is_over:
            writing = self._outlet is not None and self._outlet.is_busy
            left = None if timeout_s is None else max(came + timeout_s - time.monotonic(), 0.0)
            look_s = self.look_s
            if look_s is not None:
                left = look_s if left is None else min(left, look_s)
            event = receiver.next_event(0 if writing else left)
            self.answer_offers()
            self.extend()
            if event is not None:
                self.take(event)
            if event is not None or writing or look_s == OFFER_LOOK_S:
                came = time.monotonic()
            elif timeout_s is not None and time.monotonic() >= came + timeout_s:
                raise _NothingCameError(f"nothing has come for {timeout_s:g} s")
            if writing:
                self._write_out(agent, wait=event is None)

    def agent_gone(self, why: str) -> None:
        """What was arriving will not go on. What is whole is still written out."""
        if self._outlet is not None:
            for file in self._outlet.files:
                file.lost = why
            while self._outlet.is_busy and not self.is_over:
                self._write_out(None, wait=True)
        super().agent_gone(why)

    def _lose(self, file: ArrivingFile, reason: str) -> None:
        if self._outlet is not None and self._outlet.has_begun(file):
            file.lost = reason
        else:
            super()._lose(file, reason)

    def _finish(self, file: ArrivingFile, arrival: Arrival | None, written: WrittenFile | None) -> None:
        if self._outlet is None:
            super()._finish(file, arrival, written)
            return
        _, digest = file.finish(written, self._extend_all)
        if self._outlet.is_busy:
            first = self._outlet.files[0].shown
            text = f"{file.shown} is here and waits: {first} is being written to standard output"
            self._line.note("waits", text)
        self._digests[file.message] = (digest, arrival)
        self._outlet.put(file)

    def _write_out(self, agent: Agent | None, *, wait: bool) -> None:
        """Writes a piece to standard output. The agent learns that this is not a program that stands still."""
        assert self._outlet is not None
        file = self._outlet.files[0]
        try:
            moved, done = self._outlet.step(agent, wait=wait)
            if moved and agent is not None:
                self._outlet.ask_for_time()
        except OSError as error:
            # A part of the file may be out: nothing can follow it.
            self._stopped = True
            self._fail_to_write(file, error)
            return
        if done:
            digest, arrival = self._digests.pop(file.message)
            self._confirm(file, None, digest, arrival)

    def _settled(self, file: ArrivingFile, path: Path | None, digest: str, arrival: Arrival | None) -> None:
        again = file.header is not None and file.header.again and file.is_unchanged
        if not (again and (file.origin, file.name) in self._had):
            self._taken += 1
        if self._count is not None and file.header is not None and file.header.offered:
            self._had.add((file.origin, file.name))
        self._missed += file.lost is not None
        where = f"{place_of(file, path)} from host {file.origin}"
        lost = f"it is whole, but its sender counts this host as failed: {file.lost}"
        if self._as_json:
            report = report_of(file, path, digest, arrival)
            if file.lost is not None:
                report["error"] = lost
            click.echo(json.dumps(report), err=self._settings.to_stdout)
        elif not self._settings.to_stdout:
            self._line.say(f"{where}: {described(file, digest, arrival)}")
        if file.lost is not None and not self._as_json:
            self._line.say(f"wormcast: {where}: {lost}")

    def _failed(self, file: ArrivingFile, reason: str) -> None:
        if self._outlet is not None:
            self._outlet.remove(file)
            self._digests.pop(file.message, None)
        if file.is_torn:
            reason += f"; {file.size} bytes of it are on standard output, so nothing can follow"
            self._stopped = True
        about = file.header
        if about is None or not (about.more or (about.late and reason.startswith(TOO_SLOW))):
            self._taken += 1
            self._missed += 1
        if self._as_json:
            report = {"origin": file.origin, "name": file.name, "error": reason}
            click.echo(json.dumps(report), err=self._settings.to_stdout)
        else:
            self._line.say(f"wormcast: {file.shown}: {reason}")

    def _refused(self, file: ArrivingFile, reason: str) -> None:
        self._line.note("refused", f"{file.shown} will not be taken: {reason}")

    def _show(self) -> None:
        """All files together: one line has no room for more."""
        named = [file for file in self._files.values() if file.name is not None]
        files = [file for file in named if file.offer is None]
        if not files:
            self._line.show(None)
            return
        label = files[0].shown if len(files) == 1 else f"{len(files)} files"
        done, sizes = sum(file.size for file in files), [file.announced for file in files]
        total = sum(size for size in sizes if size is not None) if None not in sizes else None
        since = [file.since for file in files if file.since is not None]
        rate = None
        if len(since) == len(files) and (passed := time.monotonic() - min(since)) > 0:
            # Of all that has come since the first byte came: the agent may have kept some of it for a while.
            rate = done * 8 / passed
        self._line.show(facts_of(label, done, total, rate))
