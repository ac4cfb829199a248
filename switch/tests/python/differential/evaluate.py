"""The value of an expression while a packet is being made up.

Only the generator uses this, to make packets that get far: what it cannot work out is None,
and what it works out wrongly makes a packet take another way, not a test fail.
"""

import operator
from collections.abc import Callable
from typing import Any

Field = Callable[[str, str], int | None]
BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda left, right: left << min(right, 4096),
    ">>": lambda left, right: left >> min(right, 4096),
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "<=": lambda left, right: int(left <= right),
    ">=": lambda left, right: int(left >= right),
    "and": lambda left, right: int(bool(left and right)),
    "or": lambda left, right: int(bool(left or right)),
}


def evaluate(node: Any, field: Field) -> int | None:
    """The value of a node of the JSON, where `field` knows those of fields."""
    if not isinstance(node, dict):
        return None
    kind = node.get("type")
    if kind == "hexstr":
        return int(str(node["value"]), 16)
    if kind == "bool":
        return int(bool(node["value"]))
    if kind == "field":
        return field(*node["value"])
    if kind == "expression":
        return evaluate(node["value"], field)
    if "op" in node:
        return _operate(node, field)
    return None


def _operate(node: dict[str, Any], field: Field) -> int | None:
    left, right = evaluate(node.get("left"), field), evaluate(node.get("right"), field)
    name = node["op"]
    if name in ("d2b", "b2d"):
        return None if right is None else int(bool(right)) if name == "d2b" else right
    if name == "not":
        return None if right is None else int(not right)
    if name == "~":
        return None if right is None else ~right
    if name == "?":
        condition = evaluate(node.get("cond"), field)
        return None if condition is None else left if condition else right
    if left is None or right is None or name not in BINARY:
        return None
    return BINARY[name](left, right)


Slice = tuple[tuple[str, str], int, int]


def slice_of(node: Any, width: Callable[[str, str], int]) -> Slice | None:
    """The field that a node has bits of, how many lower ones are left out, and how many there
    are; None for anything else. p4c writes slices as shifts and masks."""
    if not isinstance(node, dict):
        return None
    kind = node.get("type")
    if kind == "expression":
        return slice_of(node["value"], width)
    if kind == "field":
        name = (node["value"][0], node["value"][1])
        return name, 0, width(*name)
    if node.get("op") not in ("&", ">>"):
        return None
    inner = slice_of(node["left"], width)
    number = evaluate(node["right"], lambda *_: None)
    if inner is None or number is None:
        return None
    name, low, bits = inner
    if node["op"] == ">>":
        return (name, low + number, bits - number) if number < bits else None
    whole = number & number + 1 == 0
    return (name, low, min(bits, number.bit_length())) if whole and number else None
