"""`wormcast group plan` on a topology file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from wormcast import plan
from wormcast.cli.offline.common import (
    ID_RANGE,
    Json,
    file_options,
    host_list,
    planned,
    read_json,
    read_topology,
    refuse_without_effect,
    write_text,
)
from wormcast.cli.offline.costs import auto_options
from wormcast.cli.offline.group_table import group_table
from wormcast.cli.refusal import Refusal

AUTO_ALONE = ("tables", "total_order", "among", "costs")
AUTO = ("packets", "bytes", "payload", "discipline", "routing", *AUTO_ALONE)
"""Parameters of scheme auto; it chooses the others."""


def _complete_scheme(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    return [name for name in ("auto", *plan.schemes()) if name.startswith(incomplete)]


@click.command("plan")
@click.argument("hosts", type=ID_RANGE, nargs=-1, metavar="[HOST]...")
@click.option("--members", callback=host_list, help="Members, as in 1,5,9, or as arguments.")
@click.option("--source", type=ID_RANGE, help="Host that sends. [default: the lowest member]")
@click.option(
    "--scheme",
    help=f"auto, {', '.join(plan.schemes())}. [default: k-binomial]",
    shell_complete=_complete_scheme,
)
@click.option("--packets", type=int, help="Packets of a message. [default: 1]")
@click.option("--bytes", type=int, help="Bytes of a message, in place of --packets.")
@click.option("--payload", type=int, help="Bytes of a message that a packet carries. [default: 1444]")
@click.option(
    "--k",
    type=click.IntRange(min=1),
    help="k-binomial: most children of a host. [default: the best for the packets]",
)
@click.option("--fan-out", type=int, help="tree: most children of a host. [default: 3]")
@click.option("--variant", help="circuit: omit-last, return, ordered; tree: unordered, ordered.")
@click.option("--lambda", type=int, help="postal: send times until a message is received. [default: 2]")
@click.option("--r", type=int, help="mu-torus: members of a chain. [default: as many as a ring]")
@click.option("--mode", help="switch: tree, table or broadcast. [default: tree]")
@click.option("--guard", help="switch: A, B or C. [default: A]")
@click.option("--group", type=int, help="switch: number of the group in a table, not 255. [default: 0]")
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
    request: Json = {} if request_path is None else read_json(request_path, "request", "group")
    if hosts or members:
        request["members"] = [*hosts, *members]
    if scheme is not None or "scheme" not in request:
        request["scheme"] = scheme or "k-binomial"
    given = {name: value for name, value in parameters.items() if value is not None}
    if given:
        known = request.get("parameters") or {}
        if not isinstance(known, dict):
            raise Refusal(f"parameters of request {request_path} are not an object", code="wrong-type")
        request["parameters"] = {**known, **given}
    if not request.get("members"):
        raise Refusal("no members; name them as arguments, with --members or in --request")
    if source is not None or "source" not in request:
        request["source"] = _lowest(request["members"]) if source is None else source
    value = read_topology(topology)
    _refuse_foreign(request, given)
    group = planned(lambda: plan.group(value, request, root, metrics))
    _refuse_needless(request, given, group["parameters"])
    if draw is not None:
        write_text(plan.group_svg(group), draw)
    for_people = output is None and not as_json and sys.stdout.isatty()
    write_text(group_table(group) if for_people else plan.to_text(group), output)


def _lowest(members: object) -> int:
    if not isinstance(members, list) or not all(type(member) is int for member in members):
        raise Refusal("members of the request are not a list of host ids", code="wrong-type")
    return int(min(members))


def _refuse_foreign(request: Json, given: Json) -> None:
    """Refuses what `auto` chooses by itself, and what only `auto` understands."""
    scheme = request["scheme"]
    for name, value in given.items():
        if scheme == "auto" and name not in AUTO:
            refuse_without_effect(_option(name), value, f"with scheme auto; with effect are {_options(AUTO)}")
        if scheme in plan.schemes() and name in AUTO_ALONE:
            refuse_without_effect(_option(name), value, f"with scheme {scheme}; it is for scheme auto")


def _refuse_needless(request: Json, given: Json, used: Json) -> None:
    """Refuses options that the plan did not go by: it names the parameters it has used."""
    if request["scheme"] == "auto":
        return
    by_bytes = request["parameters"].get("bytes") is not None if given else False
    for name, value in given.items():
        if name == "bytes" or (name == "payload" and by_bytes):
            continue
        if name == "payload":
            refuse_without_effect("--payload", value, "without --bytes")
        if name not in used or (name == "order" and used[name] != value):
            others = _options(["bytes", *used, *(["seed"] if name == "seed" else [])])
            because = "without --order random" if name == "seed" else f"with scheme {request['scheme']}"
            refuse_without_effect(_option(name), value, f"{because}; with effect are {others}")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _options(names: Iterable[str]) -> str:
    return ", ".join(sorted(map(_option, names)))
