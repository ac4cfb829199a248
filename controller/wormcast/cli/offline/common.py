"""What the offline commands share: options, files in and out, refusals."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from wormcast import plan

EXIT_REFUSED = 2
ID_RANGE = click.IntRange(0, 65534)

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Json = dict[str, Any]


class RefusedInput(click.ClickException):
    """Input that is refused; the message says what, why and what would do.

    With --json the message is an object on standard error: {"error": {"code", "message",
    "line", "column"}}; line and column, from 1, are null where there is no one place.
    """

    exit_code = EXIT_REFUSED

    def __init__(
        self, message: str, *, code: str = "refused", line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "line": line, "column": column}
        context = click.get_current_context(silent=True)
        self.as_json = context is not None and bool(context.params.get("as_json"))

    def show(self, file: IO[Any] | None = None) -> None:
        """Prints it on standard error."""
        if self.as_json:
            click.echo(json.dumps({"error": self.error}), file=file, err=file is None)
        else:
            super().show(file)


def refuse(error: plan.RoutingError, file: str | None = None) -> RefusedInput:
    """The refusal of an error of the planner, about a file if it has a name."""
    return RefusedInput(
        str(error) if file is None else f"{file}: {error}",
        code=getattr(error, "code", "refused"),
        line=getattr(error, "line", None),
        column=getattr(error, "column", None),
    )


def planned(work: Callable[[], T]) -> T:
    try:
        return work()
    except plan.RoutingError as error:
        raise refuse(error) from error


def write_text(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise RefusedInput(f"cannot write {output}: {error.strerror}") from error


def read_text(path: Path, what: str) -> str:
    """A text file; - is standard input."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text()
    except OSError as error:
        raise RefusedInput(f"cannot read {what} {path}: {error.strerror}", code="cannot-read") from error
    except UnicodeDecodeError as error:
        raise RefusedInput(f"{what} {path} is not text: {error}", code="syntax") from error


def read_json(path: Path, what: str) -> Json:
    try:
        value = json.loads(read_text(path, what))
    except ValueError as error:
        raise RefusedInput(f"{what} {path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise RefusedInput(f"{what} {path} is not a JSON object")
    return value


def read_topology(
    name: str, *, format: str | None = None, hosts_per_switch: int = 0, allow_split: bool = True
) -> Json:
    """A file in any format, `-` for standard input, or a kind such as `torus:4`."""
    is_kind = name.split(":")[0] in {kind.split(":")[0] for kind in plan.kinds()} and not Path(name).exists()
    if is_kind and format is None and not hosts_per_switch:
        return planned(lambda: plan.make(name))
    text = read_text(Path(name), "topology")
    try:
        return plan.read(text, format=format, allow_split=allow_split, hosts_per_switch=hosts_per_switch)
    except plan.RoutingError as error:
        raise refuse(error, f"topology {name}") from error


def host_list(context: click.Context, parameter: click.Parameter, value: str | None) -> list[int]:  # noqa: ARG001
    if value is None:
        return []
    if not re.fullmatch(r"\d+([,\s]+\d+)*", value.strip()):
        raise click.BadParameter(f"{value!r} is no list of hosts such as 1,5,9")
    return [int(host) for host in re.findall(r"\d+", value)]


def file_options(command: F) -> F:
    """Adds --topology, --root, --output and --json."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON; that is so anyway.")(command)
    command = click.option(
        "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file."
    )(command)
    command = click.option(
        "--root", type=ID_RANGE, help="Root switch. [default: the one of least eccentricity]"
    )(command)
    return click.option(
        "--topology",
        required=True,
        metavar="FILE|KIND",
        help="Topology file (json, ibsim, ibnetdiscover, edges, graphml), - for standard input, or a kind such as "
        "torus:4.",
    )(command)
