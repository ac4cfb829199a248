"""Commands that ask the controller, or work offline as soon as `--topology` is among the arguments."""

from __future__ import annotations

import importlib
from typing import Any

import click
from click.shell_completion import CompletionItem

from wormcast.cli.refusal import Refusal

OFFLINE_OPTION = "--topology"


class OnlineOrOffline(click.Command):
    """Asks the controller; with `--topology FILE` it is the command `offline` of `wormcast.cli.offline`."""

    offline = ""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Hands over to the offline form where that is asked for."""
        if any(arg == OFFLINE_OPTION or arg.startswith(f"{OFFLINE_OPTION}=") for arg in args):
            return load_offline(self.offline).make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options of both forms: `--topology` leads to the other."""
        own = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return own
        offline = load_offline(self.offline)
        known = {item.value for item in own}
        other = offline.shell_complete(click.Context(offline, resilient_parsing=True), incomplete)
        return own + [item for item in other if item.value not in known]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Says that there is an offline form."""
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(
            f"With {OFFLINE_OPTION} FILE this works without a controller and takes other options: "
            f"see '{ctx.command_path} {OFFLINE_OPTION} FILE --help'."
        )


def online_or_offline(name: str) -> type[OnlineOrOffline]:
    """The class for `@click.command(cls=...)` whose offline form has this name."""
    return type(f"OnlineOr_{name}", (OnlineOrOffline,), {"offline": name})


def load_offline(name: str) -> click.Command:
    """A command of `wormcast.cli.offline`; a clear error where the routing library is missing."""
    try:
        command = getattr(importlib.import_module("wormcast.cli.offline"), name)
    except (ImportError, AttributeError) as error:
        raise Refusal(
            f"the offline form is not available in this installation: {error}; without {OFFLINE_OPTION} "
            "the controller is asked",
            code="unsupported",
            exit_code=1,
        ) from error
    assert isinstance(command, click.Command)
    return command
