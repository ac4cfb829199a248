"""`wormcast balance`: how much a better root and other paths lower the largest load."""

from __future__ import annotations

from pathlib import Path

import click

from wormcast import routing
from wormcast.cli.files import planned, write_text
from wormcast.cli.source import PlanningCommand, Source, complete_algorithm, source_options


@click.command("balance", cls=PlanningCommand)
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
@source_options
def balance(
    algorithm: str,
    routes_path: Path | None,
    source: Source,
    root: int | None,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Report channel loads, with the plain root and paths and with those that balance them.

    Loads are in pairs of hosts, if every host sends to every other. With --root only
    paths are chosen anew.
    """
    value = source.topology()
    report = planned(lambda: routing.balance_report(value, algorithm, root))
    if routes_path is not None:
        routes = planned(lambda: routing.balanced_routes(value, algorithm, root))
        write_text(routing.to_text(routes), routes_path)
    write_text(routing.to_text(report), output)
