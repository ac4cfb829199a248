"""`wormcast balance`: how much a better root and other paths lower the largest load."""

from __future__ import annotations

from pathlib import Path

import click

from wormcast import routing
from wormcast.cli.files import Json, planned, write_answer, write_text
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
    as_json: bool,
) -> None:
    """Compare the loads of channels before and after balancing.

    A load is the number of pairs of hosts that use a channel, if every host sends to
    every other. Balancing chooses the root and the paths; with --root only the paths.
    Prints a table, with --json or --output JSON, which has the loads of all links.
    """
    value = source.topology()
    report = planned(lambda: routing.balance_report(value, algorithm, root))
    if routes_path is not None:
        routes = planned(lambda: routing.balanced_routes(value, algorithm, root))
        write_text(routing.to_text(routes), routes_path)
    write_answer(report, describe, output, as_json)


FIGURES = {
    "root": "root of each part",
    "largest": "largest load of a channel",
    "mean": "mean load",
    "p99": "load that 99 of 100 channels do not exceed",
    "gini": "how unequal loads are (Gini coefficient, 0 to 1)",
    "idle": "channels without load",
}


def describe(report: Json) -> str:
    """The balance file for people."""

    def figure(of: Json, name: str) -> str:
        if name == "root":
            return ", ".join(map(str, of["roots"]))
        return f"{of[name]:.3f}".rstrip("0").rstrip(".") if isinstance(of[name], float) else str(of[name])

    rows = [("", "plain", "balanced")]
    rows += [
        (text, figure(report["plain"], name), figure(report["chosen"], name))
        for name, text in FIGURES.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
    tried = f"{report['candidates']} root{'' if report['candidates'] == 1 else 's'} tried"
    lines.append(
        f"{report['algorithm']}, {tried}: the largest load is {report['gain']:.1%} less. --json has all links."
    )
    return "\n".join(lines) + "\n"
