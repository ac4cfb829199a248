"""Topologies by name: the testbed of the paper, tori, random irregular networks, lines, stars."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wormcast import routing

NAMES_SHOWN_MAX = 8
"""Names of a file that are shown beside those that the fabric gives."""


def load_topology(name: str, seed: int = 1, warn: Callable[[str], None] | None = None) -> dict[str, Any]:
    """A topology by name or from a file in any format of `wormcast topo convert`.

    Names are those of `wormcast topo make`: `testbed` (4 switches in a ring, 8 hosts: WORM §8),
    `torus:4`, `irregular:8:SEED` (switches of 8 ports, 4 hosts each: ITB; without a seed, `seed`), `line:4`, …
    Where a file of other tools has no hosts, every switch gets one. `warn` is called with that, what of the file was left
    out, and that nodes have other names than in it. Raises ValueError with the valid choices.
    """
    if Path(name).is_dir():
        raise ValueError(f"topology {name} is a directory; name a file in it, or a kind such as torus:3")
    if not name.endswith(".json") and not Path(name).is_file():
        kind, _, size = name.partition(":")
        if kind == "irregular" and size and ":" not in size:
            name = f"{name}:{seed}"
        made: dict[str, Any] = routing.make(name)
        return made
    try:
        warn_of = None if warn is None else (lambda text: warn(f"topology {name}: {text}"))
        topology = routing.read(Path(name).read_text(), give_hosts=True, warn=warn_of)
    except (routing.RoutingError, UnicodeDecodeError) as error:
        raise ValueError(f"topology {name}: {error}") from None
    if warn_of is not None and (named := _renamed(topology)):
        warn_of(f"nodes are called by their ids here, not as in the file: {named}")
    return topology


def tell(text: str) -> None:
    """Says what is no error, as a fabric does."""
    print(f"wormcast: {text}", file=sys.stderr, flush=True)


def _renamed(topology: dict[str, Any]) -> str:
    """What nodes with names of their own are called in a fabric."""
    nodes = [("h", host) for host in topology["hosts"]] + [("s", switch) for switch in topology["switches"]]
    pairs = [
        f"{letter}{node['id']} is {node['name']}"
        for letter, node in nodes
        if node.get("name", f"{letter}{node['id']}") != f"{letter}{node['id']}"
    ]
    more = f" and {len(pairs) - NAMES_SHOWN_MAX} more" if len(pairs) > NAMES_SHOWN_MAX else ""
    return ", ".join(pairs[:NAMES_SHOWN_MAX]) + more
