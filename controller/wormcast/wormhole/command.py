"""`wormcast switching`: packet mode or wormhole mode of the switches."""

from __future__ import annotations

from typing import Any

import click

from wormcast.cli.refusal import Commands
from wormcast.cli.rest import Client, api_options, print_json
from wormcast.wormhole.switching import PACKET, SWITCHINGS, Switching


@click.group(cls=Commands)
def switching() -> None:
    """Show or set how the switches of the running fabric pass worms on."""


@switching.command()
@api_options
def show(api: str, as_json: bool) -> None:
    """Show whether switches are in packet or wormhole mode, whether agents send trains, and what worms may run into."""
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
    later in fragments, the second scheme; multicasts of all groups then go by the root, as those
    of groups with --guard B always do.

    On Tofino 2 there are packet and wormhole alone, and of wormhole the waiting of UNICAST worms: all
    others pass as in packet mode. All ports of a switch are in one pipe there. Tofino has no
    wormhole mode.

    Agents send trains, worms of several frames, as soon as all switches are in wormhole mode.
    Switches leave it when all agents have confirmed that they send none, or after 5 s.
    """
    _show(Client(api).send("PUT", "/switching", Switching.parse(mode).to_json()), as_json)


def _sent(wanted: Switching, value: dict[str, Any]) -> str:
    """What agents put on the wire, and what that waits for."""
    one = "worms of one frame"
    if value["settled"]:
        frames = value["train_frames"]
        trains = "trains" if frames == value["tree_train_frames"] else "UNICAST trains"
        return one if frames == 1 else f"{one} and {trains} of up to {frames} frames"
    if wanted.mode == PACKET:
        return "no new trains; switches leave wormhole mode when all agents have confirmed that"
    return f"{one}; trains when all switches are in wormhole mode"


def _show(value: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(value)
        return
    wanted = Switching.from_json(value)
    click.echo(f"switching: {wanted.text}")
    click.echo(f"agents send: {_sent(wanted, value)}")
    for text in value["warnings"]:
        click.echo(f"  {text}")
