"""The deadlock check."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import wormcast_planner as native
from wormcast.verify.foreign import channel_name, checked_lines, packet_name
from wormcast.verify.ring import draw_ring, hops_of


def verify(
    topology: Mapping[str, Any],
    routes: Mapping[str, Any] | None = None,
    *,
    algorithm: str | None = None,
    trees: Iterable[tuple[int, bytes]] = (),
    branching: str = "independent",
    root: int | None = None,
    groups: Sequence[Mapping[str, Any]] = (),
    buffers: str = "spill",
    forwarding: str = "store",
    balanced: bool = False,
) -> dict[str, Any]:
    """The verify file for the routes of a file, those of an algorithm, TREE routes
    (source, route) and planned groups, all taken together. Groups that hosts forward go
    over the routes given.

    `branching` says what a worm that branches does while one branch is blocked (WORM §3):
    "independent", the others go on (packet mode); "coupled" or "A", they stop and hold
    their channels; "interrupted" or "B", they give them up and resume as fragments, and
    every multicast starts at the root; "flushed" or "C", as A, but unicast worms that
    they block are flushed. `buffers` says what hosts that pass worms on have: "spill",
    host memory without end; "classes", two finite classes (WORM §4); "shared", one finite
    pool. `forwarding` says what a worm does that finds no buffer: "store", it is refused
    and sent again; "cut-through", it waits with its channels. Raises `RoutingError`.
    """
    file = None if routes is None else json.dumps(routes)
    plans = [json.dumps(groups[0] if len(groups) == 1 else list(groups))] if groups else []
    answer = native.verify(
        json.dumps(topology),
        file,
        algorithm,
        list(trees),
        branching,
        root,
        plans,
        buffers,
        forwarding,
        balanced,
    )
    verdict: dict[str, Any] = json.loads(answer)
    return verdict


def trees_of(group: Mapping[str, Any]) -> list[tuple[int, bytes]]:
    """TREE routes of a group file, as `verify` takes them; none if hosts forward."""
    return [(group["source"], bytes.fromhex(part["route"])) for part in group.get("routes", [])]


def plans_of(file: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The plans in a file of groups: one plan, a list, or {"groups": [plan, …]}."""
    if isinstance(file, Mapping):
        return list(file["groups"]) if "groups" in file else [file]
    return list(file)


def explain(verdict: Mapping[str, Any]) -> str:
    """A verify file for people: who waits for whom."""
    lines = _free(verdict) if verdict["deadlock_free"] else _deadlock(verdict)
    if "model" not in verdict:
        return "\n".join([*lines, *checked_lines(verdict)]) + "\n"
    model, left_out = verdict["model"], verdict.get("groups_left_out")
    if left_out:
        lines.append(
            f"not checked: groups {', '.join(map(str, left_out))}, whose trees the controller chooses; "
            "wormcast verify without options has them"
        )
    assumed = f"branches {model['branching']}, buffers {model['buffers']}, forwarding {model['forwarding']}"
    counted = [f"{number} {name}" for name, number in verdict.get("checked", {}).items()]
    return "\n".join([*lines, assumed, *([f"checked: {', '.join(counted)}"] if counted else [])]) + "\n"


def saw_nothing(verdict: Mapping[str, Any]) -> bool:
    """Whether a verify file is about no route at all, so that it proves nothing."""
    checked = verdict.get("checked")
    if checked is None:
        return False
    counts = checked.values() if "model" in verdict else [checked.get("hops", 1)]
    return not any(counts)


def _free(verdict: Mapping[str, Any]) -> list[str]:
    if saw_nothing(verdict):
        what = "no route and no multicast" if "model" in verdict else "no packet that goes anywhere"
        return [f"nothing to check: there is {what}"]
    kinds = {kind: sum(kind in entry for entry in verdict["order"]) for kind in ("from", "buffer", "turn")}
    taken = f"{kinds['from']} channels"
    taken += f", {kinds['buffer']} buffers" if kinds["buffer"] else ""
    taken += f", {kinds['turn']} turns at the root" if kinds["turn"] else ""
    who = "worm" if "model" in verdict else "packet"
    return [f"free of deadlock: every {who} takes {taken} in one order (--json shows it)"]


def _deadlock(verdict: Mapping[str, Any]) -> list[str]:
    cycle = verdict["cycle"]
    first = f"deadlock: {len(cycle)} {'waits' if len(cycle) > 1 else 'wait'} in a circle"
    first += "" if verdict["proven"] else "; it is not proven that these worms can all be there at once"
    hops = hops_of(cycle)
    ring = [f"  {line}" for line in draw_ring(hops)] if hops else []
    return [first, *(["", *ring, ""] if ring else []), *waits(verdict)]


def waits(verdict: Mapping[str, Any]) -> list[str]:
    """Who waits for whom in the cycle of a verify file, a line each, numbered from 1."""
    cycle = verdict["cycle"]
    names = [_resource(wait["channel"]) for wait in cycle]
    width = max(map(len, names))
    lines = []
    for number, wait in enumerate(cycle, 1):
        held = f"{names[number - 1]:{width}}  held by {_worm(wait['held_by'])}"
        lines.append(f"[{number}] {held}, which waits for [{number % len(cycle) + 1}]")
    return lines


def _resource(entry: Mapping[str, Any]) -> str:
    if "buffer" in entry:
        number = entry["buffer"]["class"]
        return f"buffer of host {entry['buffer']['host']}" + ("" if number is None else f", class {number}")
    if "turn" in entry:
        return f"turn at root {entry['turn']['switch']}"
    if "node" in entry["from"]:
        return channel_name(entry)
    return f"{_end(entry['from'])} → {_end(entry['to'])}"


def _end(end: Mapping[str, int]) -> str:
    return f"host {end['host']}" if "host" in end else f"switch {end['switch']}:{end['port']}"


def _worm(worm: Mapping[str, Any]) -> str:
    if worm["kind"] == "packet":
        return packet_name(worm)
    if worm["kind"] == "unicast":
        return f"unicast {worm['src']}→{worm['dst']}"
    if worm["kind"] == "tree":
        return f"multicast of {worm['src']} to {', '.join(map(str, worm['hosts']))}"
    if worm["from"] == worm["to"]:
        return f"message of {worm['src']}, relayed by {worm['from']}"
    return f"message of {worm['src']}, forwarded {worm['from']}→{worm['to']}"
