"""`wormcast guard`: what the switches admit."""

from __future__ import annotations

from typing import Any

import click

from wormcast.cli.completion import complete_groups
from wormcast.cli.refusal import Commands, Refusal
from wormcast.cli.rest import Client, api_options, print_json, segment
from wormcast.guard.state import LEADS_TO


@click.group(cls=Commands)
def guard() -> None:
    """Show or set what the switches admit from hosts."""


@guard.command()
@api_options
def show(api: str, as_json: bool) -> None:
    """Show whether the guard is on, which groups are closed, and which hosts have a rate."""
    _show(Client(api).get("/guard"), as_json)


@guard.command("set")
@click.argument("state", type=click.Choice(["on", "off"]), required=False)
@click.option(
    "--close",
    "closed",
    metavar="GROUP",
    multiple=True,
    shell_complete=complete_groups,
    help="Let members alone send to the IP multicast address of this group, by id or name. May be given several "
    "times.",
)
@click.option(
    "--open",
    "opened",
    metavar="GROUP",
    multiple=True,
    shell_complete=complete_groups,
    help="Let everybody send to it again. May be given several times.",
)
@api_options
def set_guard(
    state: str | None, closed: tuple[str, ...], opened: tuple[str, ...], api: str, as_json: bool
) -> None:
    """Turn the guard on or off, close and open groups. It is kept across restarts of the controller.

    With the guard on, switches admit from each port only what the plan has its host send. What else comes is
    dropped and counted by reason.
    """
    client = Client(api)
    body: dict[str, Any] = {}
    if state is not None:
        body["on"] = state == "on"
    elif not closed and not opened:
        raise Refusal("nothing is given to set; give on, off, --close GROUP or --open GROUP", code="usage")
    if closed or opened:
        close, leave = (
            {client.get(f"/groups/{segment(key)}")["id"]: key for key in keys} for keys in (closed, opened)
        )
        if both := sorted(close.keys() & leave.keys()):
            key = close[both[0]]
            raise Refusal(
                f"group {key} is both in --close and in --open; give one of them", code="usage", value=key
            )
        body["closed"] = sorted({*client.get("/guard")["closed"], *close}.difference(leave))
    _show(client.send("PUT", "/guard", body), as_json)


class PortName(click.ParamType):  # type: ignore[type-arg]
    """SWITCH:PORT."""

    name = "port"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Reads what was typed."""
        switch, _, port = str(value).partition(":")
        if not (switch.isdecimal() and port.isdecimal()):
            self.fail(f"{value!r} is no port; give SWITCH:PORT, such as 3:1", param, ctx)
        return int(switch), int(port)


@guard.command("port")
@click.argument("port", type=PortName(), metavar="SWITCH:PORT")
@click.argument("leads_to", type=click.Choice([*LEADS_TO, "any"]))
@api_options
def set_port(port: tuple[int, int], leads_to: str, api: str, as_json: bool) -> None:
    """Say what a port leads to. It holds with the guard off too, and is kept across restarts of the controller.

    A port with a host does not become a link, since two hosts can hand on each other's probes. 'link': it does.
    'host': it never becomes one, whoever is known there. 'any': as without this command.
    """
    body = {"leads_to": None if leads_to == "any" else leads_to}
    value = Client(api).send("PUT", f"/switches/{port[0]}/ports/{port[1]}", body)
    if as_json:
        print_json(value)
    else:
        click.echo(f"port {port[1]} of switch {port[0]} leads to {_leads_to(value['leads_to'])}")


def _leads_to(configured: str | None) -> str:
    """In words."""
    return "what is found there" if configured is None else f"a {configured}"


def _show(value: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(value)
        return
    click.echo(f"guard: {'on' if value['on'] else 'off'}")
    click.echo(f"closed groups: {', '.join(map(str, value['closed'])) or 'those of scheme table alone'}")
    for rate in value["rates"]:
        click.echo(f"host {rate['host']}: {rate['bps'] / 1_000_000:g} Mb/s")
    for port in value.get("ports", []):
        click.echo(f"port {port['port']} of switch {port['switch']}: leads to {_leads_to(port['leads_to'])}")
    if value["rates"] and not value["on"]:
        click.echo("the guard is off: agents keep to their rates, and no switch drops what is above")
