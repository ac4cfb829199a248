"""What algorithms that cut paths at hosts come to where no host re-injects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import wormcast_planner as native

_PLAIN: Final = (native.ALGORITHM_DEFAULT, "tree-only")
"""They need no host that re-injects."""
_SEVERAL: Final = "osud with several routes a pair"
_OTHERS: Final = {
    "omit": "osud with other paths of the same lengths",
    "pit": f"{_SEVERAL}, up to a link longer",
}
RUNS_AS: Final = {name: _OTHERS.get(name, _SEVERAL) for name in native.algorithms() if name not in _PLAIN}
"""Of each such algorithm, without any host that re-injects: all its paths keep to the order of switches."""


def runs_as(topology: Mapping[str, Any], algorithm: str) -> str | None:
    """What the routes of an algorithm are because no host of the topology file re-injects; None: what they should be."""
    hosts = topology["hosts"]
    cuts = not hosts or any(host.get("transit", True) for host in hosts)
    return None if cuts else RUNS_AS.get(algorithm)


def longer_routes(algorithm: str, fallback: str | None, pairs: int) -> list[str]:
    """In words, what routes lose because hosts do not re-inject; nothing if they lose nothing."""
    if fallback is not None:
        return [
            f"no host re-injects: {algorithm} runs as {fallback}; {pairs} pairs of hosts have longer routes"
        ]
    if pairs:
        return [
            f"{pairs} pairs of hosts have longer routes, because hosts that could re-inject their worms do not"
        ]
    return []
