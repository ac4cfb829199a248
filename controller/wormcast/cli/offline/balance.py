"""`wormcast balance`: how much a better root and other paths lower the largest load."""

from __future__ import annotations

from pathlib import Path

import click

from wormcast import plan
from wormcast.cli.offline.common import complete_algorithm, file_options, planned, read_topology, write_text


@click.command("balance")
@click.option(
    "--algorithm",
    default="osud",
    show_default=True,
    help="osud or tree-only.",
    shell_complete=complete_algorithm,
)
@click.option(
    "--routes",
    "routes_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the balanced routes to this file too.",
)
@file_options
def balance(
    algorithm: str,
    routes_path: Path | None,
    topology: str,
    root: int | None,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Report channel loads, with the plain root and paths and with those that balance them.

    Loads are in pairs of hosts, if every host sends to every other. With --root only
    paths are chosen anew.
    """
    value = read_topology(topology)
    report = planned(lambda: plan.balance_report(value, algorithm, root))
    if routes_path is not None:
        routes = planned(lambda: plan.balanced_routes(value, algorithm, root))
        write_text(plan.to_text(routes), routes_path)
    write_text(plan.to_text(report), output)
