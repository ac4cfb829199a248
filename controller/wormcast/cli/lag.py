"""`wormcast group lag`."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from wormcast.cli.completion import complete_groups, complete_hosts
from wormcast.cli.rest import Client, api_options, print_json, print_table, segment
from wormcast.counted import counted

Json = dict[str, Any]


@click.command()
@click.argument("key", metavar="GROUP", shell_complete=complete_groups)
@click.option(
    "--origin",
    metavar="HOST",
    shell_complete=complete_hosts,
    help="Member that sends. [default: the only one that has sent]",
)
@api_options
def lag(key: str, origin: str | None, api: str, as_json: bool) -> None:
    """Show how far members are with what one sends, those most behind first.

    Switches that gather ACKs are asked, and agents. GROUP and HOST are ids or names.
    """
    query = "" if origin is None else f"?origin={quote(origin, safe='')}"
    value = Client(api).get(f"/groups/{segment(key)}/lag{query}")
    if as_json:
        print_json(value)
        return
    click.echo(
        f"group {value['group']}, from host {value['origin']}: {counted(value['sent'], 'packet')} sent, {value['stable']} of them "
        "confirmed by all"
    )
    print_table(
        "",
        ["host", "behind", "acknowledged", "unconfirmed", "confirmed", "known by"],
        [
            [row["host"], row["behind"], row["acknowledged"], row["unstable"], row["stable"], _known_by(row)]
            for row in value["members"]
        ],
    )
    if value["no_answer"]:
        hosts = ", ".join(map(str, value["no_answer"]))
        click.echo(f"no answer from the agents of hosts {hosts}")
    for branch in value["branches"]:
        if "why" in branch:
            members = ", ".join(map(str, branch["members"]))
            click.echo(f"switch {branch['switch']}, port {branch['port']} (hosts {members}): {branch['why']}")


def _known_by(row: Json) -> str:
    by = row["by"]
    if by is None:
        return f"not known: {row['why']}"
    more = "" if by.get("members", 1) == 1 else f", with {counted(by['members'] - 1, 'other')}"
    text = {
        "switch": f"switch {by.get('switch')}, port {by.get('port')}{more}",
        "host": f"host {by.get('host')}" + more.replace("others", "below it").replace("other", "below it"),
        "itself": "itself",
    }[by["way"]]
    return text + ("; given up" if row.get("given_up") else "")
