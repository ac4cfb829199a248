"""Whom `wormcast send` sends to: a group, or hosts, for which there is a group of their own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wormcast.cli.host_list import HOSTS_MAX, Host
from wormcast.cli.refusal import Refusal
from wormcast.cli.rest import Client, Refused, Unavailable, segment
from wormcast.client import Agent, AgentTimeoutError, MemberState, RefusedError, Sender
from wormcast.exits import Exit

_LOOK_S = 0.2
"""Between two looks at the group."""
_NOTE_S = 1.0
"""After so long it says whom it waits for."""
NOT_THERE = ("unknown_group", "no_plan", "no-plan")
"""How a group is refused that the plan of an agent does not have, or not yet."""


def is_not_there(error: Exception) -> bool:
    """Whether what is missing may come: the agent, the controller, or the group in the plan."""
    code = error.error["code"] if isinstance(error, Refusal) else getattr(error, "code", None)
    return code is None or code in NOT_THERE


OpenSender = Callable[[int | str], Sender]
Json = dict[str, Any]


@dataclass(frozen=True)
class Recipients:
    """Whom the options name."""

    group: int | str | None = None
    hosts: tuple[Host, ...] = ()
    """Without a group: that of these hosts and this one."""
    wait_s: float | None = None
    """How long members may take until they receive; None: nobody is waited for."""
    only_present: bool = False
    """Members that take no part are not waited for."""
    api: str = ""
    """The controller, where the others need one."""


class MembersMissingError(Exception):
    """The time is over and not all members are there: nothing was sent."""

    def __init__(
        self, option: str, seconds: float, group: Json | None, own: int, missing: dict[int, str]
    ) -> None:
        """`group`: None if the controller has not answered."""
        super().__init__()
        self.option, self.seconds, self.group = option, seconds, group
        state = [] if group is None else group["state"]
        self.members = [
            MemberState(member["host"], "pending", missing.get(member["host"]))
            for member in state
            if member["host"] != own or own in missing
        ]
        self.reason = "the controller does not answer" if group is None else describe(missing, group)


def describe(missing: dict[int, str], group: Json) -> str:
    """Who is missing, those with one reason together."""
    names = {member["host"]: member["name"] for member in group["state"]}
    hosts: dict[str, list[str]] = {}
    for host, reason in missing.items():
        named = f"{host} ({names[host]})" if names.get(host) else str(host)
        hosts.setdefault(reason, []).append(named)
    return "; ".join(
        f"host{'s' if len(those) > 1 else ''} {', '.join(those)}: {reason}" for reason, those in hosts.items()
    )


def open_sender(
    agent: Agent,
    recipients: Recipients,
    opening: OpenSender,
    passed: tuple[str, float],
    note: Callable[[str, list[int]], None],
) -> Sender:
    """A sender to the recipients, once they are there: of hosts the group is in force, and of members that are waited
    for each one receives.

    `opening` opens a sender to a group, `passed` is the option for the time that `agent.deadline` ends, and its seconds.
    `note` is told once who is waited for. Raises `MembersMissingError`, `Refusal`, `AgentError`.
    """
    if recipients.group is not None and recipients.wait_s is None:
        return opening(recipients.group)
    own = agent.host
    if own is None:
        text = "no controller has registered the agent of this host yet; 'wormcast status' shows why"
        raise Refusal(text, code="no-plan")
    return _Waiting(agent, own, recipients, opening, passed, note).sender()


class _Waiting:
    def __init__(
        self,
        agent: Agent,
        own: int,
        recipients: Recipients,
        opening: OpenSender,
        passed: tuple[str, float],
        note: Callable[[str, list[int]], None],
    ) -> None:
        self._agent, self._own, self._recipients, self._opening = agent, own, recipients, opening
        self._note = note
        self._whole = agent.deadline
        """Of the command."""
        self._option, self._seconds = passed
        self._deadline = self._whole
        if (wait_s := recipients.wait_s) is not None:
            end = time.monotonic() + wait_s
            if self._whole is None or end < self._whole:
                self._option, self._seconds, self._deadline = "--wait-for-members", wait_s, end

    def sender(self) -> Sender:
        self._agent.deadline = self._deadline
        group: Json | None = None
        missing: dict[int, str] = {}
        try:
            group = self._first_look()
            note_at: float | None = time.monotonic() + _NOTE_S
            while True:
                sender = self._open(group)
                missing = self._missing(group, sender)
                if not missing and sender is not None:
                    return sender
                _close(sender)
                if note_at is not None and time.monotonic() >= note_at:
                    note_at = None
                    self._note(f"waiting for {describe(missing, group)}", sorted(missing))
                self._pause()
                group = self._look(group)
        except AgentTimeoutError:
            missing = missing or {self._own: "its agent does not answer"}
            raise MembersMissingError(self._option, self._seconds, group, self._own, missing) from None
        finally:
            self._agent.deadline = self._whole

    def _first_look(self) -> Json:
        """The group as the controller has it; of hosts it is made if there is none."""
        if self._recipients.group is None:
            group = self._ask("PUT", "/groups", {"members": self._members()})
        else:
            group = self._ask("GET", f"/groups/{segment(str(self._recipients.group))}")
        if self._own not in group["members"]:
            text = f"host {self._own} is not a member of group {group['id']} ({group['name']})"
            raise Refusal(
                f"{text}; its members are {', '.join(map(str, group['members']))}",
                code="unknown-group",
                value=self._own,
                choices=group["members"],
            )
        return group

    def _members(self) -> list[Host]:
        """This host and the others; this one may be named among them."""
        itself = (self._own, self._agent.name)
        others = [host for host in self._recipients.hosts if host not in itself]
        if not others:
            text = f"--to: {self._agent.name} (host {self._own}) is this host itself; name others to send to"
            raise Refusal(text, code="usage", value=self._agent.name)
        if len(others) >= HOSTS_MAX:
            bound = f"{HOSTS_MAX - 1} hosts beside this one"
            text = f"--to: {len(others)} hosts beside this one are named; possible: {bound}"
            raise Refusal(text, code="usage", value=len(others), bound=bound)
        return [self._own, *others]

    def _look(self, before: Json) -> Json:
        group: Json | None = None
        while group is None:
            try:
                group = self._ask("GET", f"/groups/{before['id']}")
            except Unavailable:
                if self._recipients.wait_s is None:
                    raise
                self._pause()  # it may be starting again; the time that is given bounds the wait
            except Refused as error:
                if error.error["code"] != "not-found":
                    raise
                group = {"name": None}
        if group["name"] != before["name"]:
            text = f"group {before['id']} ({before['name']}) was deleted meanwhile; nothing was sent"
            raise Refusal(text, code="deleted", exit_code=Exit.NO)
        if self._recipients.group is None and group["members"] != before["members"]:
            text = f"the members of group {before['id']} ({before['name']}) were changed meanwhile; nothing was sent"
            raise Refusal(text, code="conflict")
        return group

    def _ask(self, method: str, path: str, body: object = None) -> Json:
        """Asks the controller, however long it takes within the time that is given."""
        while True:
            left = None if self._deadline is None else self._deadline - time.monotonic()
            if left is not None and left <= 0:
                raise AgentTimeoutError("no answer from the controller within the time limit")
            client = Client(self._recipients.api, timeout_s=left)
            try:
                answer: Json = client.send(method, path, body)
                return answer
            except Unavailable as error:
                if self._deadline is not None and time.monotonic() >= self._deadline:
                    raise AgentTimeoutError(str(error)) from error
                raise
            except Refused as error:
                if error.error["code"] != "busy":
                    raise
            self._pause()

    def _pause(self) -> None:
        now = time.monotonic()
        if self._deadline is not None and now >= self._deadline:
            raise AgentTimeoutError("the members are not there within the time limit")
        time.sleep(_LOOK_S if self._deadline is None else min(_LOOK_S, self._deadline - now))

    def _open(self, group: Json) -> Sender | None:
        """None: the agent of this host has another group, or the one before a change."""
        try:
            sender = self._opening(group["id"])
        except RefusedError as error:
            if error.code not in NOT_THERE:
                raise
            return None
        known = sender.group
        members = sorted([*known.members, *(one.host for one in known.left_out)])
        if known.name == group["name"] and members == group["members"]:
            return sender
        _close(sender)
        return None

    def _missing(self, group: Json, sender: Sender | None) -> dict[int, str]:
        """Members that are waited for, and why. What a host's own agent takes for the members must be what the
        controller takes for them: both follow the group, one after the other."""
        there = set() if sender is None else set(sender.group.members)
        away, missing = {}, {}
        for member in group["state"]:
            host, takes_part = member["host"], member["takes_part"]
            if host == self._own:
                if member["refused"]:
                    raise Refusal(f"the agent of this host refuses the group: {member['refused']}")
                reason = _unsettled(member, sender is not None and host in there)
            elif not takes_part:
                away[host] = member["reason"] or "it takes no part"
                reason = away[host] if self._waits_for_away or host in there else None
            else:
                reason = _unsettled(member, host in there)
                if reason is None and self._recipients.wait_s is not None and not group["sink"]:
                    reason = self._not_receiving(member)
            if reason is not None:
                missing[host] = reason
        if self._recipients.wait_s is not None and len(away) == len(group["state"]) - 1:
            missing.update(away)  # nobody else is there, so these are waited for
        return missing

    @property
    def _waits_for_away(self) -> bool:
        return self._recipients.wait_s is not None and not self._recipients.only_present

    def _not_receiving(self, member: Json) -> str | None:
        if member.get("receives") or self._own in member.get("receives_from", ()):
            return None
        if member.get("receives") is not None:
            return "no receiver is open"
        if member["state"] == "dead":
            return "its agent is not connected to the controller"
        return "its agent or the controller does not say whether it receives; update them"


def _close(sender: Sender | None) -> None:
    if sender is not None:
        with contextlib.suppress(RefusedError):  # the agent may have closed it, with its group
            sender.close()


def _unsettled(member: Json, is_in_sender: bool) -> str | None:
    if not member["takes_part"]:
        return member["reason"] or "it takes no part"
    if not member["installed"]:
        return "its agent does not have the group yet"
    return None if is_in_sender else "the agent of this host does not have it in the group yet"
