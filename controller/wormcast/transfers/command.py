"""`wormcast transfers`."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from wormcast.cli.completion import complete_groups, complete_hosts
from wormcast.cli.refusal import Refusal
from wormcast.cli.rest import Client, api_options, print_json, print_table, segment
from wormcast.counted import counted

Json = dict[str, Any]


@click.command()
@click.argument("number", type=click.IntRange(min=1), required=False)
@click.option("--follow", is_flag=True, help="Print transfers as they end, one a line.")
@click.option("--group", metavar="GROUP", shell_complete=complete_groups, help="Only to this group.")
@click.option("--origin", metavar="HOST", shell_complete=complete_hosts, help="Only from this host.")
@api_options
def transfers(
    number: int | None, follow: bool, group: str | None, origin: str | None, api: str, as_json: bool
) -> None:
    """List files that hosts send or have sent, and who has them.

    With NUMBER, show what became of one at each member. GROUP and HOST are ids or names. With --follow and --json each
    line is an object.
    """
    if number is not None and (follow or group is not None or origin is not None):
        raise Refusal(
            "NUMBER names one transfer; --follow, --group and --origin choose among all",
            code="conflict",
            value=number,
        )
    client = Client(api)
    if number is not None:
        value = client.get(f"/transfers/{number}")
        print_json(value) if as_json else _show(value)
        return
    value = client.get("/transfers", group=group, origin=origin)
    if follow:
        _follow(client, group, origin, as_json)
    elif as_json:
        print_json(value)
    else:
        _list(value)


def _list(value: Json) -> None:
    print_table(
        counted(len(value["transfers"]), "transfer"),
        ["number", "began (UTC)", "file", "bytes", "from", "group", "seconds", "members"],
        [
            [
                one["number"],
                _began(one),
                one["name"],
                _bytes(one),
                one["origin"],
                one["group_name"] or one["group"],
                f"{one['seconds']:.2f}",
                _outcome(one),
            ]
            for one in value["transfers"]
        ],
    )
    if value["not_recorded"]:
        click.echo(f"{counted(value['not_recorded'], 'other file')} ended and not recorded")


def _show(one: Json) -> None:
    click.echo(f"transfer {one['number']}: {_sentence(one)}")
    click.echo(f"began {_began(one)} UTC, scheme {one['scheme']}, message {one['message']}")
    if one["retransmissions"] is not None:
        click.echo(f"packets sent again meanwhile: {one['retransmissions']}")
    if one["reason"] is not None:
        click.echo(f"{one['state'].replace('_', ' ')}: {one['reason']}")
    print_table(
        "",
        ["host", "outcome", "reason"],
        [[member["host"], member["state"].replace("_", " "), member["reason"]] for member in one["members"]],
    )


def _follow(client: Client, group: str | None, origin: str | None, as_json: bool) -> None:
    sender = None if origin is None else client.get(f"/hosts/{segment(origin)}")["id"]
    for event in client.follow("/events"):
        if event["kind"] != "transfer" or sender not in (None, event["origin"]):
            continue
        if group not in (None, str(event["group"]), event["group_name"]):
            continue
        if as_json:
            click.echo(json.dumps(event))
        else:
            at = time.strftime("%H:%M:%S", time.localtime(event["time_s"]))
            click.echo(f"{at} transfer {event['transfer']}: {_sentence(event)}")


def _sentence(one: Json) -> str:
    group = f"{one['group']} ({one['group_name']})" if one["group_name"] else one["group"]
    size = "" if one["bytes"] is None else f" ({_bytes(one)} bytes)"
    after = "for" if one["state"] == "under_way" else "after"
    return (
        f"{one['name']}{size} from host {one['origin']} to group {group}: {_outcome(one)}, "
        f"{after} {one['seconds']:.2f} s"
    )


def _outcome(one: Json) -> str:
    """Who has it, in words."""
    members = one["delivered"] + one["failed"] + one["left_out"] + one["unknown"]
    match one["state"]:
        case "under_way":
            away = "" if one.get("agent_connected", True) else ", no word from the agent"
            return f"under way{away}"
        case "stable" | "failed":
            missing = [
                f"{one[what]} {word}"
                for what, word in (("failed", "failed"), ("left_out", "left out"))
                if one[what]
            ]
            return ", ".join([f"{one['delivered']} of {members} have it", *missing])
        case "cancelled":
            return "cancelled, nobody has it"
        case "stream_ended":
            return "its stream ended, who has it is not known"
        case "agent_gone":
            return "the agent is gone, who has it is not known"
        case _:
            return "not reported how it ended"


def _began(one: Json) -> str:
    return str(one["began"]).replace("T", " ").partition(".")[0]


def _bytes(one: Json) -> str | None:
    return None if one["bytes"] is None else f"{one['bytes']:,}"
