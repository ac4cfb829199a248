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
    default=routing.ALGORITHM_DEFAULT,
    show_default=True,
    help="osud or tree-only.",
    shell_complete=complete_algorithm,
)
@click.option(
    "--routes",
    "routes_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the balanced routes to this file.",
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
    """Compare the loads of channels before and after balancing.

    A load is the number of pairs of hosts that use a channel, if every host sends to
    every other. Balancing chooses the root and the paths; with --root only the paths.
    """
    value = source.topology()
    report = planned(lambda: routing.balance_report(value, algorithm, root))
    if routes_path is not None:
        routes = planned(lambda: routing.balanced_routes(value, algorithm, root))
        write_text(routing.to_text(routes), routes_path)
    write_text(routing.to_text(report), output)
