"""`wormcast schema`."""

from __future__ import annotations

import click

from wormcast.plan import schemas


def _complete_kind(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    return [kind for kind in schemas.kinds() if kind.startswith(incomplete)]


@click.command()
@click.argument("kind", required=False, shell_complete=_complete_kind)
def schema(kind: str | None) -> None:
    """Print the JSON Schema of a KIND of file or answer, or list the kinds.

    \b
    wormcast schema topology > topology.schema.json
    """
    if kind is None:
        for name in schemas.kinds():
            click.echo(f"{name:12} {schemas.load(name).get('title', '')}".rstrip())
        return
    if kind not in schemas.kinds():
        raise click.BadParameter(f"there is no schema {kind!r}; schemas are {', '.join(schemas.kinds())}")
    click.echo(schemas.text(kind), nl=False)
