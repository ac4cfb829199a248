"""`wormcast send`, `recv`, `status`: files through the agent of this host.

What shows progress is imported in the functions, because rich is slow to load.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NoReturn

import click

from wormcast.cli.completion import complete_own_groups
from wormcast.cli.refusal import Refusal, explain_os
from wormcast.client import (
    Agent,
    AgentError,
    AgentGoneError,
    AgentTimeoutError,
    AgentUnavailableError,
)
from wormcast.decimal import read_decimal

EXIT_ERROR = 1
SECONDS_MAX = 86_400 * 365
"""Of a time limit."""
CODES: dict[type[Exception], str] = {
    AgentUnavailableError: "unavailable",
    AgentGoneError: "agent-gone",
    AgentTimeoutError: "timeout",
}

socket_option = click.option(
    "--socket",
    "socket",
    type=click.Path(path_type=Path),
    help="Socket of the agent [default: $WORMCAST_SOCKET, or /run/wormcast/agent.sock].",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def _seconds(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: float | None,
) -> float | None:
    if value is not None and not value <= SECONDS_MAX:
        raise click.BadParameter(
            f"{value} is no number of seconds from 0 to {SECONDS_MAX}; leave it out to wait as long as it takes"
        )
    return value


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--group", "-g", required=True, help="Group, by number or name.", shell_complete=complete_own_groups
)
@click.option("--name", help="Name the receivers see [default: that of FILE].")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    callback=_seconds,
    help="End after so many seconds, whatever the command is doing, and say what is known of each member.",
)
@socket_option
@json_option
def send(
    file: Path, group: str, name: str | None, timeout: float | None, socket: Path | None, as_json: bool
) -> None:
    """Send FILE (- for standard input) to every member of a group.

    Hosts where nobody receives are named within a second; it goes on waiting for them as
    long as their agents do. At --timeout a file that is not all sent is cancelled (members
    drop what they have), another goes on its way; of each member it says whether it has the
    file, does not have it yet, or that this is not known.

    Exit status: 0 if every member has it and has checked it; 3 if some failed (they are
    listed; the others have it); 4 if --timeout passed; 2 if the options are wrong; 1 for any
    other error.
    """
    from wormcast.cli.sending import send_file

    try:
        code = send_file(file, parse_group(group), name, timeout, socket, as_json)
    except (AgentError, OSError) as error:
        fail(error)
    sys.exit(code)


@click.command()
@click.option(
    "--group", "-g", required=True, help="Group, by number or name.", shell_complete=complete_own_groups
)
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
    "--timeout",
    type=click.FloatRange(min=0),
    callback=_seconds,
    help="End when nothing has come for so many seconds.",
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

    if str(output) == "-":
        for option, given in (("--overwrite", overwrite), ("--fsync", fsync)):
            if given:
                text = f"{option} has no effect on standard output; it is for a directory"
                raise Refusal(text, code="without-effect", value=option)
    settings = FileSettings(output, overwrite=overwrite, fsync=fsync)
    try:
        code = receive_files(parse_group(group), settings, count, origin, timeout, socket, as_json)
    except (AgentError, OSError) as error:
        fail(error)
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
        fail(error)
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


def fail(error: Exception) -> NoReturn:
    """Says what went wrong and ends with status 1."""
    choices = getattr(error, "choices", None) or None
    if isinstance(error, OSError):
        raise Refusal(explain_os(error), code="cannot-read", exit_code=EXIT_ERROR) from error
    code = getattr(error, "code", None) or CODES.get(type(error), "agent")
    raise Refusal(str(error), code=code.replace("_", "-"), exit_code=EXIT_ERROR, choices=choices) from error
