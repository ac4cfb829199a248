"""`wormcast host`."""

from __future__ import annotations

from typing import Any

import click

from wormcast.cli.completion import complete_hosts
from wormcast.cli.refusal import Commands
from wormcast.cli.rest import Client, api_options, print_json, print_table, segment


@click.group(cls=Commands)
def host() -> None:
    """List hosts, or declare the port of one."""


@host.command("list")
@api_options
def list_hosts(api: str, as_json: bool) -> None:
    """List all known hosts."""
    value = Client(api).get("/hosts")
    if as_json:
        print_json(value)
        return
    print_table(
        f"{len(value['hosts'])} hosts",
        ["host", "name", "state", "switch:port", "transit", "plan", "MAC"],
        [
            [
                h["id"],
                h["name"],
                f"{h['state']}: {h['reason']}" if h["reason"] else h["state"],
                None if h["switch"] is None else f"{h['switch']}:{h['port']}",
                _transit(h),
                h["plan_epoch"],
                h["mac"],
            ]
            for h in value["hosts"]
        ],
    )


def _transit(shown: dict[str, Any]) -> str:
    """Whether worms of others are routed through a host, or why not."""
    if shown["re_injects"]:
        return "yes"
    if not shown["transit"]:
        return "opted out"
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
