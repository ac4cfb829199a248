"""`wormcast topo`: the network as the controller sees it; all but `show` work without one."""

from __future__ import annotations

import importlib
from typing import Any

import click

from wormcast.cli.refusal import Commands
from wormcast.cli.rest import Client, api_options, print_json, print_table
from wormcast.counted import counted

_ON_FILES = {
    "make": "topo_files",
    "convert": "topo_files",
    "fabric": "topo_files",
    "draw": "topo_files",
    "lab": "topo_lab",
}


class _TopoGroup(Commands):
    """The modules of these commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_ON_FILES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ON_FILES:
            return super().get_command(ctx, cmd_name)
        command = getattr(importlib.import_module(f"wormcast.cli.{_ON_FILES[cmd_name]}"), f"topo_{cmd_name}")
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_TopoGroup)
def topo() -> None:
    """Show the network, or make, convert and draw topologies."""


@topo.command()
@api_options
def show(api: str, as_json: bool) -> None:
    """Show switches, links and hosts that are up.

    With --json this is a topology file, as --topology takes it.
    """
    client = Client(api)
    value = client.get("/topology")
    if as_json:
        print_json(value)
        return
    switches = client.get("/switches")["switches"]
    print_table(
        f"{len(value['switches'])} of {counted(len(switches), 'switch')} up",
        ["switch", "ports", "address", "state"],
        [[s["id"], s["ports"], s["address"], _switch_state(s)] for s in switches],
    )
    print_table(
        f"\n{counted(len(value['links']), 'link')}",
        ["switch:port", "switch:port"],
        [[f"{x['a']}:{x['a_port']}", f"{x['b']}:{x['b_port']}"] for x in value["links"]],
    )
    print_table(
        f"\n{counted(len(value['hosts']), 'host')}",
        ["host", "name", "switch:port", "state"],
        [[h["id"], h.get("name"), f"{h['switch']}:{h['port']}", h.get("state")] for h in value["hosts"]],
    )


def _switch_state(switch: dict[str, Any]) -> str:
    if switch["connected"]:
        return "up"
    return f"{'up' if switch['up'] else 'down'}: {switch['last_error']}"
