"""What `wormcast send` says at its end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click

from wormcast.cli.recipients import MembersMissingError
from wormcast.cli.refusal import Refusal, show
from wormcast.client import MemberState, Sender
from wormcast.counted import counted
from wormcast.exits import Exit

_WORDS = {
    "delivered": "[green]has it, checked[/]",
    "failed": "[red]failed[/]",
    "pending": "not yet: not all of the file was sent",
    "unconfirmed": "unknown: no confirmation has come",
    "unknown": "unknown: the agent does not answer",
}
# hostagent/API.md §6: a receiver that does not come in time has given up too.
EARLIER = "confirmed in an earlier try"
TOO_SLOW = "too slow"
"""hostagent/API.md §4: more bytes waited for its receiver than the sender allows."""
_REASONS = {
    "application gave up": "no receiver took it in time, or it ended",
    TOO_SLOW: "too slow for --lag",
}
_LEFTOVERS = {
    "cancelled": "not all of the file was sent, so it is cancelled; members drop what they have of it",
    "lost": "members that did not have all of it may not get it; send the file again when the agent is back",
    "continues": "the file is still on its way; members without it may get it later",
    "unknown": "if the agent took all of the file, it is still on its way; if not, it is cancelled",
}


@dataclass(frozen=True)
class Outcome:
    """What became of a message at each member."""

    message: int | None
    members: list[MemberState]
    stopped: bool = False
    """Before all of it was sent, because every member had failed."""


def report_outcome(
    outcome: Outcome,
    sender: Sender,
    name: str,
    sent: tuple[int, int | None],
    digest: str,
    seconds: float,
    unclaimed: set[int],
    slow: set[int],
    as_json: bool,
    only_present: bool,
) -> int:
    """Every member is settled; gives the exit status. ``sent``: bytes, and of how many if receivers had some. Those left out do not count with `only_present`, but where no
    other member is, nobody has the file, which is no success."""
    retransmissions = sender.progress.retransmissions
    left_out = [member for member in outcome.members if member.left_out and member.state != "delivered"]
    those = [member for member in outcome.members if not (only_present and member in left_out)]
    failed = [member for member in those if member.state != "delivered"]
    count, total = sent
    rate = count * 8 / seconds / 1e6
    if as_json:
        report = {
            "group": sender.group.number,
            "scheme": sender.group.scheme,
            "message": outcome.message,
            "name": name,
            "bytes": count,
            **({} if total is None else {"total_bytes": total}),
            "sha256": digest or None,
            "stopped": outcome.stopped,
            "seconds": round(seconds, 6),
            "rate_mbit_s": round(rate, 3),
            "retransmissions": retransmissions,
            "delivered": len(those) - len(failed),
            "failed": len(failed),
            "left_out": len(left_out),
            "only_present": only_present,
            "members": [
                {
                    "host": member.host,
                    "delivered": member.state == "delivered",
                    "reason": member.reason,
                    "left_out": member in left_out,
                }
                for member in outcome.members
            ],
            "without_receiver": sorted(unclaimed),
            "slow": sorted(slow),
        }
        click.echo(json.dumps(report))
    else:
        _print_members(those, left_out if only_present else None)
        again = counted(retransmissions, "retransmission")
        if outcome.stopped:
            text = f"stopped after {count} bytes and {seconds:.2f} s: every member that took part has failed; {again}"
        else:
            text = f"{count} bytes{'' if total is None else f' for {total}'} in {seconds:.2f} s, {rate:.1f} Mb/s, {again}"
        click.echo(text)
    return Exit.INCOMPLETE if failed or (left_out and not those) else Exit.DONE


def report_timeout(
    name: str,
    passed: tuple[str, float],
    sender: Sender | None,
    members: list[MemberState],
    leftover: str,
    why: str,
    as_json: bool,
) -> int:
    """The time is over: what is known of each member, and what becomes of the file. Gives the exit status."""
    option, seconds = passed
    text = f"after {seconds:g} s ({option}): {_summary(members) or why}"
    if sender is None:
        leftover = "cancelled"
        text += "; nothing was sent"
    refusal = Refusal(text, code="timeout", exit_code=Exit.TIMEOUT)
    more = {option.removeprefix("--") + "_s": seconds}
    _report_unsettled(refusal, name, sender, members, leftover, as_json, **more)
    return Exit.TIMEOUT


def report_missing(name: str, missing: MembersMissingError, as_json: bool) -> int:
    """The time is over before all members were there. Gives the exit status."""
    text = f"after {missing.seconds:g} s ({missing.option}): {missing.reason}; nothing was sent"
    if as_json:
        members = missing.members
        group = missing.group
        report = {
            **({} if group is None else {"group": group["id"], "scheme": group["scheme"]}),
            "name": name,
            missing.option.removeprefix("--").replace("-", "_") + "_s": missing.seconds,
            **_known_of("cancelled", members),
        }
        click.echo(json.dumps(report))
    show(Refusal(text, code="timeout", exit_code=Exit.TIMEOUT), as_json)
    return Exit.TIMEOUT


def report_agent_gone(
    name: str, sender: Sender, members: list[MemberState], why: str, as_json: bool, *, was_ended: bool
) -> int:
    """The agent ended, and with it the stream: what is known of each member. Gives the exit status."""
    leftover = "lost" if was_ended else "cancelled"
    text = f"{why} in the middle of the message: {_summary(members)}"
    refusal = Refusal(text, code="agent-gone", exit_code=Exit.INCOMPLETE)
    _report_unsettled(refusal, name, sender, members, leftover, as_json)
    return Exit.INCOMPLETE


def _count(members: list[MemberState]) -> dict[str, int]:
    count = {state: sum(member.state == state for member in members) for state in _WORDS}
    count["unknown"] += count.pop("unconfirmed")
    return count


def _summary(members: list[MemberState]) -> str:
    if not members:
        return ""
    count = _count(members)
    parts = [f"{count['delivered']} of {counted(len(members), 'member')} have the file"]
    parts += [f"{count['failed']} failed"] if count["failed"] else []
    parts += [f"{count['pending']} do not have it yet"] if count["pending"] else []
    parts += [f"{count['unknown']} are unknown"] if count["unknown"] else []
    return ", ".join(parts)


def _report_unsettled(
    refusal: Refusal,
    name: str,
    sender: Sender | None,
    members: list[MemberState],
    leftover: str,
    as_json: bool,
    **more: Any,
) -> None:
    if as_json:
        report: dict[str, Any] = {
            "name": name,
            **more,
            **_known_of(leftover, members),
        }
        if sender is not None:
            report = {"group": sender.group.number, "scheme": sender.group.scheme, **report}
        click.echo(json.dumps(report))
    elif members:
        _print_members(members)
        click.echo(_LEFTOVERS[leftover])
    show(refusal, as_json)


def _known_of(leftover: str, members: list[MemberState]) -> dict[str, Any]:
    count = _count(members)
    states = [
        {
            "host": member.host,
            "state": "unknown" if member.state == "unconfirmed" else member.state,
            "reason": member.reason,
        }
        for member in members
    ]
    counts = {state: count[state] for state in ("delivered", "failed", "pending", "unknown")}
    return {**counts, "leftover": leftover, "members": states}


def unknown_members(sender: Sender, *, may_have_it: bool = True) -> list[MemberState]:
    """The members of which nothing is known. Without all of it sent nobody can have it."""
    group = sender.group
    others = [MemberState(host, "unknown") for host in group.members if host != sender.origin]
    if not may_have_it:
        others = [MemberState(one.host, "failed", "the agent of the sender ended") for one in others]
    return others + [MemberState(one.host, "failed", one.reason, True) for one in group.left_out]


def _print_members(members: list[MemberState], apart: list[MemberState] | None = None) -> None:
    """`apart`: members that do not count, named before the table; None: all count."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    delivered = sum(member.state == "delivered" for member in members)
    title = f"{delivered} of {len(members)} {'members' if apart is None else 'present members'} have it"
    if apart:
        named = [f"host {member.host} {member.reason}" for member in apart]
        console.print("; ".join([title, *named]), markup=False, highlight=False, soft_wrap=True)
        if not members:
            return
    table = Table(title=None if apart else title)
    table.add_column("host", justify="right")
    table.add_column("outcome")
    for member in members:
        reason = _REASONS.get(member.reason or "", member.reason)
        text = _WORDS[member.state] + (f": {reason}" if reason else "")
        table.add_row(str(member.host), text)
    console.print(table)
