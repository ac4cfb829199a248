"""`wormcast schema`."""

from __future__ import annotations

import json

import click

from wormcast.cli.refusal import Refusal
from wormcast.routing import schemas


def _complete_kind(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    return [kind for kind in schemas.kinds() if kind.startswith(incomplete)]


@click.command()
@click.argument("kind", required=False, shell_complete=_complete_kind)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the list too.")
def schema(kind: str | None, as_json: bool) -> None:
    """Print the JSON Schema of a KIND of file or answer, or list the kinds.

    \b
    wormcast schema topology > topology.schema.json
    """
    if kind is None and as_json:
        titles = [{"kind": name, "title": schemas.load(name).get("title", "")} for name in schemas.kinds()]
        click.echo(json.dumps({"schemas": titles}, indent=2))
        return
    if kind is None:
        for name in schemas.kinds():
            click.echo(f"{name:12} {schemas.load(name).get('title', '')}".rstrip())
        return
    if kind not in schemas.kinds():
        names = schemas.kinds()
        raise Refusal(
            f"there is no schema {kind!r}; schemas are {', '.join(names)}",
            code="not-found",
            value=kind,
            choices=names,
        )
    click.echo(schemas.text(kind), nl=False)
