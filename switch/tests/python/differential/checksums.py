"""Right checksums in packets that are made up; wrong ones come by themselves."""

from typing import Any

from differential.bits import Bits
from differential.evaluate import Field, evaluate
from differential.program import FieldName, Json, Program, Spots, hexadecimal


def csum16(data: bytes) -> int:
    """The Internet checksum (RFC 1071); a last odd byte is the high one of a word."""
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def correct(program: Program, bits: Bits, spots: Spots, field: Field) -> None:
    """Puts the right value into each checksum that is checked, where `field` knows what decides
    about that. Fields of headers that are not there are left out, as switches leave them out."""
    calculations = {one["name"]: one for one in program.json.get("calculations", [])}
    for checksum in program.json.get("checksums", []):
        calculation = calculations.get(checksum.get("calculation"))
        target: FieldName = (checksum["target"][0], checksum["target"][1])
        if calculation is None or calculation["algo"] != "csum16" or target not in spots:
            continue
        if checksum.get("if_cond") and not evaluate(checksum["if_cond"], field):
            continue
        data = _data(calculation["input"], bits, spots)
        if data is not None and spots[target][1] == 16:
            bits.set(*spots[target], csum16(data))


def _data(inputs: list[Json], bits: Bits, spots: Spots) -> bytes | None:
    whole = Bits()
    for one in inputs:
        kind, value = one["type"], _named(one)
        if kind == "field":
            if value in spots:
                whole.append(spots[value][1], bits.get(*spots[value]))
        elif kind == "hexstr":
            whole.append(one.get("bitwidth", 8), hexadecimal(one) or 0)
        elif kind == "payload":
            continue
        else:
            return None
    return whole.to_bytes()


def _named(node: Json) -> Any:
    value = node.get("value")
    return tuple(value) if isinstance(value, list) else value
