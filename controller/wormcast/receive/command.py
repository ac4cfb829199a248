"""`wormcast receive`."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import click
from wormcast_planner import GROUP_BROADCAST, GROUP_ID_MAX, HOST_ID_MAX

from wormcast.cli.arriving import FileSettings
from wormcast.cli.bundle import BundleOptions, shown
from wormcast.cli.completion import complete_own_groups
from wormcast.cli.refusal import Refusal
from wormcast.cli.transfer import (
    fail,
    fsync_option,
    no_preserve_option,
    overwrite_option,
    owner_option,
    parse_group,
    socket_option,
    xattrs_option,
)
from wormcast.client import AgentError
from wormcast.network.groups import GROUP_BOUND
from wormcast.receive.history import Record, read_history

_NOT_OF_HISTORY = (
    "groups",
    "origin",
    "command",
    "overwrite",
    "no_preserve",
    "fsync",
    "xattrs",
    "owner",
    "metrics",
    "socket",
)


@click.command()
@click.pass_context
@click.option(
    "--into",
    "directory",
    required=True,
    type=click.Path(path_type=Path),
    help="Directory for the files, and for their history.",
)
@click.option(
    "--group",
    "-g",
    "groups",
    multiple=True,
    shell_complete=complete_own_groups,
    help="Group, by number or name. May be given several times. [default: all of this host]",
)
@click.option(
    "--from", "origin", type=click.IntRange(0, HOST_ID_MAX), help="Receive files of this host only."
)
@click.option(
    "--exec",
    "command",
    metavar="COMMAND",
    help="Run this by /bin/sh after each file.",
)
@overwrite_option
@no_preserve_option
@fsync_option
@xattrs_option
@owner_option
@click.option(
    "--metrics",
    metavar="PORT|HOST:PORT|unix:PATH",
    help="Serve metrics for Prometheus here. A port alone is for this machine.",
)
@click.option("--history", is_flag=True, help="Show what has come, and end.")
@socket_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")
def receive(
    context: click.Context,
    directory: Path,
    groups: tuple[str, ...],
    origin: int | None,
    command: str | None,
    overwrite: bool,
    no_preserve: bool,
    fsync: bool,
    xattrs: bool,
    owner: bool,
    metrics: str | None,
    history: bool,
    socket: Path | None,
    as_json: bool,
) -> None:
    """Receive files as a service, until SIGTERM.

    Without --group it receives from all groups of this host that are no sinks, also those made
    later; programs that start later find these groups taken. It waits for the agent, its plan
    and groups that are named. A group where another program receives already is left to that
    until it ends. At most 256 groups are received from; others are named.

    COMMAND runs after a file is in its place and confirmed, one at a time, in the order in
    which files came. Its environment has WORMCAST_FILE (path; of several sent as one, the
    directory that they are in), WORMCAST_ORIGIN (host), WORMCAST_GROUP (name),
    WORMCAST_MESSAGE (number of this message of origin and group), WORMCAST_SHA256 and
    WORMCAST_BYTES. Its output goes to standard error. When 256 commands
    wait, files are not confirmed until one has ended. A command that has not run to its end
    when the service ends runs at the next start: it may run twice for a file.

    The last 1,000 files are in DIRECTORY/.wormcast-history.jsonl.

    \b
    Exit status:
    0    SIGTERM ended it
    2    the options or the directory is refused
    69   the agent does not keep to the protocol
    130  Ctrl-C
    """
    if history:
        for name in _NOT_OF_HISTORY:
            if context.params[name]:
                option = next(one.opts[0] for one in context.command.params if one.name == name)
                raise Refusal(f"{option} has no effect with --history", code="without-effect", value=option)
        _show_history(directory, as_json)
        return
    from wormcast.receive.figures import Figures
    from wormcast.receive.report import Report
    from wormcast.receive.service import Options
    from wormcast.receive.service import receive as serve

    if not directory.is_dir():
        what = "a file, not a directory" if directory.exists() else "not a directory; make it first"
        raise Refusal(f"{directory} is {what}", code="cannot-read", value=str(directory))
    kept = BundleOptions(xattrs=xattrs, owner=owner)
    settings = FileSettings(directory.absolute(), overwrite, fsync, preserve=not no_preserve, bundles=kept)
    wanted = tuple(_checked(parse_group(group)) for group in groups)
    options = Options(settings, wanted, origin, command, socket, as_json)
    figures = Figures()
    with contextlib.ExitStack() as stack:
        if metrics is not None:
            _serve_metrics(metrics, figures, stack)
        try:
            code = serve(options, figures, Report(as_json=as_json))
        except (AgentError, OSError) as error:
            fail(error)
    sys.exit(code)


def _checked(group: int | str) -> int | str:
    if isinstance(group, int) and (not 0 <= group <= GROUP_ID_MAX or group == GROUP_BROADCAST):
        bound = f"groups are {GROUP_BOUND}"
        raise Refusal(f"--group {group}: {bound}", code="out-of-range", value=group, bound=bound)
    if group == "":
        raise Refusal("--group '': wanted a number or a name", code="out-of-range", value=group)
    return group


def _serve_metrics(where: str, figures: object, stack: contextlib.ExitStack) -> None:
    from wormcast.receive import metrics
    from wormcast.receive.figures import Figures
    from wormcast.sockets import CannotListen

    assert isinstance(figures, Figures)
    try:
        listener = metrics.listen(where)
    except CannotListen as error:
        text = f"metrics cannot be served at {where}: {error}"
        raise Refusal(text, code="cannot-listen", value=where) from error
    stack.enter_context(metrics.serving(listener, figures.page))


def _show_history(directory: Path, as_json: bool) -> None:
    records, damaged = read_history(directory)
    if as_json:
        for record in records:
            click.echo(json.dumps(asdict(record)))
    else:
        rows = [["time", "group", "origin", "file", "bytes", "seconds", "outcome", "command"]]
        rows += [_row(record) for record in records]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            click.echo(
                "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            )
    if damaged:
        click.echo(f"wormcast: {damaged} damaged lines are left out", err=True)


def _row(record: Record) -> list[str]:
    command = record.command or ""
    if record.exit_status is not None:
        command = f"ended with {record.exit_status}" if record.exit_status else "done"
    return [
        record.time[:19] + "Z",
        record.group,
        str(record.origin),
        shown(record.file or record.name or ""),
        "" if record.bytes is None else str(record.bytes),
        "" if record.seconds is None else f"{record.seconds:.3f}",
        record.outcome if record.reason is None else f"{record.outcome}: {record.reason}",
        command,
    ]
