"""What the offline commands share: options, files in and out, refusals."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from wormcast import plan

EXIT_REFUSED = 2
ID_RANGE = click.IntRange(0, 65534)

F = TypeVar("F", bound=Callable[..., Any])
Json = dict[str, Any]


class RefusedInput(click.ClickException):
    """Input that is refused; the message says what, why and what would do."""

    exit_code = EXIT_REFUSED


def planned(work: Callable[[], Json]) -> Json:
    try:
        return work()
    except plan.RoutingError as error:
        raise RefusedInput(str(error)) from error


def write_text(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise RefusedInput(f"cannot write {output}: {error.strerror}") from error


def read_json(path: Path, what: str) -> Json:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
        value = json.loads(text)
    except OSError as error:
        raise RefusedInput(f"cannot read {what} {path}: {error.strerror}") from error
    except ValueError as error:
        raise RefusedInput(f"{what} {path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise RefusedInput(f"{what} {path} is not a JSON object")
    return value


def read_topology(name: str) -> Json:
    """A file, `-` for standard input, or a kind such as `torus:4`."""
    is_kind = name.split(":")[0] in {kind.split(":")[0] for kind in plan.kinds()} and not Path(name).exists()
    if is_kind:
        return planned(lambda: plan.make(name))
    topology = read_json(Path(name), "topology")
    return planned(lambda: plan.check(topology, allow_split=True))


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
        help="Topology file, - for standard input, or a kind such as torus:4.",
    )(command)
