"""`wormcast switching`: packet mode or wormhole mode of the switches."""

from __future__ import annotations

from typing import Any

import click

from wormcast.cli.refusal import Commands
from wormcast.cli.rest import Client, api_options, print_json
from wormcast.network.switching import SWITCHINGS, Switching


@click.group(cls=Commands)
def switching() -> None:
    """Show or set how the switches of the running fabric pass worms on."""


@switching.command()
@api_options
def show(api: str, as_json: bool) -> None:
    """Show whether switches are in packet or wormhole mode, and what worms may run into."""
    _show(Client(api).get("/switching"), as_json)


@switching.command("set")
@click.argument("mode", type=click.Choice(SWITCHINGS))
@api_options
def set_switching(mode: str, api: str, as_json: bool) -> None:
    """Pass worms on in this MODE from now on. It is kept across restarts of the controller.

    packet: each frame goes as soon as it can. wormhole: a worm has its channels for itself, and
    one that finds a channel taken waits; with routes of algorithm tree-only this is the first
    scheme of WORM §3. wormhole:flush: unicast gives way to a multicast that waits elsewhere, the
    third scheme. wormhole:interrupt: a multicast that waits gives up all that it has, and goes on
    later, the second scheme; multicasts then go by the root, as those of groups with --guard B do.
    """
    _show(Client(api).send("PUT", "/switching", Switching.parse(mode).to_json()), as_json)


def _show(value: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(value)
        return
    click.echo(f"switching: {Switching.from_json(value).text}")
    for text in value["warnings"]:
        click.echo(f"  {text}")
