"""Sends a file and shows how far it has come."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from wormcast.cli.bundle import BundleOptions
from wormcast.cli.content import Content, name_of, open_bundle, open_content
from wormcast.cli.offering import offer_list, reason_of, states_of, wait_for_reasons
from wormcast.cli.recipients import MembersMissingError, Recipients, is_not_there, open_sender
from wormcast.cli.refusal import Refusal
from wormcast.cli.rest import Unavailable
from wormcast.cli.send_display import SendDisplay, named
from wormcast.cli.send_report import (
    EARLIER,
    TOO_SLOW,
    Outcome,
    report_agent_gone,
    report_missing,
    report_outcome,
    report_timeout,
    unknown_members,
)
from wormcast.cli.tries import Slow, Tries
from wormcast.client import (
    Agent,
    AgentError,
    AgentGoneError,
    AgentTimeoutError,
    AgentUnavailableError,
    HandleClosedError,
    MemberState,
    RefusedError,
    Sender,
)
from wormcast.client.files import DIGEST_BYTES, encode_file_start, safe_file_name

_GRACE_S = 1.0
"""Beyond the time given: for asking the agent how far it has come, and for giving up."""
_LOOK_S = 1.0
"""Between two looks whether any member is left: most failures are reported at once."""
_OPEN = ("unconfirmed", "pending")
"""States of members that may still get it."""


class _NobodyLeftError(Exception):
    """Every member has failed: the rest of the file is for nobody."""

    def __init__(self, members: list[MemberState]) -> None:
        super().__init__()
        self.members = members


@dataclass
class _Sending:
    """How far the command has come."""

    shown: str
    slow: Slow
    is_last: bool
    is_again: bool
    sender: Sender | None = None
    message: int | None = None
    count: int = 0
    digest: str = ""
    is_offering: bool = False
    """Nothing of the files has been sent, but their list."""
    since: float = 0.0
    """When the agent was ready to take the file."""


def send_files(
    files: list[Path],
    options: BundleOptions,
    recipients: Recipients,
    name: str | None,
    tries: Tries,
    rate_bits: int | None,
    slow: Slow,
    socket: Path | None,
    as_json: bool,
) -> int:
    """Sends files and directories as one message, and again to those that failed if that is asked for; returns the
    exit status."""
    shown_name = safe_file_name(name or name_of(files))
    there: set[int] = set()
    is_first = True
    with contextlib.ExitStack() as stack:
        content = stack.enter_context(open_content(files, options, tries.begin(), tries.end))
        # With --changed, what they take to be read does not count as a try.
        deadline = tries.begin()
        display = stack.enter_context(SendDisplay(shown_name, content.size, as_json=as_json))
        display.note_left_out(content.left_out)
        while True:
            state = _Sending(shown_name, slow, is_last=tries.more == 0, is_again=not is_first)
            attempt = _Attempt(recipients, content, state, tries.passed, there, display, as_json)
            try:
                end = attempt.run(socket, deadline, rate_bits)
            except (AgentUnavailableError, AgentGoneError, Unavailable, RefusedError, Refusal) as error:
                is_final = not is_not_there(error)
                # The agent or the controller may be starting again.
                again = functools.partial(display.note_again, str(error))
                if is_first or is_final or not tries.go_on(again):
                    display.note_there(there)
                    raise
            else:
                if end.slow and slow.late:
                    # Now they have their time.
                    slow = Slow()
                    display.note_again(f"{named(end.slow)} too slow", "now what they lack")
                elif end.why is None or not tries.go_on(functools.partial(display.note_again, end.why)):
                    display.close()
                    return end.report()
            deadline, is_first = tries.begin(), False


@dataclass
class _End:
    """How a try ended: what is said of it if it is the last, and why another one may do better."""

    report: Callable[[], int]
    why: str | None
    slow: list[int] = field(default_factory=list)
    """Members that were too slow."""


@dataclass
class _Attempt:
    """One try."""

    recipients: Recipients
    content: Content
    state: _Sending
    passed: tuple[str, float]
    """The option that ends it, and its seconds."""
    there: set[int]
    """Members that have confirmed all of it, in this try or one before."""
    display: SendDisplay
    as_json: bool

    def run(self, socket: Path | None, deadline: float | None, rate_bits: int | None) -> _End:
        """AgentUnavailableError, AgentGoneError or RefusedError: nothing was sent."""
        state = self.state
        with contextlib.ExitStack() as stack:
            agent = None
            try:
                # However long the agent takes: a machine that stands still has not failed.
                agent = stack.enter_context(Agent(socket, timeout_s=None, deadline=deadline))
                state.sender = self._open(agent, rate_bits)
                state.since = time.monotonic()
                self.display.describe(state.sender)
                outcome = self._send(agent, state.sender, deadline)
            except MembersMissingError as missing:
                return _End(functools.partial(self._report_missing, missing), missing.reason)
            except AgentTimeoutError as error:
                known = _give_up(agent, state)
                if known is None or known[1] == "cancelled" or any(m.state in _OPEN for m in known[0]):
                    return self._timed_out(known, str(error))
                outcome = Outcome(state.message, known[0])
            except AgentGoneError as error:
                if state.sender is None:
                    raise
                return _End(functools.partial(self._report_gone, str(error)), str(error))
            except _NobodyLeftError as nobody:
                assert agent is not None
                assert state.sender is not None
                _cancel(agent, state.sender)
                outcome = Outcome(state.message, nobody.members, stopped=True)
        return self._settled(outcome)

    def _open(self, agent: Agent, rate_bits: int | None) -> Sender:
        return open_sender(
            agent,
            self.recipients,
            lambda group: agent.open_sender(
                group,
                on_progress=self.display.update,
                on_unclaimed=self.display.note_unclaimed,
                on_slow=self.display.note_slow,
                rate_bits=rate_bits,
            ),
            self.passed,
            self.display.note_waiting,
        )

    def _send(self, agent: Agent, sender: Sender, deadline: float | None) -> Outcome:
        offer, state = self.content.offer, self.state
        if offer is None:
            return _write_all(agent, sender, self.content, state)
        state.is_offering = True
        offered = offer_list(agent, sender, offer, state.shown, self.display.unclaimed)
        # Who takes the list, or says why not, takes part in this try: its word of one before does not count any more.
        self.there.difference_update(one.host for one in offered if one.state == "delivered")
        self.there.difference_update(sender.answers)
        reasons = {one.host: one.reason for one in offered if one.state == "failed"}
        if len(reasons) == len(offered):
            return Outcome(None, offered, stopped=True)
        with open_bundle(offer.bundle(), deadline, is_offered=True) as content:
            self.display.expect(content.size)
            outcome = _write_all(agent, sender, content, state)
        failed = [one for one in outcome.members if one.host not in reasons]
        wait_for_reasons(agent, sender, failed, self.display.unclaimed)
        members = [
            one
            if one.state == "delivered"
            else replace(one, reason=reasons.get(one.host) or reason_of(sender, one.host, one.reason))
            for one in outcome.members
        ]
        return replace(outcome, members=members)

    def _settled(self, outcome: Outcome) -> _End:
        sender, state = self.state.sender, self.state
        assert sender is not None
        self.there.update(one.host for one in outcome.members if one.state == "delivered")
        outcome = replace(outcome, members=self._with_there(outcome.members))
        only_present = self.recipients.only_present
        lacking = [
            one.host
            for one in outcome.members
            if one.state != "delivered" and not (only_present and one.left_out)
        ]
        seconds = time.monotonic() - state.since
        report = functools.partial(
            report_outcome,
            outcome,
            sender,
            state.shown,
            (state.count, self.content.size if self.content.offer is not None else None),
            state.digest,
            seconds,
            self.display.unclaimed,
            self.display.slow,
            self.as_json,
            only_present,
        )
        slow = [one.host for one in outcome.members if one.state != "delivered" and one.reason == TOO_SLOW]
        return _End(report, f"{named(lacking)} failed" if lacking else None, slow)

    def _timed_out(self, known: tuple[list[MemberState], str] | None, why: str) -> _End:
        sender = self.state.sender
        members, leftover = known or ([] if sender is None else unknown_members(sender), "unknown")
        report = functools.partial(
            report_timeout,
            self.state.shown,
            self.passed,
            sender,
            self._with_there(members),
            leftover,
            why,
            self.as_json,
        )
        return _End(report, f"{self.passed[1]:g} s ({self.passed[0]}) have passed")

    def _report_gone(self, why: str) -> int:
        state, sender = self.state, self.state.sender
        assert sender is not None
        was_ended = sender.was_ended and not state.is_offering
        members = self._with_there(unknown_members(sender, may_have_it=was_ended))
        return report_agent_gone(state.shown, sender, members, why, self.as_json, was_ended=was_ended)

    def _report_missing(self, missing: MembersMissingError) -> int:
        missing.members = self._with_there(missing.members)
        return report_missing(self.state.shown, missing, self.as_json)

    def _with_there(self, members: list[MemberState]) -> list[MemberState]:
        """What members confirmed that take no part in the tries since."""
        earlier = {host: MemberState(host, "delivered", EARLIER) for host in self.there}
        return [one if one.state == "delivered" else earlier.get(one.host, one) for one in members]


def _write_all(agent: Agent, sender: Sender, content: Content, state: _Sending) -> Outcome:
    _write(agent, sender, content, state)
    state.message = sender.end()
    stable = sender.wait_stable(state.message)
    return Outcome(stable.message, states_of(stable))


def _give_up(agent: Agent | None, state: _Sending) -> tuple[list[MemberState], str] | None:
    """What is known of each member now, and what becomes of the message: cancelled, or it
    continues; None if the agent does not say."""
    if agent is None or state.sender is None:
        return None
    agent.deadline = time.monotonic() + _GRACE_S
    try:
        if state.is_offering:
            # Who has the list has nothing of the files.
            state.sender.give_up()
            others = unknown_members(state.sender)
            return [m if m.state == "failed" else MemberState(m.host, "pending") for m in others], "cancelled"
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
    start = encode_file_start(
        state.shown,
        size,
        content.mode,
        content.mtime_ns,
        content.bundle,
        offered=content.is_offered,
        lag_bytes=state.slow.lag_bytes,
        late=state.slow.late,
        more=not state.is_last,
        again=state.is_again,
    )
    if size is not None:
        sender.announce(len(start) + size + DIGEST_BYTES)
    sender.write(start)
    # Until now the agent would tell who has the list, as of the message that was ended last.
    state.is_offering = False
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
