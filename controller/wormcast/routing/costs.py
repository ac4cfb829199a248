"""What a group's messages cost: constants of hosts, links and switches, and a replay."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import wormcast_planner as native


def cost_sets() -> list[str]:
    """Names of the sets of costs: `agents` (this project's, the default), `torus`, `packet`
    and `nic` (the papers')."""
    return native.cost_sets()


def costs(of: str | Mapping[str, Any] = "agents") -> dict[str, Any]:
    """All costs of a set by name, or of a file that gives `set` and what differs from it.
    Times are in nanoseconds, rates in bits a second. Raises `RoutingError`."""
    complete: dict[str, Any] = json.loads(native.complete_costs(json.dumps(of)))
    return complete


def fit_costs(
    topology: Mapping[str, Any],
    timed: Sequence[Mapping[str, Any]],
    before: str | Mapping[str, Any] = "agents",
    root: int | None = None,
) -> dict[str, Any]:
    """The `costs` by which the estimates of `auto` come closest to messages that were timed: a list of `request`
    (any scheme but `auto`), `bytes`, `ns` until every member had confirmed, and its `error` (standard error, as a
    share). Costs that the times leave open stay as `before`. Also `found`: for each of what was looked for `names`,
    `before`, `after`, `error` (standard error), `told` (False: left open); and `estimates`: for each time
    `before_ns`, `after_ns`. Raises `RoutingError`."""
    answer = native.fit_costs(json.dumps(topology), json.dumps(before), json.dumps(timed), root)
    fitted: dict[str, Any] = json.loads(answer)
    return fitted


def replay(
    topology: Mapping[str, Any],
    request: Mapping[str, Any],
    costs: str | Mapping[str, Any] = "agents",
    root: int | None = None,
) -> dict[str, Any]:
    """Replays the message of a request (any scheme but `auto`) link by link:
    `completion_us`, `start_up_us`, when each of the `members` had it, and of the `channels`
    how long they were busy and the most bytes that waited. Raises `RoutingError`."""
    answer = native.replay_group(json.dumps(topology), json.dumps(request), json.dumps(costs), root)
    replayed: dict[str, Any] = json.loads(answer)
    return replayed
