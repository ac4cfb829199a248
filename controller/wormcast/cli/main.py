"""`wormcast`: every command by name, loaded when it is used, so that starting is quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from wormcast import __version__
from wormcast.cli.refusal import Commands, Refusal, describe, show, wants_json
from wormcast.exits import Exit


@dataclass(frozen=True)
class _Command:
    module: str
    attribute: str
    summary: str


_COMMANDS = {
    "controller": _Command("wormcast.cli.controller", "controller", "Run the controller."),
    "topo": _Command("wormcast.cli.topo", "topo", "Show the network, or make, convert and draw topologies."),
    "group": _Command("wormcast.cli.group", "group", "Create, list, change, plan and watch groups."),
    "host": _Command("wormcast.cli.host", "host", "List hosts, declare or limit one."),
    "guard": _Command("wormcast.guard.command", "guard", "Show or set what switches admit from hosts."),
    "switching": _Command(
        "wormcast.wormhole.command", "switching", "Show or set packet or wormhole mode of the switches."
    ),
    "routing": _Command("wormcast.cli.routing", "routing", "Show or set the routes of the fabric."),
    "route": _Command("wormcast.cli.route", "route", "Show source routes."),
    "balance": _Command("wormcast.cli.balance", "balance", "Report and balance channel loads."),
    "verify": _Command("wormcast.cli.verify", "verify", "Check routes for deadlock."),
    "change": _Command("wormcast.cli.change", "change", "Plan a change of routes without deadlock."),
    "schema": _Command("wormcast.cli.schema", "schema", "Print the JSON Schemas of files and answers."),
    "worms": _Command(
        "wormcast.cli.worms", "worms", "Show worms that hold channels, and whether they are stuck."
    ),
    "trace": _Command("wormcast.trace.command", "trace", "Show the ways of worms, hop by hop."),
    "costs": _Command("wormcast.cli.costs", "costs", "Print the costs that scheme auto goes by."),
    "transfers": _Command("wormcast.transfers.command", "transfers", "List files sent, and who has them."),
    "events": _Command("wormcast.cli.events", "events", "Follow what happens in the fabric."),
    "send": _Command("wormcast.cli.transfer", "send", "Send a file to a group."),
    "recv": _Command("wormcast.cli.transfer", "recv", "Receive files of a group."),
    "receive": _Command("wormcast.receive.command", "receive", "Receive files as a service."),
    "status": _Command("wormcast.cli.transfer", "status", "Show what the agent of this host does."),
    "up": _Command("wormcast.cli.fabric", "up", "Bring a fabric up in Mininet."),
    "on": _Command("wormcast.cli.fabric", "on", "Run a command on a host of such a fabric."),
    "demo": _Command(
        "wormcast.cli.fabric", "demo", "Send a file to all hosts of a fabric, under every scheme."
    ),
    "completions": _Command("wormcast.cli.completions", "completions", "Print completions for a shell."),
}


class LazyGroup(Commands):
    """Commands are imported when they run; the list of commands needs none of them."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        """As click's; whatever fails is refused in one form."""
        alone = options.pop("standalone_mode", True)
        run: Any = super().main
        if not alone:
            return run(args, *more, standalone_mode=False, **options)
        arguments = sys.argv[1:] if args is None else list(args)
        try:
            result = run(args, *more, standalone_mode=False, **options)
        except Exception as error:
            refusal = describe(error)
            show(refusal, wants_json(arguments))
            sys.exit(refusal.exit_code)
        sys.exit(result if isinstance(result, int) else Exit.DONE)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names, in the order of the help text."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = _COMMANDS.get(cmd_name)
        if entry is None:
            return None
        try:
            command = getattr(importlib.import_module(entry.module), entry.attribute)
        except (ImportError, AttributeError) as error:
            raise Refusal(
                f"'{cmd_name}' is not available in this installation: {error}; the other commands are",
                code="unsupported",
            ) from error
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Lists the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="wormcast")
def main() -> None:
    """Reliable multicast on programmable Ethernet."""


if __name__ == "__main__":
    sys.exit(main())
