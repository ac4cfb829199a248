"""`wormcast completions`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ["bash", "zsh", "fish"]


@click.command()
@click.pass_context
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print refusals as JSON.")
def completions(context: click.Context, shell: str, as_json: bool) -> None:  # noqa: ARG001
    """Print completions for SHELL.

    For example: wormcast completions bash > /etc/bash_completion.d/wormcast
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(context.find_root().command, {}, "wormcast", "_WORMCAST_COMPLETE").source())
