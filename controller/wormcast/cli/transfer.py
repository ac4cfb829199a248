"""`wormcast send`, `recv`, `status`: files through the agent of this host.

What shows progress is imported in the functions, because rich is slow to load.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from wormcast.agent import Agent, AgentError
from wormcast.decimal import read_decimal

EXIT_ERROR = 1

socket_option = click.option(
    "--socket",
    "socket",
    type=click.Path(path_type=Path),
    help="Socket of the agent [default: $WORMCAST_SOCKET, or /run/wormcast/agent.sock].",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--group", "-g", required=True, help="Group, by number or name.")
@click.option("--name", help="Name the receivers see [default: that of FILE].")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    help="Give up if not every member has the file after so many seconds.",
)
@socket_option
@json_option
def send(
    file: Path, group: str, name: str | None, timeout: float | None, socket: Path | None, as_json: bool
) -> None:
    """Send FILE (- for standard input) to every member of a group.

    Exit status: 0 if every member has it and has checked it; 3 if some failed (they are
    listed; the others have it); 4 if --timeout passed; 1 for any other error.
    """
    from wormcast.cli.sending import send_file

    try:
        code = send_file(file, parse_group(group), name, timeout, socket, as_json)
    except (AgentError, OSError) as error:
        fail(error, as_json)
    sys.exit(code)


@click.command()
@click.option("--group", "-g", required=True, help="Group, by number or name.")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    help="Directory for the files, or - for standard output.",
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many files [default: go on].")
@click.option("--from", "origin", type=click.IntRange(0, 65_534), help="Take files of this host alone.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), help="End when nothing has come for so many seconds."
)
@click.option("--overwrite", is_flag=True, help="Replace files of the same name instead of numbering.")
@click.option("--fsync", is_flag=True, help="Confirm a file only when it is safe on the disk.")
@socket_option
@json_option
def recv(
    group: str,
    output: Path,
    count: int | None,
    origin: int | None,
    timeout: float | None,
    overwrite: bool,
    fsync: bool,
    socket: Path | None,
    as_json: bool,
) -> None:
    """Receive the files sent to a group.

    A file appears under its name once it is complete and its SHA-256 is right. Exit
    status: 0 if all came through; 3 if some did not; 4 if --timeout passed before --count
    files had come; 1 for any other error.
    """
    from wormcast.cli.receiving import FileSettings, receive_files

    settings = FileSettings(output, overwrite=overwrite, fsync=fsync)
    try:
        code = receive_files(parse_group(group), settings, count, origin, timeout, socket, as_json)
    except (AgentError, OSError) as error:
        fail(error, as_json)
    sys.exit(code)


@click.command()
@socket_option
@json_option
def status(socket: Path | None, as_json: bool) -> None:
    """Show what the agent of this host does: plan, groups, streams, failures, counters."""
    from wormcast.cli.agent_status import print_status

    try:
        with Agent(socket) as agent:
            value = agent.status()
    except AgentError as error:
        fail(error, as_json)
    if as_json:
        click.echo(json.dumps(value, indent=2))
    else:
        print_status(value)


def parse_group(text: str) -> int | str:
    """A number or a name."""
    number = read_decimal(text.removeprefix("-"))
    if number is None:
        return text
    return -number if text.startswith("-") else number


def fail(error: Exception, as_json: bool) -> NoReturn:
    """Says what went wrong and ends with status 1."""
    text = str(error)
    if as_json:
        answer: dict[str, Any] = {"error": text}
        for name in ("code", "choices"):
            if getattr(error, name, None):
                answer[name] = getattr(error, name)
        click.echo(json.dumps(answer))
    click.echo(f"wormcast: {text}", err=True)
    sys.exit(EXIT_ERROR)
