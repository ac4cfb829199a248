"""What `wormcast send` says at its end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from wormcast.cli.refusal import Refusal, show
from wormcast.client import MemberState, Sender
from wormcast.exits import Exit

_WORDS = {
    "delivered": "[green]has it, checked[/]",
    "failed": "[red]failed[/]",
    "pending": "not yet: not all of the file was sent",
    "unconfirmed": "unknown: no confirmation has come",
    "unknown": "unknown: the agent does not answer",
}
# hostagent/API.md §6: a receiver that does not come in time has given up too.
_REASONS = {"application gave up": "no receiver took it in time, or it ended"}
_LEFTOVERS = {
    "cancelled": "not all of the file was sent, so it is cancelled; members drop what they have of it",
    "continues": "the file is still on its way; members without it may get it later",
    "unknown": "if the agent took all of the file, it is still on its way; if not, it is cancelled",
}


@dataclass(frozen=True)
class Outcome:
    """What became of a message at each member."""

    message: int | None
    members: list[MemberState]


def report_outcome(
    outcome: Outcome,
    sender: Sender,
    name: str,
    count: int,
    digest: str,
    seconds: float,
    unclaimed: set[int],
    as_json: bool,
) -> int:
    """Every member is settled; gives the exit status."""
    retransmissions = sender.progress.retransmissions
    failed = [member for member in outcome.members if member.state != "delivered"]
    rate = count * 8 / seconds / 1e6
    if as_json:
        report = {
            "group": sender.group.number,
            "scheme": sender.group.scheme,
            "message": outcome.message,
            "name": name,
            "bytes": count,
            "sha256": digest,
            "seconds": round(seconds, 6),
            "rate_mbit_s": round(rate, 3),
            "retransmissions": retransmissions,
            "delivered": len(outcome.members) - len(failed),
            "failed": len(failed),
            "members": [
                {"host": member.host, "delivered": member.state == "delivered", "reason": member.reason}
                for member in outcome.members
            ],
            "without_receiver": sorted(unclaimed),
        }
        click.echo(json.dumps(report))
    else:
        _print_members(outcome.members)
        Console().print(
            f"{count} bytes in {seconds:.2f} s, {rate:.1f} Mb/s, {retransmissions} retransmissions"
        )
    return Exit.INCOMPLETE if failed else Exit.DONE


def report_timeout(
    name: str,
    timeout_s: float,
    sender: Sender | None,
    known: list[MemberState],
    leftover: str,
    why: str,
    as_json: bool,
) -> None:
    """The time is over: what is known of each member, and what becomes of the file."""
    members = known or ([] if sender is None else _unknown(sender))
    count = {state: sum(member.state == state for member in members) for state in _WORDS}
    unsure = count["unconfirmed"] + count["unknown"]
    parts = [f"{count['delivered']} of {len(members)} members have the file"] if members else [why]
    parts += [f"{count['failed']} failed"] if count["failed"] else []
    parts += [f"{count['pending']} do not have it yet"] if count["pending"] else []
    parts += [f"{unsure} are unknown"] if unsure else []
    text = f"after {timeout_s:g} s (--timeout): {', '.join(parts)}"
    if sender is None:
        leftover = "cancelled"
        text += "; nothing was sent"
    refusal = Refusal(text, code="timeout", exit_code=Exit.TIMEOUT)
    if as_json:
        report: dict[str, Any] = {
            "name": name,
            "timeout_s": timeout_s,
            "delivered": count["delivered"],
            "failed": count["failed"],
            "pending": count["pending"],
            "unknown": unsure,
            "leftover": leftover,
            "members": [
                {
                    "host": member.host,
                    "state": "unknown" if member.state == "unconfirmed" else member.state,
                    "reason": member.reason,
                }
                for member in members
            ],
        }
        if sender is not None:
            report = {"group": sender.group.number, "scheme": sender.group.scheme, **report}
        click.echo(json.dumps(report))
    elif members:
        _print_members(members)
        click.echo(_LEFTOVERS[leftover])
    show(refusal, as_json)


def _unknown(sender: Sender) -> list[MemberState]:
    return [MemberState(host, "unknown") for host in sender.group.members if host != sender.origin]


def _print_members(members: list[MemberState]) -> None:
    console = Console()
    delivered = sum(member.state == "delivered" for member in members)
    table = Table(title=f"{delivered} of {len(members)} members have it")
    table.add_column("host", justify="right")
    table.add_column("outcome")
    for member in members:
        reason = _REASONS.get(member.reason or "", member.reason)
        text = _WORDS[member.state] + (f": {reason}" if reason else "")
        table.add_row(str(member.host), text)
    console.print(table)
