"""`wormcast topo lab`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from wormcast import lab_files
from wormcast.cli.files import read_topology, write_text
from wormcast.cli.refusal import Refusal
from wormcast.cli.source import complete_topology

NAME = r"[a-z0-9][a-z0-9-]{0,31}"


def _name(context: click.Context, parameter: click.Parameter, value: str) -> str:  # noqa: ARG001
    if not re.fullmatch(NAME, value):
        raise click.BadParameter(f"{value!r} is not 1 to 32 small letters, digits and dashes")
    return value


@click.command("lab")
@click.argument("topology", metavar="FILE|KIND", shell_complete=complete_topology)
@click.option(
    "--for",
    "tool",
    type=click.Choice(["containerlab", "kathara"]),
    required=True,
    help="Whose lab it is.",
)
@click.option("--name", default="wormcast", show_default=True, callback=_name, help="Name of the lab.")
@click.option("--image", default=lab_files.IMAGE, show_default=True, help="Image of all containers.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="File to write; for kathara a folder, which must be empty or new.",
)
@click.option("--json", "as_json", is_flag=True, help="Print refusals as JSON.")
def topo_lab(topology: str, tool: str, name: str, image: str, output: Path | None, as_json: bool) -> None:  # noqa: ARG001
    """Write a lab of containers: a switch, a host or the controller in each.

    \b
    wormcast topo lab torus:3 --for containerlab -o torus.clab.yml
    containerlab deploy -t torus.clab.yml
    wormcast topo lab torus:3 --for kathara -o torus
    kathara lstart -d torus
    """
    value = read_topology(topology)
    if tool == "containerlab":
        write_text(lab_files.containerlab(value, name, image), output)
        return
    if output is None:
        raise Refusal("a lab for kathara is a folder; name it with --output")
    try:
        files = lab_files.kathara(value, name, image)
    except ValueError as error:
        raise Refusal(str(error)) from None
    wanted = "a lab for kathara takes a folder that is empty or new"
    try:
        if output.exists() and not output.is_dir():
            raise Refusal(f"{output} is a file; {wanted}", value=str(output))
        output.mkdir(parents=True, exist_ok=True)
        if any(output.iterdir()):
            raise Refusal(f"{output} is not empty; {wanted}", value=str(output))
        for file, text in files.items():
            (output / file).write_text(text)
    except OSError as error:
        raise Refusal(f"{output}: {error.strerror}", code="cannot-write") from None
