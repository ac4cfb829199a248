"""Topologies by name: the testbed of the paper, tori, random irregular networks, lines, stars."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wormcast import plan


def load_topology(name: str) -> dict[str, Any]:
    """A topology by name or from a .json file.

    Names are those of `wormcast topo make`: `testbed` (4 switches in a ring, 8 hosts: WORM §8),
    `torus:4`, `irregular:8:SEED` (switches of 8 ports, 4 hosts each: ITB), `line:4`, `star:4`, …
    Raises ValueError with the valid choices.
    """
    if not name.endswith(".json"):
        made: dict[str, Any] = plan.make(name)
        return made
    try:
        topology: dict[str, Any] = json.loads(Path(name).read_text())
    except ValueError as error:
        raise ValueError(f"topology {name} is not JSON: {error}") from None
    plan.check(topology)
    return topology
