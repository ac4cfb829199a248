"""Which groups the service receives from, and by which connections to the agent."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from wormcast.client import (
    Agent,
    AgentGoneError,
    AgentUnavailableError,
    Group,
    HandleClosedError,
    Receiver,
    ReceiverEvent,
    RefusedError,
)
from wormcast.receive.report import Priority, Report

RECEIVERS_MAX = 16
"""Of a connection: as many of its 32 handles are left for messages that arrive."""
CONNECTIONS_MAX = 16
"""Half of those that an agent serves; the others are for other programs."""
GROUPS_MAX = RECEIVERS_MAX * CONNECTIONS_MAX
"""More groups: those with the greatest numbers are left out, and it is said."""
RETRY_S = 1.0
"""Between two attempts to have a connection more."""
_NOT_YET = ("no_plan", "unknown_group")
"""A plan is on its way; the agent tells when it is there."""
_NO_PLAN = ""


@dataclass
class _Line:
    """A connection, and its receivers by group."""

    agent: Agent
    receivers: dict[int, Receiver] = field(default_factory=dict)


class Receivers:
    """The receivers of this service: one of each group that it is to receive from, as far as it can."""

    def __init__(
        self,
        wanted: tuple[int | str, ...],
        origin: int | None,
        socket: Path | None,
        interrupt: int,
        report: Report,
        group_gone: Callable[[int, str], None],
    ) -> None:
        """`wanted`: groups by number or name; none: all of this host. `interrupt`: as of `Agent`. `group_gone` is told
        the number of a group whose receiver is gone, and why."""
        self._wanted = wanted
        self._origin = origin
        self._socket = socket
        self._interrupt = interrupt
        self._report = report
        self._group_gone = group_gone
        self._lines: list[_Line] = []
        self._said: dict[int | str, str] = {}
        """Why nothing comes of a group, as it was said last."""
        self._short: str | None = None
        """Why a connection was refused that may be had later."""
        self._retry_at = 0.0

    @property
    def count(self) -> int:
        """Groups that are received from."""
        return sum(len(line.receivers) for line in self._lines)

    @property
    def count_left_out(self) -> int:
        """Groups that are wanted and not received from."""
        return len(self._said.keys() - {_NO_PLAN})

    @property
    def changed(self) -> bool:
        """`update` has something to do: the groups of the agent are not those that it named, or it is time to try for
        a connection again."""
        told = bool(self._lines) and self._lines[0].agent.groups_changed
        return told or (self._short is not None and time.monotonic() >= self._retry_at)

    def connect(self) -> None:
        """To an agent; AgentUnavailableError if there is none."""
        self._lines = [_Line(self._connect())]

    def close(self) -> None:
        """All connections. What was not confirmed is given up."""
        for line in self._lines:
            line.agent.close()
        self._lines = []

    def update(self) -> None:
        """Receives from the groups there are now. The agent is asked again until nothing is left to open, and takes
        as long to give up a message of a group that it has told of."""
        self._follow(watch=False)
        while self._follow(watch=True):
            pass

    def events(self) -> Iterator[ReceiverEvent]:
        """All that has come, until no more is there."""
        while True:
            for line in self._lines:
                line.agent.poll()
            came = False
            for line in self._lines:
                for number, receiver in list(line.receivers.items()):
                    try:
                        event = receiver.take_event()
                    except HandleClosedError as closed:
                        del line.receivers[number]
                        self._report.say("group-gone", str(closed), group=receiver.group.name)
                        self._group_gone(number, str(closed))
                        continue
                    if event is not None:
                        came = True
                        yield event
            if not came:
                return

    def wait(self, descriptors: list[int], timeout_s: float | None) -> None:
        """Until something has come, one of the descriptors is readable, or `changed` may be."""
        if self._short is not None:
            left = max(self._retry_at - time.monotonic(), 0.0)
            timeout_s = left if timeout_s is None else min(timeout_s, left)
        own = [line.agent.fileno() for line in self._lines]
        select.select([*own, *descriptors], [], [], timeout_s)

    def _connect(self) -> Agent:
        return Agent(self._socket, timeout_s=None, interrupt=self._interrupt)

    def _follow(self, *, watch: bool) -> bool:
        """Whether a receiver was opened."""
        try:
            groups = self._lines[0].agent.groups(watch=watch)
        except RefusedError as error:
            if error.code not in _NOT_YET:
                raise
            self._left_out(_NO_PLAN, str(error), Priority.INFO)
            return False
        self._said.pop(_NO_PLAN, None)
        matching = {group.number: group for group in groups if self._is_wanted(group)}
        self._name_missing(groups)
        for number in [said for said in self._said if isinstance(said, int) and said not in matching]:
            del self._said[number]
        self._let_go(matching)
        self._short = None
        held = {number for line in self._lines for number in line.receivers}
        missing = [group for number, group in sorted(matching.items()) if number not in held]
        opened = [group for group in missing if self._open(group)]
        return bool(opened)

    def _is_wanted(self, group: Group) -> bool:
        if not self._wanted:
            # What is sent to a sink is for nobody.
            return not group.sink
        return group.number in self._wanted or group.name in self._wanted

    def _name_missing(self, groups: list[Group]) -> None:
        there = {key for group in groups for key in (group.number, group.name)}
        for wanted in self._wanted:
            # Numbers of groups that are there and left out are keys too.
            key = f"{wanted}"
            if wanted in there:
                self._said.pop(key, None)
            else:
                text = f"this host is in no group {wanted!r} yet; it is waited for"
                self._left_out(key, text, Priority.INFO)

    def _let_go(self, matching: dict[int, Group]) -> None:
        """Of groups that are not wanted any more, as when another has the number. Names are those of now."""
        for line in self._lines:
            for number, receiver in list(line.receivers.items()):
                group = matching.get(number)
                if group is not None:
                    receiver.group = group
                    continue
                del line.receivers[number]
                with contextlib.suppress(RefusedError):
                    receiver.close()
                why = f"group {receiver.group.label} is not received from any more"
                self._report.say("group-gone", why, group=receiver.group.name)
                self._group_gone(number, why)

    def _open(self, group: Group) -> bool:
        """Whether it is received from now; if not, it is said why."""
        for line in self._with_room():
            try:
                receiver = line.agent.open_receiver(group.number, origin=self._origin, files=True)
            except RefusedError as error:
                if error.code == "limit_reached":
                    # Many messages arrive there.
                    continue
                if error.code not in _NOT_YET:
                    self._left_out(group.number, f"group {group.label} is not received from: {error}")
                return False
            line.receivers[group.number] = receiver
            self._said.pop(group.number, None)
            self._report.say("receiving", f"receiving from group {group.label}", group=group.name)
            return True
        most = f"this service receives from at most {GROUPS_MAX} groups; name those that it shall, by --group"
        why = self._short or most
        self._left_out(group.number, f"group {group.label} is not received from: {why}")
        return False

    def _with_room(self) -> Iterator[_Line]:
        """Connections for one receiver more, then new ones."""
        yield from [line for line in self._lines if len(line.receivers) < RECEIVERS_MAX]
        while len(self._lines) < CONNECTIONS_MAX and self._short is None:
            try:
                self._lines.append(_Line(self._connect()))
            except (AgentGoneError, AgentUnavailableError) as error:
                self._short = str(error)
                self._retry_at = time.monotonic() + RETRY_S
            else:
                yield self._lines[-1]

    def _left_out(self, key: int | str, text: str, priority: Priority = Priority.WARNING) -> None:
        if self._said.get(key) != text:
            self._said[key] = text
            self._report.say("left-out", text, priority)
