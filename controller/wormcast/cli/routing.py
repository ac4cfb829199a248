"""`wormcast routing`: which unicast routes the fabric uses."""

from __future__ import annotations

from typing import Any

import click

from wormcast import routing as planning
from wormcast.cli.change import METHODS
from wormcast.cli.completion import complete_switches
from wormcast.cli.files import SWITCH, Json
from wormcast.cli.refusal import Commands
from wormcast.cli.rest import Client, api_options, print_json, print_table
from wormcast.routing.fallback import longer_routes

CHANGE_TIMEOUT_S = 75.0
"""A dry run plans and checks all routes twice; the controller gives it 60 s."""


@click.group(cls=Commands)
def routing() -> None:
    """Show or set the unicast routes of the running fabric."""


@routing.command()
@api_options
def show(api: str, as_json: bool) -> None:
    """Show which routes are wanted, and what came of it."""
    value = Client(api).get("/routing")
    if as_json:
        print_json(value)
    else:
        click.echo("\n".join(_describe(value)))


@routing.command("set")
@click.argument("algorithm", type=click.Choice(planning.algorithms()))
@click.option(
    "--root",
    type=SWITCH,
    help="Root switch. [default: each connected part chooses]",
    shell_complete=complete_switches,
)
@click.option(
    "--balanced",
    is_flag=True,
    help="Choose paths, and without --root the root, so that the largest load falls. For osud and tree-only.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Change nothing. Show loads before and after, the steps of a safe change, and whether the new routes "
    "are free of deadlock.",
)
@api_options
def set_routing(
    algorithm: str, root: int | None, balanced: bool, dry_run: bool, api: str, as_json: bool
) -> None:
    """Use routes by ALGORITHM from now on. The setting is kept across restarts of the controller."""
    body = {"algorithm": algorithm, "root": root, "balanced": balanced}
    client = Client(api, timeout_s=CHANGE_TIMEOUT_S)
    value = client.send("PUT", "/routing?dry_run=true" if dry_run else "/routing", body)
    if as_json:
        print_json(value)
    elif dry_run:
        _print_comparison(value)
    else:
        click.echo("\n".join(_describe(value)))


def _name(setting: Json) -> str:
    root = "" if setting["root"] is None else f", root {setting['root']}"
    return f"{setting['algorithm']}{root}{', balanced' if setting['balanced'] else ''}"


def _describe(value: Json) -> list[str]:
    lines = [f"routes: {_name(value)}"]
    roots = ", ".join(map(str, value["roots"])) or "none, as no switch is up"
    lines.append(f"roots in force: {roots}")
    if value["root_away"]:
        lines.append(f"switch {value['root']} is not up; each connected part has chosen its root")
    lines += longer_routes(value["algorithm"], value["runs_as"], value["lengthened_pairs"])
    if (change := value["change"]) is not None:
        lines.append(
            f"change {change['change']} is under way: step {change['step']} of {change['steps']}, {change['what']}"
        )
        if change["waiting_count"]:
            lines.append(
                f"  {change['waiting_count']} agents have not confirmed it: {_hosts(change['waiting_for'])}"
            )
    if value["left_behind_count"]:
        lines.append(
            f"{value['left_behind_count']} agents are left behind and may still use older routes: "
            f"{_hosts(value['left_behind'])}"
        )
    return lines


def _hosts(hosts: list[int]) -> str:
    return "host " + ", ".join(map(str, hosts))


def _print_comparison(value: Json) -> None:
    def column(figures: Json) -> list[Any]:
        return [
            figures["root"],
            f"{figures['link_load']['max']:.1f}",
            f"{figures['links_mean']:.3f}",
            f"{figures['alternatives_mean']:.2f}",
            f"{figures['in_transit_mean']:.3f}",
            f"{figures['minimal']:.1%}",
        ]

    names = [
        "root",
        "largest load of a link, pairs",
        "links of a route, mean",
        "routes of a pair, mean",
        "in-transit hosts of a route, mean",
        "minimal routes",
    ]
    print_table(
        f"nothing is changed; the largest load would be {abs(value['gain']):.1%} "
        f"{'lower' if value['gain'] >= 0 else 'higher'}",
        ["", f"now: {_name(value['now'])}", f"new: {_name(value['new'])}"],
        [list(row) for row in zip(names, column(value["before"]), column(value["after"]), strict=True)],
    )
    lines = longer_routes(value["new"]["algorithm"], value["runs_as"], value["lengthened_pairs"])
    for number, step in enumerate(value["steps"], 1):
        safe = "" if step["deadlock_free_with_previous"] else "; CAN DEADLOCK with those before"
        lines.append(
            f"step {number}: {step['method']} ({METHODS[step['method']]}), routes of {step['routes_changed']} pairs{safe}"
        )
        if step["waiting"]:
            lines.append(f"  {step['waiting']} pairs stop until the next step")
    free = value["certificate"]["deadlock_free"]
    lines.append("the new routes are free of deadlock" if free else "the new routes CAN DEADLOCK")
    click.echo("\n".join(lines))
