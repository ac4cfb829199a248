"""ACKs that the reference switch gathers (SPEC.md §3.2), from the rules and not from the program."""

import struct
from dataclasses import dataclass, field, replace
from typing import Any

from oracle.codec import Worm
from wormcast.wire import (
    GATHER_ACK,
    GATHER_ANSWER,
    GATHER_KNOWN,
    GATHER_REFRESH,
    GATHER_REQUEST,
    DropReason,
)

Json = dict[str, Any]
_BODY = struct.Struct(">BBHHBBIIII")


@dataclass(frozen=True)
class Gathered:
    """The header of a GATHER worm."""

    op: int = GATHER_ACK
    flags: int = 0
    group: int = 0
    origin: int = 0
    port: int = 0
    pad: int = 0
    epoch: int = 0
    stream: int = 0
    cumulative: int = 0
    stable: int = 0

    def to_bytes(self) -> bytes:
        return _BODY.pack(*vars(self).values())

    @staticmethod
    def from_bytes(data: bytes) -> "Gathered":
        return Gathered(*_BODY.unpack(data))

    @property
    def life(self) -> tuple[int, int, int, int]:
        """What all that a slot holds belongs to."""
        return (self.group, self.origin, self.epoch, self.stream)


@dataclass
class Slot:
    """What a switch holds of one tree: by branch, the highest that it has heard."""

    life: tuple[int, int, int, int]
    cumulative: dict[int, int] = field(default_factory=dict)
    stable: dict[int, int] = field(default_factory=dict)
    told: tuple[int, int] | None = None


def before(a: int, b: int) -> bool:
    """Whether a number is before another, modulo 2^32 (RFC 1982)."""
    return (a - b) % 2**32 >= 2**31


def least(numbers: dict[int, int], start: int) -> int:
    """The first of numbers modulo 2^32, none of which is far from `start`."""
    found = start
    for branch in sorted(numbers):
        found = numbers[branch] if before(numbers[branch], found) else found
    return found


class ReferenceGather:
    """Gathers by the entries of a state."""

    def __init__(self, tables: dict[str, list[Json]]) -> None:
        self.rows = {
            (entry["key"]["group"], entry["key"]["origin"], entry["key"]["port"]): entry["parameters"]
            for entry in tables.get("ingress.gather", [])
        }
        self.slots: dict[int, Slot] = {}

    def take(self, worm: Worm, ingress_port: int) -> Worm | DropReason | None:
        """What goes on, with a route of one port; why it is dropped; or None where nothing goes on."""
        said = Gathered.from_bytes(worm.gather)
        about = said.port if said.op == GATHER_REQUEST else ingress_port
        row = self.rows.get((said.group, said.origin, about))
        if row is None or said.op not in (GATHER_ACK, GATHER_REQUEST, GATHER_ANSWER):
            return DropReason.GATHER_UNKNOWN
        if said.op != GATHER_REQUEST and worm.source != row["from"]:
            return DropReason.GATHER_UNKNOWN
        if said.op != GATHER_ANSWER:
            if said.epoch != row["epoch"]:
                return DropReason.GATHER_STALE
            gathered = self._answer(said, row) if said.op == GATHER_REQUEST else self._gather(said, row)
            if not isinstance(gathered, Gathered):
                return gathered
            said = gathered
        return replace(worm, route=bytes([row["up"]]), gather=said.to_bytes(), source=row["as"])

    def _answer(self, said: Gathered, row: Json) -> Gathered:
        slot, branch = self.slots.get(row["slot"]), row["branch"]
        if slot is None or slot.life != said.life or branch not in slot.stable:
            return replace(said, op=GATHER_ANSWER, flags=0, cumulative=0, stable=0)
        return replace(
            said,
            op=GATHER_ANSWER,
            flags=GATHER_KNOWN,
            cumulative=slot.cumulative[branch],
            stable=slot.stable[branch],
        )

    def _gather(self, said: Gathered, row: Json) -> Gathered | DropReason | None:
        slot, branch = self.slots.get(row["slot"]), row["branch"]
        if slot is not None and slot.life[:3] == said.life[:3] and before(said.stream, slot.life[3]):
            return DropReason.GATHER_STALE
        if slot is None or slot.life != said.life:
            slot = self.slots[row["slot"]] = Slot(said.life)
        for numbers, number in ((slot.cumulative, said.cumulative), (slot.stable, said.stable)):
            if branch not in numbers or not before(number, numbers[branch]):
                numbers[branch] = number
        if any(number not in slot.stable for number in range(row["last"] + 1)):
            return None
        counted = range(row["last"] + 1)
        says = (
            least({n: slot.cumulative[n] for n in counted}, slot.cumulative[branch]),
            least({n: slot.stable[n] for n in counted}, slot.stable[branch]),
        )
        if says == slot.told and not said.flags & GATHER_REFRESH:
            return None
        slot.told = says
        return replace(said, cumulative=says[0], stable=says[1])
