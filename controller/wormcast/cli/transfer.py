"""`wormcast send`, `recv`, `status`: files through the agent of this host.

What sends and receives is imported in the functions, because rich is slow to load.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import NoReturn

import click
from wormcast_planner import HOST_ID_MAX

from wormcast.cli.bit_rate import read_rate_bits
from wormcast.cli.completion import complete_own_groups
from wormcast.cli.host_list import complete_host_list, parse_hosts
from wormcast.cli.refusal import Refusal, explain_os
from wormcast.cli.rest import API_DEFAULT, API_ENVIRONMENT, Client, Refused, Unavailable, api_address
from wormcast.client import (
    SOCKET_VARIABLE,
    Agent,
    AgentError,
    AgentGoneError,
    AgentProtocolError,
    AgentTimeoutError,
    AgentUnavailableError,
    HandleClosedError,
)
from wormcast.client.files import LAG_BYTES_MIN
from wormcast.decimal import read_decimal
from wormcast.exits import Exit

SECONDS_MAX = 86_400 * 365
"""Of a time limit."""
ASK_TIMEOUT_S = 1.0
"""`status` is about the agent: what a controller has to say goes without saying after so long."""
RETRY_MAX = 1000
SIZE_UNITS = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}
LAG_BYTES = 8 << 20
LAG_BYTES_MOST = 1 << 40
CODES: dict[type[Exception], tuple[str, Exit]] = {
    AgentUnavailableError: ("unavailable", Exit.UNAVAILABLE),
    AgentGoneError: ("agent-gone", Exit.UNAVAILABLE),
    AgentProtocolError: ("agent", Exit.UNAVAILABLE),
    AgentTimeoutError: ("timeout", Exit.TIMEOUT),
    HandleClosedError: ("agent", Exit.NO),
}
"""What a refusal is called, and how the command ends; what is not here the agent refuses."""

socket_option = click.option(
    "--socket",
    "socket",
    type=click.Path(path_type=Path),
    help="Socket of the agent. [default: $WORMCAST_SOCKET, or /run/wormcast/agent.sock]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


class _FilePath(click.Path):
    """A path. An empty one, as of a variable that is not set, would be the working directory."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail("an empty name is no file", param, ctx)
        return super().convert(value, param, ctx)


def _seconds(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: float | None,
) -> float | None:
    if value is not None and not 0 < value <= SECONDS_MAX:
        raise click.BadParameter(
            f"{value:g} is not a number of seconds above 0 and up to {SECONDS_MAX}; leave the option out to wait "
            "without limit"
        )
    return value


def _deadline(
    context: click.Context,
    parameter: click.Parameter,
    value: str | None,
) -> float | None:
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        return _seconds(context, parameter, float(value))
    now = datetime.now().astimezone()
    try:
        if re.fullmatch(r"[0-9]{2}:[0-9]{2}(:[0-9]{2})?", value):
            when = datetime.combine(now.date(), time.fromisoformat(value)).astimezone()
            when = when if when > now else when + timedelta(days=1)
        else:
            when = datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError, OSError):
        text = f"{value!r} is neither seconds nor a time; write it as 600, 17:30 or 2026-12-24T17:30"
        raise click.BadParameter(text) from None
    left_s = (when - now).total_seconds()
    if not 0 < left_s <= SECONDS_MAX:
        raise click.BadParameter(f"{value!r} is not a time from now on, within {SECONDS_MAX} s")
    return left_s


def _wait_seconds(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: float | None,
) -> float | None:
    if value is not None and not 0 < value <= SECONDS_MAX:
        text = f"{value:g} is not a number of seconds above 0 and up to {SECONDS_MAX}"
        raise click.BadParameter(f"{text}; leave the option out to send at once")
    return value


xattrs_option = click.option(
    "--xattrs",
    is_flag=True,
    help="Files and directories keep their extended attributes of the class user. Both ends have to ask for it.",
)
owner_option = click.option(
    "--owner",
    is_flag=True,
    help="Files and directories keep the numbers of their owner and group; as root. Both ends have to ask for it.",
)


overwrite_option = click.option(
    "--overwrite",
    is_flag=True,
    help="Replace a file of the same name, or a directory by a directory. Without this the new one gets a number.",
)
no_preserve_option = click.option(
    "--no-preserve",
    is_flag=True,
    help="Give files the permissions and time of new ones. Without this they have those of the sender's file, "
    "as far as the umask allows, and never setuid.",
)
fsync_option = click.option("--fsync", is_flag=True, help="Confirm a file only when it is safe on the disk.")


def _lag(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: str | None,
) -> int | None:
    if value is None:
        return None
    match = re.fullmatch(r"([0-9]{1,12})([kMG]?)(?:i?B)?", value.strip())
    size = int(match[1]) * SIZE_UNITS[match[2]] if match else 0
    if not LAG_BYTES_MIN <= size <= LAG_BYTES_MOST:
        raise click.BadParameter(
            f"{value!r} is not a number of bytes from {LAG_BYTES_MIN >> 10}k to {LAG_BYTES_MOST >> 30}G; "
            "write it as 8M or 512k (1k is 1024)"
        )
    return size


@click.command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=_FilePath(path_type=Path, allow_dash=True),
)
@click.option("--group", "-g", help="Group, by number or name.", shell_complete=complete_own_groups)
@click.option(
    "--to",
    "-w",
    "hosts",
    metavar="HOSTS",
    multiple=True,
    shell_complete=complete_host_list,
    help="In place of a group: hosts by number or name, between commas or spaces, with ranges such as 'h[1-4,7]'.",
)
@click.option("--name", help="Name that the receivers see, of one FILE. [default: its own]")
@click.option(
    "--exclude",
    metavar="PATTERN",
    multiple=True,
    help="Leave out what has this name or path, as 'data/*.tmp'; can be repeated.",
)
@xattrs_option
@owner_option
@click.option("--dry-run", is_flag=True, help="Only show what would be sent.")
@click.option(
    "--changed",
    is_flag=True,
    help="Send only what receivers lack: they compare the list of all files with their own, and with what a broken "
    "transfer has left. Files that are the same keep their permissions and times, unless they are overwritten.",
)
@click.option(
    "--retry",
    type=click.IntRange(0, RETRY_MAX),
    metavar="N",
    default=0,
    help="Send again to members that failed, up to N times; as with --changed, without what they have.",
)
@click.option(
    "--timeout",
    type=float,
    callback=_seconds,
    help="End after this many seconds, and say what is known of each member; with --retry, end each try.",
)
@click.option(
    "--deadline",
    "deadline_s",
    callback=_deadline,
    metavar="SECONDS|TIME",
    help="The same of all tries: seconds from now, or a time such as 17:30 or 2026-12-24T17:30.",
)
@click.option(
    "--rate",
    "rate_bits",
    metavar="RATE",
    callback=read_rate_bits,
    help="Send at most so many bits of the files a second, as 20M or 500k.",
)
@click.option(
    "--slow",
    type=click.Choice(["wait", "late", "drop"]),
    default="wait",
    show_default=True,
    help="What becomes of a member whose receiver takes the files slower than they come: others wait for it, it gets "
    "the rest when they have all (as with --changed), or it does not get them.",
)
@click.option(
    "--lag",
    "lag_bytes",
    metavar="BYTES",
    callback=_lag,
    help=f"With --slow late and drop: so many bytes may wait for a receiver, as 8M. [default: {LAG_BYTES >> 20}M]",
)
@click.option(
    "--only-present",
    is_flag=True,
    help="Members that take no part in the group when the file is sent, such as those away, do not count.",
)
@click.option(
    "--wait-for-members",
    "wait_s",
    type=float,
    callback=_wait_seconds,
    metavar="SECONDS",
    help="Before anything is sent, wait up to so long until every member takes part and has a receiver open.",
)
@click.option(
    "--api",
    metavar="ADDRESS",
    help="Controller, as http://host:port or unix:/path, for --to and --wait-for-members. "
    f"[default: ${API_ENVIRONMENT} or {API_DEFAULT}]",
)
@socket_option
@json_option
def send(
    files: tuple[Path, ...],
    group: str | None,
    hosts: tuple[str, ...],
    name: str | None,
    exclude: tuple[str, ...],
    xattrs: bool,
    owner: bool,
    dry_run: bool,
    changed: bool,
    retry: int,
    timeout: float | None,
    deadline_s: float | None,
    rate_bits: int | None,
    slow: str,
    lag_bytes: int | None,
    only_present: bool,
    wait_s: float | None,
    api: str | None,
    socket: Path | None,
    as_json: bool,
) -> None:
    """Send FILEs and directories (- for standard input) to every member of a group, or to hosts.

    Directories go with all that is in them: files with their holes, hard and symbolic links,
    permissions and times. Sockets, pipes and devices do not. What changes while it is sent
    is not sent, and nobody gets a part. All of it is one message: a member has everything or
    nothing.

    Hosts named with --to get a group that is called by its members, such as to-0-1-5, and is
    used again for the same ones, whoever of them sends. It stays until 'wormcast group delete'.

    A receiver that takes the files slower than they come is named. Others wait for it once the
    buffers of its agent are full; with --slow late and drop it loses the files before that.

    Members of the group that are away do not get the file, and are named as those that
    failed are. With --only-present they do not count, unless nobody else is there.
    Hosts where nobody receives yet are named, and waited for. At --timeout the command
    ends, and says of each member whether it has the file, does not have it yet, or that
    this is unknown. If not all of the file was sent by then, it is cancelled and members
    drop what they have. Otherwise it is still on its way.

    With --changed a transfer that broke goes on where each member is, whoever of sender,
    receiver, agent and controller ended: send the same again. Members keep what came of it
    for seven days. Each file is checked whole before it has its name. A receiver that writes
    to standard output takes nothing that is sent like this.

    The file goes with its name, permissions and time of change. When every member has failed
    the command stops. If the agent of this host ends meanwhile, it says what is known of each
    member; without --retry nothing is sent again.

    \b
    Exit status:
    0   every member, with --only-present every one present, has the file and has checked it
    1   the group was deleted meanwhile
    2   the options, the file or the group is refused
    3   some members failed or are away, or the agent ended meanwhile: what is known of each is listed
    4   --timeout or --deadline passed, or --wait-for-members, and then nothing was sent
    69  no agent, or no controller for --to or --wait-for-members
    """
    from wormcast.cli.bundle import BundleOptions, refusals
    from wormcast.cli.content import is_bundle
    from wormcast.cli.recipients import Recipients
    from wormcast.cli.tries import Slow, Tries

    changed = changed or retry > 0 or slow == "late"
    paths, options = list(files), BundleOptions(exclude, xattrs=xattrs, owner=owner, changed=changed)
    if Path("-") in paths and (len(paths) > 1 or xattrs or owner or changed):
        text = "standard input (-) goes alone, without --xattrs, --owner, --changed, --retry and --slow late"
        raise Refusal(text, code="out-of-range", value="-")
    if name is not None and is_bundle(paths, options):
        text = "--name has no effect on directories, several files, --xattrs, --owner, --changed, --retry and --slow late; it is for one file"
        raise Refusal(text, code="without-effect", value="--name")
    if exclude and not is_bundle(paths, options):
        text = "--exclude has no effect on one file; it is for directories and several files"
        raise Refusal(text, code="without-effect", value="--exclude")
    if lag_bytes is not None and slow == "wait":
        text = "--lag has no effect with --slow wait; it is for --slow late and drop"
        raise Refusal(text, code="without-effect", value="--lag")
    if dry_run:
        from wormcast.cli.dry_run import show_what_is_sent

        with refusals():
            show_what_is_sent(paths, options, as_json)
        return
    from wormcast.cli.sending import send_files

    if (group is None) is not bool(hosts):
        given = "both are given" if hosts else "neither is given"
        raise click.UsageError(f"give one of --group and --to; {given}")
    if api is not None and group is not None and wait_s is None:
        raise Refusal(
            "--api has no effect with --group alone; it is for --to and --wait-for-members",
            code="without-effect",
            value="--api",
        )
    recipients = Recipients(
        None if group is None else parse_group(group),
        tuple(parse_hosts(",".join(hosts))) if hosts else (),
        wait_s,
        only_present,
        api_address(api),
    )
    try:
        with refusals():
            tries = Tries(retry, timeout, deadline_s)
            patience = Slow(None if slow == "wait" else lag_bytes or LAG_BYTES, slow == "late")
            code = send_files(paths, options, recipients, name, tries, rate_bits, patience, socket, as_json)
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
    help="Directory for the files, or - for standard output: one whole file after another.",
)
@click.option("--count", type=click.IntRange(min=1), help="End after this many files. [default: never]")
@click.option(
    "--from", "origin", type=click.IntRange(0, HOST_ID_MAX), help="Receive files of this host only."
)
@click.option(
    "--timeout",
    type=float,
    callback=_seconds,
    help="End when nothing was received for this many seconds.",
)
@overwrite_option
@no_preserve_option
@fsync_option
@xattrs_option
@owner_option
@socket_option
@json_option
def recv(
    group: str,
    output: Path,
    count: int | None,
    origin: int | None,
    timeout: float | None,
    overwrite: bool,
    no_preserve: bool,
    fsync: bool,
    xattrs: bool,
    owner: bool,
    socket: Path | None,
    as_json: bool,
) -> None:
    """Receive the files and directories sent to a group.

    A file appears under its name when it is complete and its SHA-256 is right. Directories and
    several files that were sent as one appear when all is complete, one after another. For standard
    output it is kept in a temporary file ($TMPDIR) until then; with --from it is written as
    it comes. The rate that is shown is that at which it came over the network.

    If the agent of this host ends, files that are arriving are lost, and the command waits
    for the agent and goes on. What came of those sent with --changed is kept for their next
    transfer, under a hidden name in the directory, for seven days and of four transfers at most.

    \b
    Exit status:
    0   all files were received
    1   the group was deleted meanwhile
    2   the options, the directory or the group is refused
    3   some files were not received, or their senders count this host as failed
    4   --timeout passed before --count files were received
    69  no agent
    """
    from wormcast.cli.bundle import BundleOptions
    from wormcast.cli.receiving import FileSettings, receive_files

    if str(output) == "-":
        for option, given in (
            ("--overwrite", overwrite),
            ("--no-preserve", no_preserve),
            ("--fsync", fsync),
            ("--xattrs", xattrs),
            ("--owner", owner),
        ):
            if given:
                text = f"{option} has no effect on standard output; it is for a directory"
                raise Refusal(text, code="without-effect", value=option)
    kept = BundleOptions(xattrs=xattrs, owner=owner)
    settings = FileSettings(output, overwrite=overwrite, fsync=fsync, preserve=not no_preserve, bundles=kept)
    try:
        code = receive_files(parse_group(group), settings, count, origin, timeout, socket, as_json)
    except (AgentError, OSError) as error:
        fail(error)
    sys.exit(code)


@click.command()
@socket_option
@json_option
def status(socket: Path | None, as_json: bool) -> None:
    """Show what the agent of this host does: plan, groups, streams, failures, counters.

    Where $WORMCAST_API says which controller the fabric has, links that carry too little are named too.
    """
    from wormcast.cli.agent_status import print_status

    try:
        with Agent(socket) as agent:
            value = agent.status()
    except AgentError as error:
        fail(error)
    if as_json:
        click.echo(json.dumps(value, indent=2))
    else:
        print_status(value, mtu_problems())


def mtu_problems() -> list[str]:
    """Links that carry too little, as the controller of the environment names them; nothing if it does not answer."""
    address = os.environ.get(API_ENVIRONMENT)
    if not address:
        return []
    try:
        found = Client(address, timeout_s=ASK_TIMEOUT_S).get("/status").get("mtu_problems", [])
    except (Refused, Unavailable, AttributeError):
        return []
    return [str(problem) for problem in found]


def parse_group(text: str) -> int | str:
    """A number or a name."""
    number = read_decimal(text.removeprefix("-"))
    if number is None:
        return text
    return -number if text.startswith("-") else number


def fail(error: Exception) -> NoReturn:
    """Says what went wrong, as a refusal."""
    choices = getattr(error, "choices", None) or None
    if isinstance(error, OSError):
        raise Refusal(explain_os(error), code="cannot-read") from error
    code, exit_code = CODES.get(type(error), (getattr(error, "code", None) or "agent", Exit.REFUSED))
    text = str(error)
    if isinstance(error, AgentUnavailableError):
        from wormcast.cli import nearby

        text += nearby.hint(SOCKET_VARIABLE)
    raise Refusal(text, code=code.replace("_", "-"), exit_code=exit_code, choices=choices) from error
