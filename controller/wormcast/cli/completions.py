"""`wormcast completions`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ["bash", "zsh", "fish"]


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completions(shell: str) -> None:
    """Print completions for SHELL.

    For example: wormcast completions bash > /etc/bash_completion.d/wormcast
    """
    from wormcast.cli.main import main

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "wormcast", "_WORMCAST_COMPLETE").source())
