"""`wormcast topo`: the network as the controller sees it; all but `show` work without one."""

from __future__ import annotations

from typing import Any

import click

from wormcast.cli.client import Client, api_options, print_json, print_table
from wormcast.cli.offline_form import load_offline
from wormcast.cli.refusal import Commands

_OFFLINE = {
    "make": "topo_make",
    "convert": "topo_convert",
    "fabric": "topo_fabric",
    "draw": "topo_draw",
}


class _TopoGroup(Commands):
    """These commands come from `wormcast.cli.offline` when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_OFFLINE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _OFFLINE:
            return super().get_command(ctx, cmd_name)
        return load_offline(_OFFLINE[cmd_name])


@click.group(cls=_TopoGroup)
def topo() -> None:
    """Show the network, or make, convert and draw topologies."""


@topo.command()
@api_options
def show(api: str, as_json: bool) -> None:
    """Show switches, links and hosts that are up.

    With --json this is the topology file the offline commands take.
    """
    client = Client(api)
    value = client.get("/topology")
    if as_json:
        print_json(value)
        return
    switches = client.get("/switches")["switches"]
    print_table(
        f"{len(value['switches'])} of {len(switches)} switches up",
        ["switch", "ports", "address", "state"],
        [[s["id"], s["ports"], s["address"], _switch_state(s)] for s in switches],
    )
    print_table(
        f"\n{len(value['links'])} links",
        ["switch:port", "switch:port"],
        [[f"{x['a']}:{x['a_port']}", f"{x['b']}:{x['b_port']}"] for x in value["links"]],
    )
    print_table(
        f"\n{len(value['hosts'])} hosts",
        ["host", "name", "switch:port", "state"],
        [[h["id"], h.get("name"), f"{h['switch']}:{h['port']}", h.get("state")] for h in value["hosts"]],
    )


def _switch_state(switch: dict[str, Any]) -> str:
    if switch["connected"]:
        return "up"
    return f"{'up' if switch['up'] else 'down'}: {switch['last_error']}"
