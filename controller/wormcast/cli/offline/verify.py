"""`wormcast verify` on a topology file."""

from __future__ import annotations

from pathlib import Path

import click

from wormcast import plan
from wormcast.cli.offline.common import (
    Json,
    RefusedInput,
    file_options,
    planned,
    read_json,
    read_topology,
    write_text,
)

EXIT_DEADLOCK = 1


@click.command("verify")
@click.option("--routes", "routes_path", type=Path, help="Routes file to check.")
@click.option("--algorithm", help="Check all routes of osud or tree-only. [default: osud]")
@click.option("--group", "groups", type=Path, multiple=True, help="Group file of scheme switch; repeatable.")
@click.option(
    "--branching",
    default="independent",
    show_default=True,
    help="Branches of a worm while one is blocked: independent (packet mode, scheme B) or coupled (scheme A).",
)
@file_options
@click.pass_context
def verify(
    context: click.Context,
    routes_path: Path | None,
    algorithm: str | None,
    groups: tuple[Path, ...],
    branching: str,
    topology: str,
    root: int | None,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Check routes on a topology file for deadlock. Exit code 1: they can deadlock."""
    value = read_topology(topology)
    routes = None if routes_path is None else read_json(routes_path, "routes")
    trees: list[tuple[int, bytes]] = []
    for path in groups:
        trees += _trees(read_json(path, "group"), path)
    if routes is None and algorithm is None and not trees:
        algorithm = "osud"
    verdict = planned(
        lambda: plan.verify(value, routes, algorithm=algorithm, trees=trees, branching=branching, root=root)
    )
    write_text(plan.to_text(verdict), output)
    if not verdict["deadlock_free"]:
        context.exit(EXIT_DEADLOCK)


def _trees(group: Json, path: Path) -> list[tuple[int, bytes]]:
    try:
        trees = plan.trees_of(group)
    except (KeyError, TypeError, ValueError) as error:
        raise RefusedInput(f"group {path} has no source and routes that can be read: {error!r}") from error
    if not trees:
        raise RefusedInput(f"group {path} has no tree routes; only groups of scheme switch have them")
    return trees
