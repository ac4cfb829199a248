"""Packets that a program's parser takes apart: a walk through its states, making up headers.

Each select is led to a case that is chosen first; then some packets are spoiled.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from differential.bits import Bits
from differential.checksums import correct
from differential.evaluate import evaluate, slice_of
from differential.program import FieldName, Json, Program, Spots
from differential.values import Values

STATES_MAX = 40  # of one walk: parsers may go round
CASE_WEIGHT = 3  # of a case of a select, where that of the default is 1
ADVANCE_MAX = 512  # bits that are skipped at most
PAYLOAD_MAX = 40
FRAME_MAX = 1500


@dataclass
class Packet:
    """A packet, and what the generator knows of it."""

    port: int
    frame: bytes
    fields: dict[FieldName, int] = field(default_factory=dict)
    members: list[tuple[str, int]] = field(default_factory=list)  # value sets that should have these


class Walk:
    """One packet being made up."""

    def __init__(self, program: Program, values: Values, port: int) -> None:
        self.program = program
        self.values = values
        self.rng: Random = values.rng
        self.bits = Bits()
        self.spots: Spots = {}
        self.metadata: dict[FieldName, int] = {("standard_metadata", "ingress_port"): port}
        self.sources: Spots = {}  # of metadata that are bits of the packet, which may come yet
        self.filled: dict[str, int] = {}  # of each stack
        self.last: dict[str, str] = {}  # the header extracted last of each stack
        self.members: list[tuple[str, int]] = []

    def field(self, header: str, name: str) -> int | None:
        """The value of a field as far as it is known."""
        if name == "$valid$":
            return int(any(one[0] == header for one in self.spots))
        spot = self.spots.get((header, name))
        if spot:
            return self.bits.get(*spot)
        source = self.sources.get((header, name))
        return self.bits.look(*source) if source else self.metadata.get((header, name))

    def run(self) -> None:
        """Goes through the parser until it ends or cannot go on."""
        parser = self.program.parser
        if parser is None:
            return
        states = {state["name"]: state for state in parser["parse_states"]}
        name = parser["init_state"]
        for _ in range(STATES_MAX):
            state = states.get(name)
            if state is None:
                break
            for op in state["parser_ops"]:
                if not self._operate(op["op"], op["parameters"]):
                    return
            name = self._choose(state)

    def _operate(self, op: str, parameters: list[Any]) -> bool:
        """Does what a parser op does; False where the parser would stop."""
        if op in ("extract", "extract_VL"):
            header = self._header(parameters[0])
            if header is None:
                return False
            length = evaluate(parameters[1], self.field) if op == "extract_VL" else None
            self._extract(header, length)
        elif op == "set" and parameters[0]["type"] == "field":
            target = (parameters[0]["value"][0], parameters[0]["value"][1])
            source = self._source(parameters[1])
            value = self._value(parameters[1])
            self.sources.pop(target, None)
            if source and source[1] == self.program.widths[target]:
                self.sources[target] = source
            elif value is None:
                self.metadata.pop(target, None)
            else:
                self.metadata[target] = value & (1 << max(0, self.program.widths[target])) - 1
        elif op == "advance":
            width = self._value(parameters[0]) or 0
            if width > ADVANCE_MAX:
                return False
            self.bits.append(width, self.rng.getrandbits(width) if width else 0)
        return True

    def _header(self, parameter: Json) -> str | None:
        kind, name = parameter["type"], parameter["value"]
        if kind == "regular":
            return str(name)
        if kind == "stack":
            places = self.program.stacks[name]
        else:
            stack, member = name
            union = [self.program.unions[one] for one in self.program.union_stacks[stack]]
            at = self.program.members[stack].index(member)
            places = [headers[at] for headers in union]
            name = stack
        at = self.filled.get(name, 0)
        if at >= len(places):
            return None
        self.filled[name] = at + 1
        self.last[name] = places[at]
        return places[at]

    def _extract(self, header: str, length: int | None) -> None:
        for name, width in self.program.headers[header]:
            if width < 0:
                width = length if length is not None else 8 * self.rng.randrange(4)
                width = width if 0 <= width <= self.program.varbit_max[header] else 0
            at = self.bits.append(width, self.values.of_field((header, name), width) if width else 0)
            self.spots[(header, name)] = (at, width)

    def _source(self, node: Json) -> tuple[int, int] | None:
        """Where the bits of a value are in the packet, if it is nothing but such bits."""
        if node["type"] == "lookahead":
            return self.bits.length + node["value"][0], node["value"][1]
        found = slice_of(node, lambda header, name: self.program.widths.get((header, name), 0))
        if found is None:
            return None
        name, low, width = found
        spot = self.spots.get(name) or self.sources.get(name)
        return (spot[0] + spot[1] - low - width, width) if spot and low + width <= spot[1] else None

    def _value(self, node: Json) -> int | None:
        if node["type"] == "lookahead":
            offset, width = node["value"]
            return self._look_ahead(offset, width)
        return evaluate(node, self.field)

    def _look_ahead(self, offset: int, width: int) -> int:
        value = self.values.draw(width)
        self.bits.promise(self.bits.length + offset, width, value)
        return value

    def _choose(self, state: Json) -> str | None:
        """The next state, with the fields of the key changed so that the parser goes there."""
        cases = state["transitions"] or [{}]
        # What falls into the default case mostly falls out of the parser.
        weights = [1 if one.get("type") == "default" else CASE_WEIGHT for one in cases]
        chosen: Json = self.rng.choices(cases, weights)[0]
        kind = str(chosen.get("type"))
        if kind == "hexstr":
            value = int(chosen["value"], 16)
            mask = int(chosen["mask"], 16) if chosen.get("mask") else -1
            self._lead(state["transition_key"], value, mask)
        elif kind == "parse_vset":
            width = self.program.value_sets[chosen["value"]]
            member = self.values.draw(width)
            mask = int(chosen["mask"], 16) if chosen.get("mask") else -1
            self._lead_packed(state["transition_key"], member, mask)
            self.members.append((chosen["value"], member))
            return chosen.get("next_state")
        taken = self._taken(state)
        return (chosen if taken is None else taken).get("next_state")

    def _taken(self, state: Json) -> Json | None:
        """The case that the key of a select falls into as it is now; None where that is not
        known."""
        key = 0
        for part, width in self._parts(state["transition_key"]):
            value = self._value_of_part(part, width)
            if value is None:
                return None
            key = key << (width + 7) // 8 * 8 | value
        for one in state["transitions"]:
            if one["type"] == "default":
                return dict(one)
            if one["type"] != "hexstr":
                return None
            mask = int(one["mask"], 16) if one.get("mask") else -1
            if key & mask == int(one["value"], 16) & mask:
                return dict(one)
        return {}

    def _value_of_part(self, part: Json, width: int) -> int | None:
        if part["type"] == "lookahead":
            return self.bits.look(self.bits.length + part["value"][0], width)
        header, name = part["value"][0], part["value"][-1]
        return self.field(self.last.get(header, header), name)

    def _parts(self, key: list[Json]) -> list[tuple[Json, int]]:
        """The parts of a select and their widths."""
        parts = []
        for part in key:
            if part["type"] == "lookahead":
                width = int(part["value"][1])
            elif part["type"] == "field":
                width = self.program.widths[(part["value"][0], part["value"][1])]
            else:
                stack, name = part["value"][0], part["value"][-1]
                header = self.last.get(stack) or self.program.stacks.get(stack, [""])[0]
                width = self.program.widths.get((header, name), 8)
            parts.append((part, width))
        return parts

    def _lead(self, key: list[Json], value: int, mask: int) -> None:
        """Each part of a key has whole bytes of the value of a select."""
        for part, width in reversed(self._parts(key)):
            self._put(part, width, value, mask)
            whole = (width + 7) // 8 * 8
            value, mask = value >> whole, mask >> whole

    def _lead_packed(self, key: list[Json], value: int, mask: int) -> None:
        """A member of a value set has the parts of a key one behind the other."""
        for part, width in reversed(self._parts(key)):
            self._put(part, width, value, mask)
            value, mask = value >> width, mask >> width

    def _put(self, part: Json, width: int, value: int, mask: int) -> None:
        if part["type"] == "lookahead":
            self.bits.promise(self.bits.length + part["value"][0], width, value, mask)
            return
        header, name = part["value"][0], part["value"][-1]
        place = (self.last.get(header, header), name)
        spot = self.spots.get(place) or self.sources.get(place)
        if spot:
            self.bits.promise(*spot, value, mask)


def make(program: Program, values: Values, port: int) -> Packet:
    """A packet that comes to a port."""
    rng = values.rng
    walk = Walk(program, values, port)
    walk.run()
    walk.bits.fulfil()
    if rng.random() < 0.5:
        correct(program, walk.bits, walk.spots, walk.field)
    fields = {name: walk.bits.get(*spot) for name, spot in walk.spots.items()}
    for header in program.headers:
        fields[(header, "$valid$")] = int(any(name[0] == header for name in walk.spots))
    fields[("standard_metadata", "ingress_port")] = port
    frame = walk.bits.to_bytes()
    if rng.random() < 0.8:
        frame += rng.randbytes(rng.randint(0, PAYLOAD_MAX if rng.random() < 0.97 else FRAME_MAX))
    parsed = {name: walk.bits.look(*source) for name, source in walk.sources.items()}
    known = {name: value for name, value in parsed.items() if value is not None}
    return Packet(port, spoil(rng, frame), {**walk.metadata, **known, **fields}, walk.members)


def spoil(rng: Random, frame: bytes) -> bytes:
    """Cuts some frames and changes bits of others; none is empty or too long."""
    choice = rng.random()
    if choice < 0.08 and len(frame) > 1:
        frame = frame[: rng.randrange(1, len(frame))]
    elif choice < 0.12 and frame:
        at = rng.randrange(len(frame))
        frame = frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :]
    elif choice < 0.13:
        frame = rng.randbytes(rng.randint(1, 64))
    return frame[:FRAME_MAX] or b"\x00"
