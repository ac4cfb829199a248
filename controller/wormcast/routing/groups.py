"""Structures over the hosts of a group."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import wormcast_planner as native


class GroupRequest(TypedDict):
    """What to plan. `parameters` are those of the schemes (k, fan_out, variant, lambda, r,
    mode, guard) and of every plan: packets, or bytes with payload; order, seed,
    discipline, routing. `shared_trees`: links of trees that are chosen already, scheme switch under guard C."""

    scheme: str
    source: int
    members: Sequence[int]
    parameters: NotRequired[Mapping[str, Any]]
    shared_trees: NotRequired[Sequence[Sequence[Mapping[str, int]]]]


def group(
    topology: Mapping[str, Any],
    request: GroupRequest | Mapping[str, Any],
    root: int | None = None,
    metrics: bool = False,
) -> dict[str, Any]:
    """The group file. With `metrics`, also what the sends cost the network: contention,
    links, what hosts hold, latency by the torus models. Raises `RoutingError`."""
    answer = native.plan_group(json.dumps(topology), json.dumps(request), root, metrics)
    planned: dict[str, Any] = json.loads(answer)
    return planned


def order(
    topology: Mapping[str, Any],
    members: Sequence[int],
    kind: str = "cco",
    root: int | None = None,
    seed: int = 0,
) -> list[int]:
    """Members in an order: "ascending" (or "id"), "cco" for irregular networks,
    "dimension" and "hamiltonian" for tori and meshes, "random" from a seed. Raises
    `RoutingError`."""
    return native.order_members(json.dumps(topology), list(members), kind, root, seed)
