"""Sends a file and shows how far it has come."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBars

from wormcast.cli.content import Content, open_content
from wormcast.cli.send_report import Outcome, report_outcome, report_timeout
from wormcast.client import (
    Agent,
    AgentError,
    AgentTimeoutError,
    HandleClosedError,
    MemberState,
    Progress,
    Sender,
)
from wormcast.client.files import encode_file_start, safe_file_name
from wormcast.exits import Exit

_GRACE_S = 1.0
"""Beyond the time given: for asking the agent how far it has come, and for giving up."""
_GATHER_S = 0.25
"""Hosts without receiver that are found within this time are named together."""


@dataclass
class _Sending:
    """How far the command has come."""

    shown: str
    sender: Sender | None = None
    message: int | None = None
    count: int = 0
    digest: str = ""
    since: float = 0.0
    """When the agent was ready to take the file."""


def send_file(
    file: Path,
    group: int | str,
    name: str | None,
    timeout_s: float | None,
    socket: Path | None,
    as_json: bool,
) -> int:
    """Sends the file; returns the exit status. The time given is for all of it."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    state = _Sending(safe_file_name(name or ("stdin" if str(file) == "-" else file.name)))
    with contextlib.ExitStack() as stack:
        content = stack.enter_context(open_content(file, deadline))
        display = stack.enter_context(_Display(state.shown, content.size, as_json=as_json))
        agent = None
        try:
            # However long the agent takes: a machine that stands still has not failed.
            agent = stack.enter_context(Agent(socket, timeout_s=None, deadline=deadline))
            outcome = _send(agent, group, content, state, display)
        except AgentTimeoutError as error:
            assert timeout_s is not None
            known = _give_up(agent, state)
            if known is None:
                display.close()
                report_timeout(state.shown, timeout_s, state.sender, [], "unknown", str(error), as_json)
                return Exit.TIMEOUT
            members, leftover = known
            if leftover == "cancelled" or any(m.state in ("unconfirmed", "pending") for m in members):
                display.close()
                report_timeout(state.shown, timeout_s, state.sender, members, leftover, str(error), as_json)
                return Exit.TIMEOUT
            outcome = Outcome(state.message, members)
        display.finish()
    assert state.sender is not None
    seconds = time.monotonic() - state.since
    return report_outcome(
        outcome, state.sender, state.shown, state.count, state.digest, seconds, display.unclaimed, as_json
    )


def _send(agent: Agent, group: int | str, content: Content, state: _Sending, display: _Display) -> Outcome:
    sender = agent.open_sender(group, on_progress=display.update, on_unclaimed=display.note_unclaimed)
    state.sender, state.since = sender, time.monotonic()
    display.describe(sender)
    state.count, state.digest = _write(agent, sender, content, state.shown)
    state.message = sender.end()
    stable = sender.wait_stable(state.message)
    members = [
        MemberState(each.host, "delivered" if each.delivered else "failed", each.reason)
        for each in stable.outcomes
    ]
    return Outcome(stable.message, members)


def _give_up(agent: Agent | None, state: _Sending) -> tuple[list[MemberState], str] | None:
    """What is known of each member now, and what becomes of the message: cancelled, or it
    continues; None if the agent does not say."""
    if agent is None or state.sender is None:
        return None
    agent.deadline = time.monotonic() + _GRACE_S
    try:
        known = state.sender.message_state()
        if known.ended:
            return known.members, "continues"
        if not state.sender.give_up():
            return known.members, "cancelled"
    except AgentError:
        return None
    # Its end was taken while it was asked about: nobody is known to have it.
    unsure = [m if m.state != "pending" else MemberState(m.host, "unconfirmed") for m in known.members]
    return unsure, "continues"


def _write(agent: Agent, sender: Sender, content: Content, name: str) -> tuple[int, str]:
    """Header, content, digest. A file that changes its size meanwhile is not sent."""
    digest = hashlib.sha256()
    count, size = 0, content.size
    start = encode_file_start(name, size)
    if size is not None:
        sender.announce(len(start) + size + digest.digest_size)
    sender.write(start)
    try:
        for chunk in content.chunks():
            count += len(chunk)
            if size is not None and count > size:
                break
            digest.update(chunk)
            sender.write(chunk)
    except (HandleClosedError, AgentTimeoutError):
        raise
    except BaseException:
        # Members drop what they have rather than wait for the rest.
        _cancel(agent, sender)
        raise
    if size is not None and count != size:
        _cancel(agent, sender)
        raise OSError(f"the file changed while it was sent: {size} bytes at first, then {count}")
    sender.write(digest.digest())
    return count, digest.hexdigest()


def _cancel(agent: Agent, sender: Sender) -> None:
    """If the agent does not answer, the end of the connection tells it."""
    agent.deadline = time.monotonic() + _GRACE_S
    with contextlib.suppress(AgentError):
        sender.cancel()


class _Display:
    """Two bars: sent, and stable at every member. None of it when not on a terminal."""

    def __init__(self, name: str, size: int | None, *, as_json: bool) -> None:
        console = Console(stderr=True)
        quiet = as_json
        self._as_json = as_json
        self.unclaimed: set[int] = set()
        """Hosts at which nobody received when the file came."""
        self._unsaid: set[int] = set()
        self._say_at = 0.0
        self._label = ""
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
        self.close()

    def close(self) -> None:
        """No more bars."""
        self._say()
        self._bars.stop()

    def describe(self, sender: Sender) -> None:
        """Once the group is known."""
        members = len(sender.group.members) - 1
        self._label = str(sender.group.number)
        descriptions = [f"{self._name}: sent", f"stable at {members} members ({sender.group.scheme})"]
        self._tasks = [self._bars.add_task(text, total=self._size, note="") for text in descriptions]

    def update(self, progress: Progress) -> None:
        """The engine's figures."""
        self._last = progress
        if self._unsaid and time.monotonic() >= self._say_at:
            self._say()
        self._show(progress.sent_bytes, progress.stable_bytes)

    def note_unclaimed(self, host: int) -> None:
        """Nobody receives there."""
        if host not in self.unclaimed:
            self.unclaimed.add(host)
            self._say_at = self._say_at if self._unsaid else time.monotonic() + _GATHER_S
            self._unsaid.add(host)

    def _say(self) -> None:
        hosts = sorted(self._unsaid)
        self._unsaid.clear()
        if not hosts:
            return
        named = f"host{'s' if len(hosts) > 1 else ''} {', '.join(map(str, hosts))}"
        text = f"no receiver on {named} yet; waiting for 'wormcast recv --group {self._label}' there"
        if self._as_json:
            notice = {"code": "no-receiver", "message": text, "hosts": hosts}
            click.echo(json.dumps({"notice": notice}), err=True)
        else:
            self._bars.console.print(f"wormcast: {text}", markup=False, highlight=False, soft_wrap=True)

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
