"""Makes BMv2 read 0 from headers that a packet does not have.

P4-16 ("Reading uninitialized values and writing fields of invalid headers") leaves open what such a
read gives. BMv2 gives what
some packet before has left in the memory that it uses again; wormcast-switch gives 0. For BMv2 a
table before ingress, and for copies that do not pass ingress one before egress, makes them
0 after each parse. What a packet itself has put into a header that it then made invalid
stays, in both.
"""

import copy
from typing import Any

Json = dict[str, Any]
NAME = "differential_clean"
EMPTY = "differential_empty"
ZERO, ONE = ({"type": "hexstr", "value": value} for value in ("0x0", "0x1"))
INGRESS_CLONE = 1  # the instance type of copies that are parsed and do not pass ingress


def cleaned(source: Json) -> Json:
    """A copy of a program that begins both controls so."""
    program: Json = copy.deepcopy(source)
    for pipeline in program["pipelines"]:
        after_ingress = pipeline["name"] == "egress"
        calls = _calls(program, after_ingress)
        if not calls:
            continue
        number = max((action["id"] for action in program["actions"]), default=-1) + 1
        name = f"{NAME}_{pipeline['name']}"
        program["actions"].append({"name": name, "id": number, "runtime_data": [], "primitives": calls})
        pipeline["tables"].append(_table(pipeline, name, number, program))
        pipeline["init_table"] = name
    return program


def _calls(program: Json, copies_only: bool) -> list[Json]:
    types = {one["name"]: one for one in program["header_types"]}
    calls: list[Json] = []
    for header in list(program["headers"]):
        if header.get("metadata") or header["name"] == EMPTY:
            continue
        kept = _boolean({"type": "field", "value": [header["name"], "$valid$"]})
        if copies_only:
            kind = {"type": "field", "value": ["standard_metadata", "instance_type"]}
            other = _operation("!=", kind, {"type": "hexstr", "value": hex(INGRESS_CLONE)})
            kept = _operation("or", other, kept)
        for field in types[header["header_type"]]["fields"]:
            place = {"type": "field", "value": [header["name"], field[0]]}
            if field[1] != "*":
                chosen = {"op": "?", "left": place, "right": ZERO, "cond": kept}
                calls.append({"op": "assign", "parameters": [place, _expression(chosen)]})
                continue
            _add_empty(program, types[header["header_type"]])
            empty = {"type": "field", "value": [EMPTY, "bits"]}
            wanted = _expression({"op": "?", "left": ZERO, "right": ONE, "cond": kept})
            after = {"type": "hexstr", "value": hex(len(calls) + 2)}
            calls.append({"op": "_jump_if_zero", "parameters": [wanted, after]})
            calls.append({"op": "assign_VL", "parameters": [place, empty]})
    return calls


def _add_empty(program: Json, like: Json) -> None:
    """A header that nothing is ever put into, whose varbit therefore is always empty."""
    if any(header["name"] == EMPTY for header in program["headers"]):
        return
    number = max(one["id"] for one in program["header_types"]) + 1
    kind = {"name": EMPTY, "id": number, "fields": [["bits", "*"]]}
    program["header_types"].append({**kind, "max_length": like.get("max_length", 256)})
    number = max(one["id"] for one in program["headers"]) + 1
    header = {"name": EMPTY, "id": number, "header_type": EMPTY, "metadata": False, "pi_omit": True}
    program["headers"].append(header)


def _expression(value: Any) -> Json:
    return {"type": "expression", "value": {"type": "expression", "value": value}}


def _operation(name: str, left: Any, right: Any) -> Json:
    return {"type": "expression", "value": {"op": name, "left": left, "right": right}}


def _boolean(value: Json) -> Json:
    return _operation("d2b", None, value)


def _table(pipeline: Json, name: str, action: int, program: Json) -> Json:
    tables = [table["id"] for one in program["pipelines"] for table in one["tables"]]
    return {
        "name": name,
        "id": max(tables, default=-1) + 1,
        "key": [],
        "match_type": "exact",
        "type": "simple",
        "max_size": 1,
        "with_counters": False,
        "support_timeout": False,
        "direct_meters": None,
        "action_ids": [action],
        "actions": [name],
        "base_default_next": pipeline["init_table"],
        "next_tables": {name: pipeline["init_table"]},
        "default_entry": {
            "action_id": action,
            "action_const": True,
            "action_data": [],
            "action_entry_const": True,
        },
    }
