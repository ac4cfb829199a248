"""Topologies by name: the testbed of the paper, tori, random irregular networks, lines, stars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wormcast import routing


def load_topology(name: str, seed: int = 1) -> dict[str, Any]:
    """A topology by name or from a file in any format of `wormcast topo convert`.

    Names are those of `wormcast topo make`: `testbed` (4 switches in a ring, 8 hosts: WORM §8),
    `torus:4`, `irregular:8:SEED` (switches of 8 ports, 4 hosts each: ITB; without a seed, `seed`), `line:4`, …
    Raises ValueError with the valid choices.
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
        return routing.read(Path(name).read_text())
    except routing.RoutingError as error:
        raise ValueError(f"topology {name}: {error}") from None
