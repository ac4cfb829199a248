"""Costs on the command line: the options of scheme `auto`, and `wormcast costs`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from wormcast import routing
from wormcast.cli.completion import complete_hosts
from wormcast.cli.files import planned, read_json, write_text
from wormcast.cli.refusal import Commands
from wormcast.cli.rest import Client, api_options, print_json, print_table
from wormcast.client import SOCKET_DEFAULT, SOCKET_VARIABLE, AgentError

F = TypeVar("F", bound=Callable[..., Any])

MOST_LEAST, MOST_DEFAULT, MOST_MOST = 64 << 10, 4 << 20, 64 << 20
"""Bytes of the longest messages of `wormcast costs measure`."""


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
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write a costs file: JSON."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as --costs takes it from a file.")
@click.pass_context
def costs(context: click.Context, costs: Any, output: Path | None, as_json: bool) -> None:
    """Print the costs of hosts, links and switches that scheme `auto` uses on files; show or set those of the
    running fabric."""
    if context.invoked_subcommand is not None:
        return
    value = planned(lambda: routing.costs(costs or "agents"))
    if as_json or output is not None:
        write_text(routing.to_text(value), output)
    else:
        name = "the file" if isinstance(costs, dict) else costs or "agents"
        _show(value, False, f"costs of {name}")


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


@costs.command()
@click.argument("members", nargs=-1, metavar="[HOST]...", shell_complete=complete_hosts)
@click.option(
    "--most",
    type=click.IntRange(MOST_LEAST, MOST_MOST),
    default=MOST_DEFAULT,
    show_default=True,
    help="Bytes of the longest messages.",
)
@click.option("--dry-run", is_flag=True, help="Show the costs, and leave those in force as they are.")
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    help=f"Socket of the agent. [default: ${SOCKET_VARIABLE}, or {SOCKET_DEFAULT}]",
)
@api_options
def measure(
    members: tuple[str, ...], most: int, dry_run: bool, socket: Path | None, api: str, as_json: bool
) -> None:
    """Measure the costs of the running fabric from this host, and choose by them from now on.

    Messages are sent from this host to up to 15 others (HOSTs, or the next ones by number), and timed. For that there are
    groups named costs-measure-… for as long as it takes, some 30 s on links of 100 Mb/s. No receivers are needed. Other
    traffic meanwhile makes the costs higher than they are.
    """
    from wormcast.cli import measuring
    from wormcast.cli.transfer import fail

    try:
        answer = measuring.measure(api, socket, most, members, dry_run=dry_run, quiet=False)
    except AgentError as error:
        fail(error)
    if as_json:
        print_json(answer)
        return
    _show_measured(answer)


def _show_measured(answer: dict[str, Any]) -> None:
    print_table(
        "messages",
        ["bytes", "scheme", "members", "messages", "took ms", "±", "expected before", "and now"],
        [
            [
                f"{one['bytes']:,}",
                one["scheme"],
                len(one["members"]),
                one["messages"],
                f"{one['microseconds'] / 1000:.2f}",
                f"{one['error']:.0%}",
                f"{one['before_microseconds'] / 1000:.2f}",
                f"{one['after_microseconds'] / 1000:.2f}",
            ]
            for one in answer["measured"]
        ],
    )
    print_table(
        "costs",
        ["cost", "before", "now", "±", ""],
        [
            [
                " + ".join(one["names"])
                if len(one["names"]) == 2 and "_ns" in one["names"][0]
                else ", ".join(one["names"]),
                f"{one['before']:,.0f}",
                f"{one['after']:,.0f}",
                f"{one['error']:,.0f}" if one["told"] else "",
                "" if one["told"] else "as before: these times do not tell",
            ]
            for one in answer["found"]
        ],
    )
    click.echo(
        "All other costs are as before. "
        + ("They are in force." if answer["in_force"] else "None of this is in force (--dry-run).")
    )


def _show(value: dict[str, Any], as_json: bool, title: str = "costs of the fabric") -> None:
    if as_json:
        print_json(value)
        return
    rows = [[name, number] for name, number in value.items() if not isinstance(number, dict | list)]
    print_table(title, ["cost", "value"], rows)
