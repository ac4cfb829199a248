"""Programs that differ a little from one that p4c has made: other operators, constants and
cases of selects, such as p4c could have written too, and primitives of P4-14 in the place of
assignments.

What p4c guarantees stays: it masks results to their width (`(a + b) & 0xff`), so an operator is
only replaced by one whose result is masked in the same way, and masks stay as they are.
"""

import copy
from random import Random
from typing import Any

from differential.program import COMPARISONS, Json, walk

CHANGES_MAX = 4
EQUALITIES = ("==", "!=")
MASKED = ("+", "-", "*")  # their results pass a mask
BITWISE = ("|", "^")  # no result of theirs is wider than what they are given
LOGICAL = ("and", "or")
COMPUTING = (*MASKED, *BITWISE, *COMPARISONS)
# Primitives of P4-14: those that change a field by a value, and those with a target of their own.
IN_PLACE = ("add_to_field", "subtract_from_field")
OF_TWO = ("add", "subtract", "bit_and", "bit_or", "bit_xor")
SHIFTS = ("shift_left", "shift_right")


def mutated(source: Json, rng: Random) -> Json:
    """A copy of a program with one to four changes, or none where there is nothing to change."""
    program: Json = copy.deepcopy(source)
    places = [*_operators(program), *_constants(program), *_cases(program), *_assignments(program)]
    for place in rng.sample(places, min(len(places), rng.randint(1, CHANGES_MAX))):
        _change(place, rng)
    return program


def _parts(program: Json) -> list[Any]:
    return [program[name] for name in ("parsers", "actions", "pipelines", "checksums") if name in program]


def _operators(program: Json) -> list[Json]:
    found = []
    for node in walk(_parts(program)):
        group = _group(node)
        if group:
            found.append({"node": node, "key": "op", "choices": [one for one in group if one != node["op"]]})
    return found


def _group(node: Json) -> tuple[str, ...] | None:
    """The operators that may stand in the place of a node's one."""
    name = node.get("op")
    if name in COMPARISONS:
        sides = [_content(node.get(side)) for side in ("left", "right")]
        number = any(side.get("type") == "hexstr" or side.get("op") in ("&", "+") for side in sides)
        # Truth values, headers and stacks are compared too, and have no order.
        return COMPARISONS if number else EQUALITIES if name in EQUALITIES else None
    return next((group for group in (MASKED, BITWISE, LOGICAL) if name in group), None)


def _content(node: Any) -> Json:
    while isinstance(node, dict) and node.get("type") == "expression":
        node = node["value"]
    return node if isinstance(node, dict) else {}


def _constants(program: Json) -> list[Json]:
    """Operands, and what is assigned to fields."""
    widths = {one["name"]: one["fields"] for one in program["header_types"]}
    fields = {
        (header["name"], field[0]): field[1]
        for header in program["headers"]
        for field in widths[header["header_type"]]
    }
    found = []
    for node in walk(_parts(program)):
        if node.get("op") in COMPUTING:
            sides = [_content(node.get(side)) for side in ("left", "right")]
            found += [_place(side, 4 * len(_digits(side))) for side in sides if side.get("type") == "hexstr"]
        if node.get("op") == "assign" and len(node.get("parameters", [])) == 2:
            target, value = node["parameters"][0], _content(node["parameters"][1])
            width = fields.get(tuple(target["value"])) if target["type"] == "field" else None
            if isinstance(width, int) and value.get("type") == "hexstr":
                found.append(_place(value, width))
    return [place for place in found if not place["node"]["value"].startswith("-")]


def _assignments(program: Json) -> list[Json]:
    """Assignments to whole fields without a sign, which can be made something that P4-14 has."""
    types = {one["name"]: one["fields"] for one in program["header_types"]}
    widths = {
        (header["name"], field[0]): field[1]
        for header in program["headers"]
        for field in types[header["header_type"]]
        if field[1] != "*" and not any(field[2:])
    }
    found = []
    for call in (call for action in program["actions"] for call in action["primitives"]):
        if call["op"] != "assign" or call["parameters"][0]["type"] != "field":
            continue
        target, value = call["parameters"]
        width = widths.get(tuple(target["value"]))
        if width is None:
            continue
        bits = {"type": "hexstr", "value": hex(width // 3)}
        calls = [{"op": name, "parameters": [target, value]} for name in IN_PLACE]
        calls += [{"op": name, "parameters": [target, target, value]} for name in OF_TWO]
        calls += [{"op": name, "parameters": [target, value, bits]} for name in SHIFTS]
        found.append({"node": call, "calls": calls})
    return found


def _digits(node: Json) -> str:
    return str(node["value"]).lstrip("-").removeprefix("0x")


def _place(node: Json, width: int) -> Json:
    return {"node": node, "key": "value", "width": width}


def _cases(program: Json) -> list[Json]:
    """Values of selects without a mask."""
    return [
        _place(transition, 4 * len(_digits(transition)))
        for parser in program["parsers"]
        for state in parser["parse_states"]
        for transition in state["transitions"]
        if transition["type"] == "hexstr" and not transition.get("mask")
    ]


def _change(place: Json, rng: Random) -> None:
    node = place["node"]
    if "calls" in place:
        node.update(copy.deepcopy(rng.choice(place["calls"])))
        return
    key = place["key"]
    if "choices" in place:
        node[key] = rng.choice(place["choices"])
        return
    top = (1 << place["width"]) - 1
    value = int(str(node[key]), 16)
    near = [value ^ 1, value + 1, value - 1, 0, top, rng.getrandbits(max(1, place["width"]))]
    node[key] = f"0x{rng.choice(near) & top:0{len(_digits(node))}x}"
