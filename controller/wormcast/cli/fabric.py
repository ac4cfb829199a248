"""`wormcast up`, `on` and `demo`: fabrics in Mininet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from wormcast.cli.fabric_completion import (
    OnHost,
    complete_command,
    complete_host,
    complete_schemes,
    complete_topology,
)
from wormcast.cli.fabric_parts import cut, fabric_choice, mend, start, stop
from wormcast.cli.refusal import Commands, Refusal, explain_os
from wormcast.wormhole.switching import SWITCHINGS

TOPOLOGIES = (
    "testbed, torus:K, irregular:S[:SEED], line:S, star:S, any other of `wormcast topo make`, or a file"
)
SEED_MAX = (1 << 32) - 1
DEMO_RATES = "[default: 100; 10 on BMv2]"


def _refused(run: Callable[[], int]) -> int:
    """What `run` returns; what was asked for wrongly is refused."""
    try:
        from wormcast.mininet.sandbox import SandboxError
    except ImportError as error:
        raise Refusal(f"{error}; Mininet comes from the system's packages: apt install mininet") from None
    try:
        return run()
    except OSError as error:
        raise Refusal(explain_os(error), code="cannot-read") from None
    except (SandboxError, ValueError) as error:
        raise Refusal(str(error)) from None


def _fabric_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        [
            click.option(
                "--switch",
                type=click.Choice(["wormcast", "bmv2"]),
                default="wormcast",
                show_default=True,
                help="wormcast-switch, or BMv2's simple_switch_grpc.",
            ),
            click.option(
                "--topology",
                default="testbed",
                show_default=True,
                shell_complete=complete_topology,
                help=f"{TOPOLOGIES}.",
            ),
            click.option("--mtu", help="MTU of the hosts in bytes. [default: 1500]"),
            click.option(
                "--fabric-mtu",
                help="MTU of the links between switches in bytes. [default: that of the hosts and 100]",
            ),
            click.option(
                "--impair",
                help="Impairments of every switch port, e.g. loss=0.01,corrupt=0.001,reorder=0.01.",
            ),
            click.option(
                "--switching",
                type=click.Choice(SWITCHINGS),
                help="How switches pass worms on; `wormcast switching set` changes it at run time. [default: packet]",
            ),
            click.option(
                "--seed",
                type=click.IntRange(0, SEED_MAX),
                default=1,
                show_default=True,
                help="Of all that is drawn.",
            ),
        ]
    ):
        command = option(command)
    return command


class Up(Commands):
    """Brings a fabric up, with HOST COMMAND where that follows; its own commands change one that is up."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's, but words that begin with none of the commands are HOST COMMAND."""
        _, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
        if not rest or rest[0] in self.commands or ctx.resilient_parsing:
            left = super().parse_args(ctx, args)
            ctx.params["command"] = ()
            return left
        super().parse_args(ctx, args[: len(args) - len(rest)])
        ctx.params["command"] = tuple(rest)
        return []

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Both forms."""
        return ["[OPTIONS]", "[HOST COMMAND … | start | stop | cut | mend]"]


@click.group(cls=Up, invoke_without_command=True)
@_fabric_options
@click.option(
    "--rate", default="100", show_default=True, help="Rate of every link in Mb/s, or none (no limit)."
)
@click.option("--name", help="Name of the fabric, for `wormcast on --name`. [default: run, run-2, …]")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of logs and state. [default: out/NAME]",
)
@click.option("--wait", metavar="SECONDS", help="Seconds to wait at most until it is up. [default: 600]")
@click.option("--rest", metavar="ADDRESS:PORT", help="Where REST can be reached from outside the fabric.")
@click.option(
    "--p4runtime",
    metavar="ADDRESS:PORT",
    help="Where P4Runtime of the first switch can be reached from outside; each further switch has the next port.",
)
@click.option("--cli", "prompt", is_flag=True, help="Open Mininet's prompt; the fabric ends with it.")
@click.pass_context
def up(context: click.Context, /, **options: Any) -> int | None:
    """Bring a fabric up in Mininet, as root, and keep it until Ctrl-C.

    With HOST COMMAND that runs on one host, and the fabric ends with it. Meanwhile, in another terminal,
    `wormcast on HOST COMMAND` runs commands on hosts, and these change the fabric:

    \b
    wormcast up stop s1              also h3 (its agent) and controller
    wormcast up start s1             what was stopped, or has ended
    wormcast up cut s0 s1            the link between them
    wormcast up mend s0 s1
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return None

    def run() -> int:
        from wormcast.mininet import keep

        return keep.run(keep.Wanted(**options))

    return _refused(run)


def _refuse_options(context: click.Context) -> None:
    """Options of a new fabric have no place before a command on one that is up."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is click.core.ParameterSource.COMMANDLINE:
            name, option = context.invoked_subcommand, parameter.opts[0]
            where = (
                f"; write it behind: wormcast up {name} {option} …" if option in ("--name", "--out") else ""
            )
            raise Refusal(
                f"{option} is for a new fabric, and {name} is about one that is up{where}", value=option
            )


for one in (start, stop, cut, mend):
    up.add_command(one)


@click.command(
    cls=OnHost, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@fabric_choice
@click.argument("host", shell_complete=complete_host)
@click.argument(
    "command",
    nargs=-1,
    type=click.UNPROCESSED,
    required=True,
    metavar="COMMAND [ARG …]",
    shell_complete=complete_command,
)
def on(name: str | None, out: Path | None, host: str, command: tuple[str, ...]) -> int:
    """Run a command on a host of a fabric that `wormcast up` keeps up.

    \b
    wormcast on h0 wormcast status
    wormcast on h3 bash
    """
    words = command[1:] if command[0] == "--" else command
    if not words:
        raise Refusal(f"there is no command for {host}; for example: wormcast on {host} wormcast status")

    def run() -> int:
        from wormcast.mininet import on_host

        on_host.run(name, out, host, words)

    return _refused(run)


@click.command()
@_fabric_options
@click.option("--rate", help=f"Rate of every link in Mb/s, or none (no limit). {DEMO_RATES}")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File to send, instead of random bytes.",
)
@click.option("--size", help="Size of the random file. [default: 64MiB; 4MiB on BMv2]")
@click.option(
    "--schemes",
    shell_complete=complete_schemes,
    help="Schemes to run, with commas between them. [default: all]",
)
@click.option("--source", type=int, default=0, show_default=True, help="Id of the host that sends.")
@click.option(
    "--cut", type=click.Choice(["auto"]), help="Cut a link between switches in the middle of each transfer."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Directory of the report.",
)
def demo(**options: Any) -> int:
    """Send a file from one host to all others through P4 switches, under every scheme, as root.

    Brings a fabric up in Mininet, makes a group over REST, sends the file, measures, and writes
    report.md, report.json and pictures. The exit code is 0 only if every receiver got the same bytes.
    """

    def run() -> int:
        from wormcast.mininet import demo as demonstration

        return demonstration.run(demonstration.Wanted(**options))

    return _refused(run)
