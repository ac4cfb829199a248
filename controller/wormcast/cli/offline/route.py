"""`wormcast route` on a topology file."""

from __future__ import annotations

from pathlib import Path

import click

from wormcast import plan
from wormcast.cli.offline.common import (
    ID_RANGE,
    RefusedInput,
    file_options,
    planned,
    read_topology,
    write_text,
)


@click.command("route")
@click.argument("src", type=ID_RANGE, required=False)
@click.argument("dst", type=ID_RANGE, required=False)
@click.option("--algorithm", default="osud", show_default=True, help="osud or tree-only.")
@file_options
def route(
    src: int | None,
    dst: int | None,
    algorithm: str,
    topology: str,
    root: int | None,
    output: Path | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Plan source routes on a topology file: from host SRC, to host DST, or all."""
    value = read_topology(topology)
    routes = planned(lambda: plan.routes(value, algorithm, root))
    hosts = {host["id"] for host in value["hosts"]}
    for host in (src, dst):
        if host is not None and host not in hosts:
            raise RefusedInput(f"there is no host {host}; hosts are {', '.join(map(str, sorted(hosts)))}")
    if src is not None and dst is not None:
        planned(lambda: plan.route(value, src, dst, algorithm, root))
    for field in ("routes", "unreachable"):
        if field in routes:
            routes[field] = [
                pair for pair in routes[field] if src in (None, pair["src"]) and dst in (None, pair["dst"])
            ]
    write_text(plan.to_text(routes), output)
