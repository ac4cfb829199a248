"""The pictures of the pages, drawn from plans and routes when the site is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wormcast import pictures, routing


def _network(spec: str) -> Callable[[], str]:
    return lambda: pictures.svg(routing.make(spec))


def _group(spec: str, scheme: str, members: list[int], source: int, **parameters: Any) -> Callable[[], str]:
    def draw() -> str:
        topology = routing.make(spec)
        request = {"scheme": scheme, "source": source, "members": members, "parameters": parameters}
        return pictures.svg(topology, group=routing.group(topology, request))

    return draw


def _routes(spec: str, pairs: list[tuple[int, int]], algorithm: str) -> Callable[[], str]:
    def draw() -> str:
        topology = routing.make(spec)
        routes = [routing.route(topology, src, dst, algorithm) for src, dst in pairs]
        return pictures.svg(topology, routes=routes)

    return draw


EVERYONE = list(range(8))
PICTURES: Mapping[str, Callable[[], str]] = {
    "testbed": _network("testbed"),
    "circuit": _group("testbed", "circuit", EVERYONE, 3),
    "tree": _group("testbed", "tree", EVERYONE, 0),
    "switch": _group("testbed", "switch", EVERYONE, 0),
    "binomial": _group("testbed", "k-binomial", EVERYONE, 0, packets=1),
    "chain": _group("testbed", "k-binomial", EVERYONE, 0, packets=64),
    "u-torus": _group("unidirectional-torus:4", "u-torus", list(range(0, 16, 2)), 0),
    "md-torus": _group("unidirectional-torus:4", "md-torus", list(range(0, 16, 2)), 0),
    "postal": _group("star:9", "postal", list(range(9)), 0, **{"lambda": 3}),
    "osud": _routes("irregular:16:1", [(63, 31)], "osud"),
    "omit": _routes("irregular:16:1", [(63, 31)], "omit"),
}
