"""What BMv2 does not look after, added to the program that it gets.

An index past the end of an array of counters, meters or registers changes nothing (v1model.p4). BMv2 looks
after that where it was built with assertions; elsewhere it reads and writes what lies behind the array, and
anything may happen from then on. So BMv2 passes by such calls.

`pop_front` and `push_front` make what they leave free invalid (P4-16, "Operations on header stacks"). BMv2 does
so with headers; of a stack of header unions it leaves valid what was there. So BMv2 removes those headers after
each call.
"""

import copy
from typing import Any

Json = dict[str, Any]
ZERO, ONE = ({"type": "hexstr", "value": value} for value in ("0x0", "0x1"))
# The places of array and index among the parameters of a call, and where the arrays are listed.
INDEXED = {
    "count": (0, 1, "counter_arrays"),
    "execute_meter": (0, 1, "meter_arrays"),
    "register_read": (1, 2, "register_arrays"),
    "register_write": (0, 1, "register_arrays"),
}
# The places of the primitive that a jump leads to.
JUMPS = {"_jump": 0, "_jump_if_zero": 1}


def guarded(source: Json) -> Json:
    """A copy of a program that keeps to the ends of its arrays, and whose popped unions are invalid."""
    program: Json = copy.deepcopy(source)
    sizes = {
        (kind, array["name"]): array["size"]
        for kind in ("counter_arrays", "meter_arrays", "register_arrays")
        for array in program.get(kind, [])
        if not array.get("is_direct")
    }
    stacks = _union_stacks(program)
    for action in program["actions"]:
        action["primitives"] = _guarded(action["primitives"], sizes, stacks)
    return program


def _union_stacks(program: Json) -> dict[str, list[list[str]]]:
    """The headers of each union of each stack of them."""
    headers = {header["id"]: header["name"] for header in program["headers"]}
    unions = {
        union["id"]: [headers[number] for number in union["header_ids"]]
        for union in program.get("header_unions", [])
    }
    return {
        stack["name"]: [unions[number] for number in stack["header_union_ids"]]
        for stack in program.get("header_union_stacks", [])
    }


def _guarded(
    calls: list[Json], sizes: dict[tuple[str, str], int], stacks: dict[str, list[list[str]]]
) -> list[Json]:
    """The calls of an action with guards around them; jumps lead to where they did."""
    found: list[Json] = []
    starts = []
    inserted = []
    for call in calls:
        starts.append(len(found))
        past = _past(call, sizes)
        if past:
            inserted.append(len(found))
            after = {"type": "hexstr", "value": hex(len(found) + 2)}
            found.append({"op": "_jump_if_zero", "parameters": [past, after]})
        found.append(call)
        found += [{"op": "remove_header", "parameters": [one]} for one in _freed(call, stacks)]
    starts.append(len(found))
    for at, call in enumerate(found):
        if call["op"] in JUMPS and at not in inserted:
            target = call["parameters"][JUMPS[call["op"]]]
            target["value"] = hex(starts[int(target["value"], 16)])
    return found


def _past(call: Json, sizes: dict[tuple[str, str], int]) -> Json | None:
    """What is 0 where the index of a call is past the end of its array; None where it cannot be."""
    if call["op"] not in INDEXED:
        return None
    array, index, kind = INDEXED[call["op"]]
    size = sizes.get((kind, call["parameters"][array]["value"]), 0)
    given = call["parameters"][index]
    if given["type"] == "hexstr" and int(given["value"], 16) < size:
        return None
    within = {"op": "<", "left": copy.deepcopy(given), "right": {"type": "hexstr", "value": hex(size)}}
    chosen = {"op": "?", "left": ONE, "right": ZERO, "cond": {"type": "expression", "value": within}}
    return {"type": "expression", "value": {"type": "expression", "value": chosen}}


def _freed(call: Json, stacks: dict[str, list[list[str]]]) -> list[Json]:
    """The headers that a call leaves free."""
    if call["op"] not in ("push", "pop") or call["parameters"][0]["type"] != "header_union_stack":
        return []
    unions = stacks[call["parameters"][0]["value"]]
    count = min(int(call["parameters"][1]["value"], 16), len(unions))
    freed = unions[:count] if call["op"] == "push" else unions[len(unions) - count :]
    return [{"type": "header", "value": name} for union in freed for name in union]
