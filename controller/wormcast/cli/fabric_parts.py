"""`wormcast up start`, `stop`, `cut` and `mend`: a fabric that is up, changed from another terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from wormcast.cli.fabric_completion import complete_fabric, complete_node, complete_part
from wormcast.cli.refusal import Refusal
from wormcast.cli.rest import print_json

F = TypeVar("F", bound=Callable[..., Any])


def fabric_choice(command: F) -> F:
    """Adds --name and --out, which choose a running fabric."""
    command = click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        help="Directory of the fabric, instead of its name.",
    )(command)
    return click.option(
        "--name",
        shell_complete=complete_fabric,
        help="Name of the fabric, where several run. [default: $WORMCAST_FABRIC, or the newest]",
    )(command)


def _options(command: F) -> F:
    command = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")(command)
    return fabric_choice(command)


@click.command()
@click.argument("parts", metavar="PART…", nargs=-1, required=True, shell_complete=complete_part)
@_options
def start(parts: tuple[str, ...], name: str | None, out: Path | None, as_json: bool) -> None:
    """Start agents, switches or the controller that have ended or were stopped.

    PART is a host (h3: its agent), a switch (s1) or the word controller. A switch comes back empty; the controller
    fills it.
    """
    _change("start", parts, name, out, as_json)


@click.command()
@click.argument("parts", metavar="PART…", nargs=-1, required=True, shell_complete=complete_part)
@_options
def stop(parts: tuple[str, ...], name: str | None, out: Path | None, as_json: bool) -> None:
    """Stop agents, switches or the controller; `start` brings them back.

    PART is a host (h3: its agent), a switch (s1) or the word controller.
    """
    _change("stop", parts, name, out, as_json)


@click.command()
@click.argument("near", metavar="NODE", shell_complete=complete_node)
@click.argument("far", metavar="NODE", shell_complete=complete_node)
@_options
def cut(near: str, far: str, name: str | None, out: Path | None, as_json: bool) -> None:
    """Cut the link between two nodes; `mend` brings it back.

    NODE is a switch (s1) or a host (h3). Of several links between two switches all are cut, or the one at a port:
    wormcast up cut s0:4 s1
    """
    _change("cut", (near, far), name, out, as_json)


@click.command()
@click.argument("near", metavar="NODE", shell_complete=complete_node)
@click.argument("far", metavar="NODE", shell_complete=complete_node)
@_options
def mend(near: str, far: str, name: str | None, out: Path | None, as_json: bool) -> None:
    """Mend the link between two nodes that `cut` has cut."""
    _change("mend", (near, far), name, out, as_json)


def _change(do: str, names: Sequence[str], name: str | None, out: Path | None, as_json: bool) -> None:
    from wormcast.mininet import choice, control

    try:
        fabric = choice.find(name, out)
        answer = control.ask(fabric, choice.state_of(fabric), do, names)
    except choice.NotFound as error:
        raise Refusal(str(error), code="not-found") from None
    except OSError as error:
        raise Refusal(
            f"the fabric {fabric.name!r} does not answer: {error.strerror or error}", code="unavailable"
        ) from None
    if (refused := answer.get("error")) is not None:
        fields = {field: refused.get(field) for field in ("value", "choices")}
        raise Refusal(refused["message"], code=refused["code"], **fields)
    if as_json:
        print_json(answer)
        return
    for done, parts in answer.items():
        for part in parts:
            click.echo(f"{part if isinstance(part, str) else _link(part)} {done}")


def _link(link: dict[str, Any]) -> str:
    far = link["b"] + (f":{link['b_port']}" if "b_port" in link else "")
    return f"{link['a']}:{link['a_port']} - {far}"
