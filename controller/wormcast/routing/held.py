"""Worms that hold channels in running switches (wire/SPEC.md §3.1), and whether they wait in a circle.

What switches remember is in registers (`p4src/v1model/channels.p4`). A worm whose head waits needs an output that
another worm has. Where such waits close a circle, and no frame of its worms has left any switch between two readings,
nothing in it will move again: a branch that waits stops all other branches of its worm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wormcast.wire import ROOT_TURN

Json = dict[str, Any]
Registers = Mapping[str, Mapping[int, int]]
"""The cells of each register of `REGISTERS` of one switch, by port."""

REGISTERS = (
    "channel_came",
    "channel_gone",
    "channel_state",
    "channel_worm",
    "channel_outputs",
    "channel_place",
    "channel_line",
    "output_owner",
)
CLAIMING, OPEN = 1, 2
"""Of `channel_state_t`: the head waits for outputs; the frames behind the head follow."""
COUNT_BITS = 16
"""Of `channel_came` and `channel_gone`."""


class Worm(NamedTuple):
    """Which worm: its source and its sequence."""

    source: int
    sequence: int


@dataclass(frozen=True)
class Channel:
    """A port by which a worm came into a switch, the outputs it has there, and the one it waits for."""

    switch: int
    port: int
    worm: Worm
    is_open: bool
    outputs: tuple[int, ...]
    waiting: int
    """Frames that are at the switch and have not left."""
    gone: int
    """Frames that have left, modulo 2^16."""
    needs: int | None = None
    held_by: Worm | None = None
    """Who has the output that it needs."""


class Wait(NamedTuple):
    """A worm waits at a switch, where it came in by `port`, for output `needs`, which another worm has."""

    switch: int
    port: int
    worm: Worm
    needs: int
    held_by: Worm


def channels_of(switch: int, registers: Registers) -> list[Channel]:
    """The channels of a switch that a worm has now, by port."""
    found = []
    states, worms = registers["channel_state"], registers["channel_worm"]
    for port, state in sorted(states.items()):
        if state not in (CLAIMING, OPEN):
            continue
        gone = registers["channel_gone"][port]
        needs, held_by = None, None
        if state == CLAIMING and registers["channel_place"][port]:
            needs = registers["channel_line"][port]
            # The owner that is written down may have left the output; its own set says whether it has it.
            owner = registers["output_owner"].get(needs, 0) - 1
            if owner != port and registers["channel_outputs"].get(owner, 0) >> needs & 1:
                held_by = _worm(worms[owner])
        outputs = registers["channel_outputs"][port]
        found.append(
            Channel(
                switch,
                port,
                _worm(worms[port]),
                state == OPEN,
                tuple(bit for bit in range(outputs.bit_length()) if outputs >> bit & 1),
                (registers["channel_came"][port] - gone) % (1 << COUNT_BITS),
                gone,
                needs,
                held_by,
            )
        )
    return found


def _worm(number: int) -> Worm:
    return Worm(number >> 16, number & 0xFFFF)


def waits_of(channels: Iterable[Channel]) -> list[Wait]:
    """The waits for outputs that others have."""
    return [
        Wait(one.switch, one.port, one.worm, one.needs, one.held_by)
        for one in channels
        if one.needs is not None and one.held_by is not None
    ]


def find_stuck(before: Sequence[Channel], after: Sequence[Channel]) -> list[Wait]:
    """A shortest circle of waits that is in two readings, of worms that had no frame leave a switch in between; empty
    where there is none. Each wait is for the worm of the next, that of the last for the first."""
    moved = {one.worm for one in set(_places(before)) ^ set(_places(after))}
    both = set(waits_of(before)) & set(waits_of(after))
    return find_circle(wait for wait in sorted(both) if not {wait.worm, wait.held_by} & moved)


class _Place(NamedTuple):
    switch: int
    port: int
    worm: Worm
    gone: int


def _places(channels: Iterable[Channel]) -> list[_Place]:
    return [_Place(one.switch, one.port, one.worm, one.gone) for one in channels]


def find_circle(waits: Iterable[Wait]) -> list[Wait]:
    """A shortest circle of waits; empty where there is none."""
    by_worm: dict[Worm, list[Wait]] = {}
    for wait in waits:
        by_worm.setdefault(wait.worm, []).append(wait)
    circles = (_circle_through(worm, by_worm) for worm in sorted(by_worm))
    return min((circle for circle in circles if circle), key=len, default=[])


def _circle_through(first: Worm, by_worm: Mapping[Worm, list[Wait]]) -> list[Wait]:
    ways: dict[Worm, list[Wait]] = {first: []}
    queue = deque([first])
    while queue:
        worm = queue.popleft()
        for wait in by_worm.get(worm, []):
            way = [*ways[worm], wait]
            if wait.held_by == first:
                return way
            if wait.held_by not in ways:
                ways[wait.held_by] = way
                queue.append(wait.held_by)
    return []


def held_json(channels: Iterable[Channel], circle: Sequence[Wait]) -> Json:
    """The answer of `wormcast worms`."""
    return {
        "stuck": bool(circle),
        "cycle": [
            {
                "worm": wait.worm._asdict(),
                "switch": wait.switch,
                "came_by": wait.port,
                "needs": wait.needs,
                "held_by": wait.held_by._asdict(),
            }
            for wait in circle
        ],
        "channels": [
            {
                "switch": one.switch,
                "port": one.port,
                "worm": one.worm._asdict(),
                "outputs": list(one.outputs),
                "waiting": one.waiting,
                **({} if one.needs is None else {"needs": one.needs}),
                **({} if one.held_by is None else {"held_by": one.held_by._asdict()}),
            }
            for one in channels
        ],
    }


def explain_held(answer: Json, topology: Json) -> str:
    """The answer for people: every channel, and the circle if there is one."""
    where = _Where(topology)
    lines = []
    for one in answer["channels"]:
        outputs = ", ".join(where.port(one["switch"], port) for port in one["outputs"]) or "no output"
        text = f"{_name(one['worm'])} at {where.switch(one['switch'])}: has {outputs}"
        if "needs" in one:
            text += f", waits for {where.port(one['switch'], one['needs'])}"
        lines.append(f"{text}; {one['waiting']} frames wait")
    if not answer["stuck"]:
        lines.append("no worms wait in a circle" if lines else "no worm holds a channel")
    else:
        lines.append(f"stuck: {len(answer['cycle'])} worms wait in a circle")
    for wait in answer["cycle"]:
        needed = where.port(wait["switch"], wait["needs"])
        text = f"  {_name(wait['worm'])} waits at {where.switch(wait['switch'])} for {needed}"
        lines.append(f"{text}, which {_name(wait['held_by'])} has")
    return "\n".join(lines) + "\n"


def _name(worm: Json) -> str:
    return f"worm {worm['sequence']} of host {worm['source']}"


class _Where:
    """Names of switches, and what their ports lead to."""

    def __init__(self, topology: Json) -> None:
        self._names = {one["id"]: one.get("name", f"s{one['id']}") for one in topology["switches"]}
        hosts = {one["id"]: one.get("name", f"h{one['id']}") for one in topology["hosts"]}
        self._behind = {(one["switch"], one["port"]): hosts[one["id"]] for one in topology["hosts"]}
        for link in topology["links"]:
            self._behind[link["a"], link["a_port"]] = self.switch(link["b"])
            self._behind[link["b"], link["b_port"]] = self.switch(link["a"])

    def switch(self, number: int) -> str:
        return str(self._names.get(number, f"s{number}"))

    def port(self, switch: int, port: int) -> str:
        if port == ROOT_TURN:
            return "its turn at the root"
        behind = self._behind.get((switch, port))
        return f"port {port}" + ("" if behind is None else f" to {behind}")
