"""Topologies by name: the testbed of the paper, tori, random irregular networks, lines, stars."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# Kind -> what its numbers mean to `wormcast topo make`, in order, with the default of each.
KINDS: dict[str, dict[str, int]] = {
    # 4 switches in a ring, 8 hosts (WORM §8)
    "testbed": {},
    "torus": {"--k": 3},
    # S switches of 8 ports, 4 hosts each, wired at random (ITB)
    "irregular": {"--switches": 8, "--seed": 1},
    "line": {"--switches": 3},
    "star": {"--switches": 4},
}


def load_topology(name: str) -> dict[str, Any]:
    """A topology by name (`testbed`, `torus:4`, `irregular:8:SEED`, `line:4`, `star:4`) or file.

    The kinds are made by `wormcast topo make`. Raises ValueError with the valid choices.
    """
    if name.endswith(".json"):
        return read_topology(Path(name))
    kind, *numbers = name.split(":")
    if kind not in KINDS:
        raise ValueError(f"topology {name!r} is not one of {', '.join(KINDS)}, nor a .json file")
    flags = KINDS[kind]
    if len(numbers) > len(flags) or not all(number.isdigit() for number in numbers):
        form = ":".join([kind, *(flag.lstrip("-").upper() for flag in flags)])
        raise ValueError(f"topology {name!r} does not have the form {form}")
    argv = [sys.executable, "-m", "wormcast.cli.main", "topo", "make", kind]
    for index, (flag, default) in enumerate(flags.items()):
        argv += [flag, numbers[index] if index < len(numbers) else str(default)]
    made = subprocess.run(argv, capture_output=True, text=True)
    if made.returncode != 0:
        raise ValueError(made.stderr.strip() or f"wormcast topo make {kind} failed")
    return _parse(made.stdout, name)


def read_topology(path: Path) -> dict[str, Any]:
    """A topology file; the controller's planner checks it further."""
    return _parse(path.read_text(), str(path))


def _parse(text: str, origin: str) -> dict[str, Any]:
    try:
        topology: dict[str, Any] = json.loads(text)
        missing = {"switches", "hosts", "links"} - set(topology)
    except (ValueError, TypeError) as error:
        raise ValueError(f"topology {origin} is not JSON: {error}") from None
    if missing:
        raise ValueError(f"topology {origin} has no {', '.join(sorted(missing))}")
    return topology
