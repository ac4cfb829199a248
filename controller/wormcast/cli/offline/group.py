"""`wormcast group plan` on a topology file."""

from __future__ import annotations

import sys
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
from wormcast.cli.offline.costs import auto_options
from wormcast.cli.offline.group_table import group_table


@click.command("plan")
@click.argument("hosts", type=ID_RANGE, nargs=-1, metavar="[HOST]...")
@click.option("--members", callback=host_list, help="Members, as in 1,5,9, or as arguments.")
@click.option("--source", type=ID_RANGE, help="Host that sends. [default: the lowest member]")
@click.option("--scheme", help=f"auto, {', '.join(plan.schemes())}. [default: k-binomial]")
@click.option("--packets", type=int, help="Packets of a message. [default: 1]")
@click.option("--bytes", type=int, help="Bytes of a message, in place of --packets.")
@click.option("--payload", type=int, help="Bytes of a message that a packet carries. [default: 1444]")
@click.option(
    "--k", type=int, help="k-binomial: most children of a host. [default: the best for the packets]"
)
@click.option("--fan-out", type=int, help="tree: most children of a host. [default: 3]")
@click.option("--variant", help="circuit: omit-last, return, ordered; tree: unordered, ordered.")
@click.option("--lambda", type=int, help="postal: send times until a message is received. [default: 2]")
@click.option("--r", type=int, help="mu-torus: members of a chain. [default: as many as a ring]")
@click.option("--mode", help="switch: tree, table or broadcast. [default: tree]")
@click.option("--guard", help="switch: A, B or C. [default: A]")
@click.option(
    "--group", type=int, help="switch, mode table: number of the group in the entries. [default: 0]"
)
@click.option("--order", help="id, cco, dimension, hamiltonian or random. [default: the scheme's]")
@click.option("--seed", type=int, help="Seed of --order random. [default: 0]")
@click.option("--discipline", help="fpfs (packet by packet) or fcfs (child by child). [default: fpfs]")
@click.option(
    "--routing",
    help="Unicast paths: osud, tree-only, ... or dimension-order. "
    "[default: osud; dimension-order on a unidirectional torus]",
)
@auto_options
@click.option("--metrics", is_flag=True, help="Replay the sends: contention, links, holding, latency.")
@click.option(
    "--draw",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw who sends to whom as SVG, to this file.",
)
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
    as_json: bool,
    metrics: bool,
    draw: Path | None,
    **parameters: int | str | Json | None,
) -> None:
    """Plan a group on a topology file: who sends to whom, and in how many steps.

    Prints JSON, but to a terminal a table unless --json is given.
    """
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
    group = planned(lambda: plan.group(value, request, root, metrics))
    if draw is not None:
        write_text(plan.group_svg(group), draw)
    for_people = output is None and not as_json and sys.stdout.isatty()
    write_text(group_table(group) if for_people else plan.to_text(group), output)
