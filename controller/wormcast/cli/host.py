"""`wormcast host`."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from wormcast.cli.completion import complete_hosts
from wormcast.cli.refusal import Commands
from wormcast.cli.rest import Client, api_options, print_json, print_table, segment
from wormcast.counted import counted
from wormcast.guard.state import RATE_MAX_BPS, RATE_MIN_BPS

WIDTH = 80
ANY_RATE = "any"
BPS = 1_000_000
"""Of one Mb/s."""


class Rate(click.ParamType):  # type: ignore[type-arg]
    """Mb/s; infinity for any."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads what was typed."""
        if value == ANY_RATE:
            return math.inf
        try:
            rate = float(value)
        except ValueError:
            rate = math.nan
        if not RATE_MIN_BPS <= rate * BPS <= RATE_MAX_BPS:
            bounds = f"from {RATE_MIN_BPS / BPS:g} to {RATE_MAX_BPS / BPS:.0f}"
            self.fail(
                f"{value!r} is no rate in Mb/s {bounds}, such as 100 or 2.5, and not {ANY_RATE!r}", param, ctx
            )
        return rate

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The one word."""
        return [CompletionItem(ANY_RATE)] if ANY_RATE.startswith(incomplete) else []


@click.group(cls=Commands)
def host() -> None:
    """List hosts, declare the port of one, or limit its rate."""


@host.command("list")
@api_options
def list_hosts(api: str, as_json: bool) -> None:
    """List all known hosts."""
    value = Client(api).get("/hosts")
    if as_json:
        print_json(value)
    else:
        print_hosts(value["hosts"])


def print_hosts(hosts: Sequence[dict[str, Any]]) -> None:
    """A line each, within 80 columns but for long names; then why hosts are not up, and who holds them to their rates."""
    print_table(
        counted(len(hosts), "host"),
        ["host", "name", "state", "switch:port", "transit", "MAC"],
        [
            [
                h["id"],
                h["name"],
                h["state"],
                None if h["switch"] is None else f"{h['switch']}:{h['port']}",
                _transit(h),
                h["mac"],
            ]
            for h in hosts
        ],
        folded=["name"],
    )
    for one in hosts:
        notes = [f"host {one['id']} is {one['state']}: {one['reason']}"] if one["reason"] else []
        notes += [_limit(one)] if one["rate_bps"] is not None else []
        for text in notes:
            click.echo("\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="  ")))


def _transit(shown: dict[str, Any]) -> str:
    """Whether worms of others are routed through a host, or why not."""
    if shown["re_injects"]:
        return "yes"
    if not shown["transit"]:
        return "opted out"
    if shown["rate_bps"] is not None:
        return "limited"
    return "busy" if shown["transit_busy"] else "no"


@host.command()
@click.argument("name")
@click.option("--switch", type=int, required=True, help="Switch that the host is connected to.")
@click.option("--port", type=int, required=True, help="Port of that switch.")
@click.option("--id", "host_id", type=int, help="Host id. [default: the lowest free one]")
@api_options
def declare(name: str, switch: int, port: int, host_id: int | None, api: str, as_json: bool) -> None:
    """Declare the switch port that the host NAME is connected to. For hosts without an agent."""
    body = {"name": name, "switch": switch, "port": port, "id": host_id}
    value = Client(api).send("POST", "/hosts", body)
    if as_json:
        print_json(value)
    else:
        click.echo(
            f"host {value['id']} is {value['name']} on port {value['port']} of switch {value['switch']}"
        )


@host.command()
@click.argument("name_or_id", shell_complete=complete_hosts)
@api_options
def forget(name_or_id: str, api: str, as_json: bool) -> None:
    """Forget a host whose agent is not connected."""
    Client(api).send("DELETE", f"/hosts/{segment(name_or_id)}")
    if as_json:
        print_json({"forgotten": name_or_id})
    else:
        click.echo(f"host {name_or_id} is forgotten")


@host.command()
@click.argument("name_or_id", shell_complete=complete_hosts)
@click.argument("rate", type=Rate())
@api_options
def limit(name_or_id: str, rate: float, api: str, as_json: bool) -> None:
    """Let a host send at most RATE Mb/s, or 'any'.

    Its agent paces what it sends, so nothing of it is lost. With the guard on (wormcast guard set on) its switch also drops
    what is above, which an agent never sends. A host without an agent is held to it by its switch alone. Worms of others
    are not routed through a host with a rate.
    """
    bps = None if rate == math.inf else round(rate * BPS)
    value = Client(api).send("PUT", f"/hosts/{segment(name_or_id)}/rate", {"bps": bps})
    if as_json:
        print_json(value)
    elif value["rate_bps"] is None:
        click.echo(f"host {value['id']} may send at any rate")
    else:
        click.echo(_limit(value))


def _limit(shown: dict[str, Any]) -> str:
    """A host's rate, and who holds it to it."""
    by = shown["rate_kept_by"]
    kept = "its agent paces what it sends" if "agent" in by else "it has no agent that keeps to a rate"
    if "switch" in by:
        kept += ", and its switch drops what is above"
    else:
        off = "no switch drops what is above while the guard is off (wormcast guard set on)"
        kept = f"{kept}; {off}" if by else f"nothing holds it to that. {kept.capitalize()}, and {off}"
    return f"host {shown['id']} may send {shown['rate_bps'] / BPS:g} Mb/s: {kept}"
