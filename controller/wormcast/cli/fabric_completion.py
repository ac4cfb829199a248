"""Completions of commands on fabrics of `wormcast up`: names of fabrics, hosts, switches, and commands on hosts."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from wormcast.cli.rest import API_ENVIRONMENT

OURS = "wormcast"


def _meant(context: click.Context) -> tuple[int, dict[str, Any]] | None:
    """The fabric that the options mean: its first process, and what it says of itself. None: there is none."""
    from wormcast.mininet import choice, sandbox

    with contextlib.suppress(choice.NotFound, OSError, ValueError):
        name, out = context.params.get("name"), context.params.get("out")
        fabric = choice.choose(sandbox.running(), name, out, os.environ)[-1]
        return fabric.first_pid, choice.state_of(fabric)
    return None


def complete_fabric(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[CompletionItem]:
    """Names of the running fabrics."""
    from wormcast.mininet import sandbox

    names = dict.fromkeys(one.name for one in sandbox.running())
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_host(
    context: click.Context,
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[CompletionItem]:
    """Hosts of the fabric."""
    return _items(context, ["hosts"], (), incomplete)


def complete_node(
    context: click.Context,
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[CompletionItem]:
    """Switches and hosts, but for the one that is given."""
    return _items(context, ["switches", "hosts"], (context.params.get("near"),), incomplete)


def complete_part(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The same, and the controller."""
    given = context.params.get(parameter.name or "") or ()
    return _items(context, ["controller", "switches", "hosts"], given, incomplete)


def _items(context: click.Context, kinds: list[str], given: Any, incomplete: str) -> list[CompletionItem]:
    found = _meant(context)
    if found is None:
        return []
    names = [name for kind in kinds for name in found[1].get(kind, [kind])]
    return [CompletionItem(name) for name in names if name.startswith(incomplete) and name not in given]


def complete_topology(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Kinds and files."""
    from wormcast.cli.source import complete_topology as complete

    return complete(context, parameter, incomplete)


def complete_schemes(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[CompletionItem]:
    """The last of several schemes with commas between them."""
    from wormcast.network.groups import SCHEMES

    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return [
        CompletionItem(f"{before}{comma}{scheme}")
        for scheme in SCHEMES
        if scheme.startswith(last) and scheme not in given
    ]


def complete_command(
    context: click.Context,
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[CompletionItem]:
    """Of `wormcast on HOST wormcast …` what that command offers on the host; else files and `wormcast`."""
    return command_on_host(context, incomplete)


def command_on_host(context: click.Context, incomplete: str) -> list[CompletionItem]:
    given = list(context.params.get("command") or ())
    if not given:
        offered = [CompletionItem(OURS)] if incomplete and OURS.startswith(incomplete) else []
        return offered or [CompletionItem(incomplete, type="file")]
    if given[0] != OURS:
        return [CompletionItem(incomplete, type="file")]
    if (found := _meant(context)) is not None:
        first_pid, state = found
        root = f"/proc/{first_pid}/root"
        os.environ[API_ENVIRONMENT] = f"unix:{root}{state['api'].removeprefix('unix:')}"
        if (own := state["sockets"].get(context.params.get("host"))) is not None:
            os.environ["WORMCAST_SOCKET"] = f"{root}{own}"
    return ShellComplete(context.find_root().command, {}, OURS, "").get_completions(given[1:], incomplete)


class OnHost(click.Command):
    """A command whose last argument is a command on a host, with options of its own."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options: its own before the command, those of the command behind it."""
        if ctx.params.get("command"):
            return command_on_host(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)
