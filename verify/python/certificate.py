"""Whether a certificate holds: an order of channels and buffers that every worm follows.

Knows nothing of how the order was found: walks the ports of every route and group itself.
The models are those of `wormcast verify`; see `wormcast_verify::deadlock`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wormcast.verify.crossings import find_crossing
from wormcast.verify.worms import Json, Network, Step, Violation, resource_name


def check(topology: Json, routes: Json | None, groups: Sequence[Json], certificate: Json) -> dict[str, int]:
    """Counts the "worms" and "steps" that keep to the order of a verify file; "routes" may
    be None if no group needs any. Raises `Violation` if a worm does not, or, with branches
    that stop each other, if worms can wait for each other across branches, which no order
    shows; `ValueError` if a file cannot be read or is of another topology."""
    try:
        return _check(topology, routes or {"routes": []}, groups, certificate)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        text = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"the files do not fit together: {text}") from error


def _check(topology: Json, routes: Json, groups: Sequence[Json], certificate: Json) -> dict[str, int]:
    if not certificate["deadlock_free"]:
        raise ValueError("this file shows a deadlock; only a deadlock_free one holds an order")
    model = certificate["model"]
    places: dict[str, int] = {}
    for place, entry in enumerate(certificate["order"]):
        if places.setdefault(resource_name(entry), place) != place:
            raise Violation("the order", resource_name(entry), resource_name(entry), "is there twice")
    network = Network(topology, model, [e["turn"]["switch"] for e in certificate["order"] if "turn" in e])
    plain = list(_plain_steps(network, routes, groups))
    trees = [tree for group in groups for tree in network.multicasts(group)]
    for step in plain + [step for tree in trees for step in tree.steps()]:
        for name in (step.held, step.needed):
            if name not in places:
                raise Violation(step.worm, step.held, step.needed, f"{name} is not in the order")
        if places[step.held] >= places[step.needed]:
            raise Violation(step.worm, step.held, step.needed, "the order has them the other way round")
    if model["branching"] in ("coupled", "flushed"):
        find_crossing(plain, trees, flushes=model["branching"] == "flushed")
    return {"worms": len({step.worm for step in plain}) + len(trees), "steps": len(plain)}


def _plain_steps(network: Network, routes: Json, groups: Sequence[Json]) -> Iterator[Step]:
    by_pair: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for route in routes["routes"]:
        by_pair.setdefault((route["src"], route["dst"]), []).append(route)
        yield from network.message(f"unicast {route['src']} to {route['dst']}", route, None, None)
    for group in groups:
        source, held = group["source"], {group["source"]: 1}
        for edge in sorted(group.get("edges") or [], key=lambda edge: edge.get("step", 0)):
            pair = (edge["from"], edge["to"])
            if pair not in by_pair or edge["from"] not in held:
                raise ValueError(f"host {pair[0]} has no route to host {pair[1]}, or nothing to forward")
            name = f"message of {source} from {pair[0]} to {pair[1]}"
            for route in by_pair[pair]:
                yield from network.message(name, route, held[edge["from"]], edge["class"])
            held[edge["to"]] = edge["class"]
        if group.get("relay"):
            yield from network.relayed(source, group["relay"])
