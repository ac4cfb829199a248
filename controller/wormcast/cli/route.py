"""`wormcast route` and `wormcast verify`, as the controller answers them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from wormcast.cli.client import Client, api_options, print_json, print_table
from wormcast.cli.completion import complete_hosts
from wormcast.cli.offline_form import online_or_offline

EXIT_DEADLOCK = 1


def _complete_algorithm(
    context: click.Context,
    parameter: click.Parameter,
    incomplete: str,
) -> list[str]:
    from wormcast.cli.offline.common import complete_algorithm

    return complete_algorithm(context, parameter, incomplete)


@click.command(cls=online_or_offline("route"))
@click.argument("src", required=False, shell_complete=complete_hosts)
@click.argument("dst", required=False, shell_complete=complete_hosts)
@click.option(
    "--algorithm",
    shell_complete=_complete_algorithm,
    help="osud, tree-only, omit, rmit, rrmit, pit or rrmit-min. [default: the one in force]",
)
@api_options
def route(src: str | None, dst: str | None, algorithm: str | None, api: str, as_json: bool) -> None:
    """Show source routes, from host SRC, to host DST, or all."""
    value = Client(api).get("/routes", src=src, dst=dst, algorithm=algorithm)
    if as_json:
        print_json(value)
        return
    print_table(
        f"{len(value['routes'])} routes, {value['algorithm']}, root {value['root']}",
        ["from", "to", "ports", "switches", "in transit"],
        [
            [
                r["src"],
                r["dst"],
                " ".join(map(str, r["ports"])),
                " ".join(map(str, r["switches"])),
                " ".join(map(str, r["in_transit"])) or None,
            ]
            for r in value["routes"]
        ],
    )


@click.command(cls=online_or_offline("verify"))
@click.option("--routes", type=click.Path(dir_okay=False, path_type=Path), help="Routes file to check.")
@api_options
@click.pass_context
def verify(ctx: click.Context, routes: Path | None, api: str, as_json: bool) -> None:
    """Check the routes in force, or those of a file, for deadlock. Exit code 1: they can deadlock."""
    client = Client(api)
    if routes is None:
        value = client.get("/verify")
    else:
        from wormcast.cli.offline.common import read_json

        value = client.send("POST", "/verify", {"routes": read_json(routes, "routes", "routes")})
    if as_json:
        print_json(value)
    elif value["deadlock_free"]:
        click.echo(f"free of deadlock: {len(value['order'])} channels have an order")
    else:
        click.echo("can deadlock:")
        for channel in value["cycle"]:
            click.echo(f"  {json.dumps(channel)}")
    if not value["deadlock_free"]:
        ctx.exit(EXIT_DEADLOCK)
