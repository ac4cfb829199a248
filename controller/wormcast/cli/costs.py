"""Costs on the command line: the options of scheme `auto`, and `wormcast costs`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from wormcast import routing
from wormcast.cli.files import planned, read_json, write_text
from wormcast.cli.refusal import Commands
from wormcast.cli.rest import Client, api_options, print_json, print_table

F = TypeVar("F", bound=Callable[..., Any])


def read_costs(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:  # noqa: ARG001
    """The name of a set as it is, a file as what it holds."""
    if value is None or value in routing.cost_sets():
        return value
    try:
        is_file = Path(value).exists()
    except (OSError, ValueError):
        is_file = False
    if not is_file and value != "-":
        sets = ", ".join(routing.cost_sets())
        raise click.BadParameter(f"{value!r} is neither a file nor a set of costs; the sets are {sets}")
    return read_json(Path(value), "costs", "costs")


def _complete_costs(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[CompletionItem]:
    sets = [CompletionItem(name) for name in routing.cost_sets() if name.startswith(incomplete)]
    return [*sets, CompletionItem(incomplete, type="file")]


def costs_option(command: F) -> F:
    """Adds --costs."""
    return click.option(
        "--costs",
        metavar="FILE|SET",
        shell_complete=_complete_costs,
        callback=read_costs,
        help=f"Times of hosts, links and switches: a costs file, or {', '.join(routing.cost_sets())}. "
        "[default: agents]",
    )(command)


def auto_options(command: F) -> F:
    """Adds what only scheme `auto` understands."""
    command = click.option(
        "--tables",
        is_flag=True,
        default=None,
        help="auto: also consider scheme table, where switches have entries for the group.",
    )(command)
    command = click.option(
        "--total-order",
        is_flag=True,
        default=None,
        help="auto: all members get the messages of all sources in the same order.",
    )(command)
    command = click.option("--among", help="auto: schemes to choose from, as in repeat,tree.")(command)
    return costs_option(command)


@click.group(cls=Commands, invoke_without_command=True)
@costs_option
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, which is the default.")
@click.pass_context
def costs(context: click.Context, costs: Any, output: Path | None, as_json: bool) -> None:  # noqa: ARG001
    """Print the costs of hosts, links and switches that scheme `auto` uses on files; show or set those of the
    running fabric."""
    if context.invoked_subcommand is None:
        write_text(routing.to_text(planned(lambda: routing.costs(costs or "agents"))), output)


@costs.command()
@api_options
def show(api: str, as_json: bool) -> None:
    """Show what groups of scheme `auto` go by in the running fabric."""
    _show(Client(api).get("/costs"), as_json)


@costs.command("set")
@click.argument("costs", metavar="FILE|SET", callback=read_costs, shell_complete=_complete_costs)
@api_options
def set_costs(costs: Any, api: str, as_json: bool) -> None:
    """Choose by other costs from now on: a costs FILE or the name of a SET. They are kept across restarts."""
    body = {"set": costs} if isinstance(costs, str) else costs
    _show(Client(api).send("PUT", "/costs", body), as_json)


def _show(value: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(value)
        return
    rows = [[name, number] for name, number in value.items() if not isinstance(number, dict | list)]
    print_table("costs of the fabric", ["cost", "value"], rows)
