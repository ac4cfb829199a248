"""Sends a file and shows how far it has come."""

from __future__ import annotations

import contextlib
import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

from wormcast.cli.bundle import BundleOptions, shown
from wormcast.cli.content import Content, open_content
from wormcast.cli.progress import ProgressLine, Rate, facts_of
from wormcast.cli.recipients import MembersMissingError, Recipients, open_sender
from wormcast.cli.send_report import (
    Outcome,
    report_agent_gone,
    report_missing,
    report_outcome,
    report_timeout,
)
from wormcast.client import (
    Agent,
    AgentError,
    AgentGoneError,
    AgentTimeoutError,
    HandleClosedError,
    MemberState,
    Progress,
    RefusedError,
    Sender,
)
from wormcast.client.files import DIGEST_BYTES, encode_file_start, safe_file_name
from wormcast.counted import counted
from wormcast.exits import Exit

_GRACE_S = 1.0
"""Beyond the time given: for asking the agent how far it has come, and for giving up."""
_LOOK_S = 1.0
"""Between two looks whether any member is left: most failures are reported at once."""
_GATHER_S = 0.25
"""Hosts without receiver that are found within this time are named together."""


class _NobodyLeftError(Exception):
    """Every member has failed: the rest of the file is for nobody."""

    def __init__(self, members: list[MemberState]) -> None:
        super().__init__()
        self.members = members


@dataclass
class _Sending:
    """How far the command has come."""

    shown: str
    lag_bytes: int | None
    sender: Sender | None = None
    message: int | None = None
    count: int = 0
    digest: str = ""
    since: float = 0.0
    """When the agent was ready to take the file."""


def send_files(
    files: list[Path],
    options: BundleOptions,
    recipients: Recipients,
    name: str | None,
    timeout_s: float | None,
    rate_bits: int | None,
    lag_bytes: int | None,
    socket: Path | None,
    as_json: bool,
) -> int:
    """Sends files and directories as one message; returns the exit status. The time given is for all of it.
    Members at which more than ``lag_bytes`` wait for their receiver do not get it; None: all wait for them."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    state = _Sending(safe_file_name(name or _name(files)), lag_bytes)
    with contextlib.ExitStack() as stack:
        content = stack.enter_context(open_content(files, options, deadline))
        display = stack.enter_context(_Display(state.shown, content.size, as_json=as_json))
        display.note_left_out(content.left_out)
        agent = None
        try:
            # However long the agent takes: a machine that stands still has not failed.
            agent = stack.enter_context(Agent(socket, timeout_s=None, deadline=deadline))
            state.sender = open_sender(
                agent,
                recipients,
                lambda group: agent.open_sender(
                    group,
                    on_progress=display.update,
                    on_unclaimed=display.note_unclaimed,
                    on_slow=display.note_slow,
                    rate_bits=rate_bits,
                ),
                timeout_s,
                display.note_waiting,
            )
            outcome = _send(agent, state.sender, content, state, display)
        except MembersMissingError as missing:
            display.close()
            report_missing(state.shown, missing, as_json)
            return Exit.TIMEOUT
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
        except AgentGoneError as error:
            if state.sender is None:
                raise
            display.close()
            report_agent_gone(state.shown, state.sender, str(error), as_json)
            return Exit.INCOMPLETE
        except _NobodyLeftError as nobody:
            assert agent is not None
            assert state.sender is not None
            _cancel(agent, state.sender)
            outcome = Outcome(state.message, nobody.members, stopped=True)
    assert state.sender is not None
    seconds = time.monotonic() - state.since
    return report_outcome(
        outcome,
        state.sender,
        state.shown,
        state.count,
        state.digest,
        seconds,
        display.unclaimed,
        display.slow,
        as_json,
        recipients.only_present,
    )


def _name(files: list[Path]) -> str:
    """What receivers are shown."""
    first = "stdin" if str(files[0]) == "-" else files[0].name
    if first in ("", ".."):
        first = files[0].resolve().name
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


def _send(agent: Agent, sender: Sender, content: Content, state: _Sending, display: _Display) -> Outcome:
    state.since = time.monotonic()
    display.describe(sender)
    _write(agent, sender, content, state)
    state.message = sender.end()
    stable = sender.wait_stable(state.message)
    members = [
        MemberState(each.host, "delivered" if each.delivered else "failed", each.reason, each.left_out)
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


def _write(agent: Agent, sender: Sender, content: Content, state: _Sending) -> None:
    """Header, content, digest. A file that changes its size meanwhile is not sent."""
    size = content.size
    about = (content.mode, content.mtime_ns, content.bundle, state.lag_bytes)
    start = encode_file_start(state.shown, size, *about)
    if size is not None:
        sender.announce(len(start) + size + DIGEST_BYTES)
    sender.write(start)
    watch = _Watch(sender)
    try:
        if size is None:
            state.digest = _write_pipe(agent, sender, content, state, watch)
        else:
            state.digest = _send_file(sender, content, size, state, watch)
    except (HandleClosedError, AgentTimeoutError, AgentGoneError, _NobodyLeftError):
        raise
    except RefusedError as error:
        _cancel(agent, sender)
        if error.code == "storage":
            raise OSError(content.fault(False) or str(error)) from None
        raise
    except BaseException:
        # Members drop what they have rather than wait for the rest.
        _cancel(agent, sender)
        raise
    sender.write(bytes.fromhex(state.digest))


def _send_file(sender: Sender, content: Content, size: int, state: _Sending, watch: _Watch) -> str:
    def look() -> None:
        state.count = min(size, sender.progress.accepted_bytes)
        watch.look()

    digest = sender.send_file(content.descriptor, size, look)
    if (fault := content.fault(True)) is not None:
        # All was read before this was found: without its digest nobody takes it.
        raise OSError(fault)
    state.count = size
    return digest


def _write_pipe(agent: Agent, sender: Sender, content: Content, state: _Sending, watch: _Watch) -> str:
    digest = hashlib.sha256()
    for chunk in content.chunks(agent.fileno()):
        digest.update(chunk)
        sender.write(chunk)
        state.count += len(chunk)
        sender.poll()
        watch.look()
    return digest.hexdigest()


class _Watch:
    """Whether there is anybody to send to. One that is merely silent has not failed."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._known = 0
        self._due = time.monotonic() + _LOOK_S

    def look(self) -> None:
        """_NobodyLeftError if every member has failed."""
        known, now = len(self._sender.failures), time.monotonic()
        if known == self._known and now < self._due:
            return
        self._known, self._due = known, now + _LOOK_S
        members = self._sender.message_state().members
        if members and all(member.state == "failed" for member in members):
            raise _NobodyLeftError(members)


def _cancel(agent: Agent, sender: Sender) -> None:
    """If the agent does not answer, the end of the connection tells it."""
    agent.deadline = time.monotonic() + _GRACE_S
    with contextlib.suppress(AgentError):
        sender.cancel()


class _Display:
    """How far it has come, and who does not receive."""

    def __init__(self, name: str, size: int | None, *, as_json: bool) -> None:
        self.unclaimed: set[int] = set()
        """Hosts at which nobody received when the file came."""
        self.slow: set[int] = set()
        """Hosts that took it slower than it came."""
        self._unreported: set[int] = set()
        self._report_at = 0.0
        self._label = ""
        self._where = ""
        self._name = name
        self._size = size
        self._line = ProgressLine(quiet=as_json, as_json=as_json)
        self._rate = Rate()

    def __enter__(self) -> _Display:
        self._line.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._say()
        self._line.__exit__(*error)

    def close(self) -> None:
        """Nothing more is shown."""
        self._say()
        self._line.close()

    def describe(self, sender: Sender) -> None:
        """Once the group is known."""
        self._label = str(sender.group.number)
        others = [member for member in sender.group.members if member != sender.origin]
        self._where = f"at {counted(len(others), 'host')}"

    def update(self, progress: Progress) -> None:
        if self._unreported and time.monotonic() >= self._report_at:
            self._say()
        rate = self._rate.note(time.monotonic(), progress.sent_bytes)
        stable = progress.stable_bytes if self._size is None else min(progress.stable_bytes, self._size)
        more = [
            self._where,
            f"{progress.sent_bytes / 2**20:.1f} MiB sent",
            counted(progress.retransmissions, "retransmission"),
        ]
        self._line.show(facts_of(self._name, stable, self._size, rate, *more))

    def note_left_out(self, paths: list[str]) -> None:
        """What is neither file, directory nor link is not sent."""
        if paths:
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            text = f"{shown(paths[0])}{more}: no file, directory or link; not sent"
            self._line.note("left-out", text, paths=paths)

    def note_waiting(self, text: str, hosts: list[int]) -> None:
        """Nothing is sent yet."""
        self._line.note("members-missing", text, hosts=hosts)

    def note_unclaimed(self, host: int) -> None:
        """Nobody receives there."""
        if host not in self.unclaimed:
            self.unclaimed.add(host)
            self._report_at = self._report_at if self._unreported else time.monotonic() + _GATHER_S
            self._unreported.add(host)

    def note_slow(self, host: int) -> None:
        """What comes there waits for its receiver."""
        if host not in self.slow:
            self.slow.add(host)
            text = f"host {host} takes it slower than it comes; others wait for it"
            self._line.note("member-slow", text, hosts=[host])

    def _say(self) -> None:
        hosts = sorted(self._unreported)
        self._unreported.clear()
        if not hosts:
            return
        named = f"host{'s' if len(hosts) > 1 else ''} {', '.join(map(str, hosts))}"
        text = f"no receiver on {named} yet; waiting for 'wormcast recv --group {self._label}' there"
        self._line.note("no-receiver", text, hosts=hosts)
