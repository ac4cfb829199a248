"""`wormcast group plan` on a topology file."""

from __future__ import annotations

from pathlib import Path

import click

from wormcast import plan
from wormcast.cli.offline.common import (
    ID_RANGE,
    Json,
    RefusedInput,
    file_options,
    host_list,
    planned,
    read_json,
    read_topology,
    write_text,
)


@click.command("plan")
@click.argument("hosts", type=ID_RANGE, nargs=-1, metavar="[HOST]...")
@click.option("--members", callback=host_list, help="Members, as in 1,5,9, or as arguments.")
@click.option("--source", type=ID_RANGE, help="Host that sends. [default: the lowest member]")
@click.option("--scheme", help="repeat, circuit, tree, k-binomial or switch. [default: k-binomial]")
@click.option("--k", type=int, help="k-binomial: most children of a host. [default: the best for --packets]")
@click.option("--packets", type=int, help="Packets of a message. [default: 1]")
@click.option("--fan-out", type=int, help="tree: most children of a host. [default: 3]")
@click.option("--variant", help="circuit: omit-last, return, ordered; tree: unordered, ordered.")
@click.option("--order", help="id, cco or dimension. [default: cco for k-binomial, else id]")
@click.option("--request", "request_path", type=Path, help="File with scheme, source, members, parameters.")
@file_options
def group_plan(
    hosts: tuple[int, ...],
    members: list[int],
    source: int | None,
    scheme: str | None,
    request_path: Path | None,
    topology: str,
    root: int | None,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
    **parameters: int | str | None,
) -> None:
    """Plan a group on a topology file: who sends to whom, and in how many steps."""
    request: Json = {} if request_path is None else read_json(request_path, "request")
    if hosts or members:
        request["members"] = [*hosts, *members]
    if scheme is not None or "scheme" not in request:
        request["scheme"] = scheme or "k-binomial"
    given = {name: value for name, value in parameters.items() if value is not None}
    if given:
        request["parameters"] = {**(request.get("parameters") or {}), **given}
    if not request.get("members"):
        raise RefusedInput("no members; name them as arguments, with --members or in --request")
    if source is not None or "source" not in request:
        request["source"] = min(request["members"]) if source is None else source
    value = read_topology(topology)
    write_text(plan.to_text(planned(lambda: plan.group(value, request, root))), output)
