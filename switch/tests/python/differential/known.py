"""Where two right switches may differ, each with the reason, and what is done about it.

`SOURCES` are taken out of a program before either switch gets it: a field that is read is 0
instead, so that the rest of the program is compared bit for bit. `RANDOM` calls are given the
low bound of their range for both bounds, which leaves one value.
"""

from collections.abc import Mapping
from typing import Any

from differential.program import Json, Program, walk

CLOCK = "depends on when the switch was started and on how fast it is"
DEPTH = "depends on how many packets are under way together"
SOURCES: dict[tuple[str, str], str] = {
    ("standard_metadata", "ingress_global_timestamp"): CLOCK,
    ("standard_metadata", "egress_global_timestamp"): CLOCK,
    ("standard_metadata", "enq_timestamp"): CLOCK,
    ("standard_metadata", "deq_timedelta"): CLOCK,
    ("standard_metadata", "enq_qdepth"): DEPTH,
    ("standard_metadata", "deq_qdepth"): DEPTH,
    ("intrinsic_metadata", "ingress_global_timestamp"): CLOCK,
    ("queueing_metadata", "enq_timestamp"): CLOCK,
    ("queueing_metadata", "deq_timedelta"): CLOCK,
    ("queueing_metadata", "enq_qdepth"): DEPTH,
    ("queueing_metadata", "deq_qdepth"): DEPTH,
}
RANDOM = {"modify_field_rng_uniform": "two generators of random numbers, each seeded in its own way"}
ORDER = (
    "frames of one port in another order, in programs whose packets come again or are cloned in "
    "egress: BMv2 runs egress in four threads, so that copies of one packet overtake each other; "
    "between ports there is no order at all"
)
VARBITS = (
    "two varbits that are compared: equal only with the same number of bits (P4-16, varbit), "
    "where BMv2 compares them as numbers; neither switch compares them"
)
STALE = (
    "what BMv2 reads from headers that a packet does not have is left from packets before (P4-16 "
    "leaves open what it is); stale.py makes it 0 for BMv2, which is what wormcast-switch reads"
)
# What wormcast-switch counts as it ends what BMv2 goes on with for ever. Where it has counted none of
# them, a BMv2 that comes to no end is a finding.
ENDLESS = {
    "drop.pass_limit": "it comes again and again (wormcast-switch: 200 passes)",
    "drop.action_loop": "a loop in an action has no end (wormcast-switch: 65,536 rounds in a pass)",
    "drop.parser_loop": "the parser goes in a circle (wormcast-switch: 4,096 states in a pass)",
    "clone_depth_limit": "each clone is cloned again (wormcast-switch: 16 times)",
}
WIDE_REGISTERS = (
    "Thrift reads registers as 64 bits with a sign: BMv2 gives the highest such number where more than "
    "63 bits are used, wormcast-switch the lowest 64 bits; they are not read"
)
SLOW_RATES = (
    "wormcast-switch keeps the rates of meters in whole units a second, as P4Runtime does: what is read back is "
    "compared so"
)
UNCOMPARED = (
    "bits of an entry past its prefix or outside its mask, as constant entries may have them: BMv2 shows "
    "them as they were written, wormcast-switch as 0; they are left out of what is read back"
)
# What BMv2 says as it ends itself, and why that is no fault of a switch that does not.
ENDS = {
    "vector::_M_range_check": "an index past the end of a header stack (P4-16 leaves open what it gives)",
    "Conversion from negative integer": "a negative index of a header stack",
}
ASSERTIONS = {"assert", "assume"}
ASSERTION = "an assertion that fails: BMv2 aborts, wormcast-switch drops the packet and counts it"


def reason_of_end(program: Program, crash: str) -> str | None:
    """Why BMv2 ended itself where it may; None where nothing is known of it."""
    for text, reason in ENDS.items():
        if text in crash:
            return reason
    return ASSERTION if program.primitives & ASSERTIONS and "terminate called" not in crash else None


def reason_of_no_end(counts: Mapping[str, int]) -> str | None:
    """Why BMv2 comes to no end with what wormcast-switch has dropped, as it counted; None where
    it has dropped nothing of the kind."""
    causes = [reason for name, reason in ENDLESS.items() if counts.get(name)]
    return f"BMv2 comes to no end, or late: {causes[0]}" if causes else None


def without_sources(source: Json, alike: bool = False) -> tuple[Json, list[str]]:
    """A copy of a program without what may differ, and the names of what was taken out.

    `alike`: for two that are one switch, with one seed, where only clocks may differ.
    """
    out: set[str] = set()
    copy = _replaced(source, out)
    if alike:
        return copy, sorted(out)
    _uncompare(copy, out)
    for action in copy.get("actions", []):
        for call in action["primitives"]:
            if call["op"] in RANDOM and len(call["parameters"]) == 3:
                call["parameters"][2] = call["parameters"][1]
                out.add(call["op"])
    return copy, sorted(out)


def _replaced(node: Any, out: set[str]) -> Any:
    """A copy with reads of sources replaced by 0. What is written to stays: the first
    parameter of a call, the targets of keys, the fields of digests and of kept lists."""
    if isinstance(node, list):
        return [_replaced(one, out) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "field" and tuple(node["value"]) in SOURCES:
        out.add(".".join(node["value"]))
        return {"type": "hexstr", "value": "0x0"}
    if "op" in node and "parameters" in node:
        first, rest = node["parameters"][:1], node["parameters"][1:]
        if first and first[0].get("type") != "field":
            first = _replaced(first, out)
        return {**node, "parameters": [*first, *_replaced(rest, out)]}
    unread = ("learn_lists", "field_lists")
    return {key: value if key in unread else _replaced(value, out) for key, value in node.items()}


def _uncompare(source: Json, out: set[str]) -> None:
    """Makes comparisons of varbits compare 0 with 0."""
    types = {one["name"]: one for one in source.get("header_types", [])}
    varbits = {
        (header["name"], field[0])
        for header in source.get("headers", [])
        for field in types[header["header_type"]]["fields"]
        if field[1] == "*"
    }
    for node in walk(source):
        if node.get("op") not in ("==", "!="):
            continue
        for side in ("left", "right"):
            part = node.get(side)
            if isinstance(part, dict) and part.get("type") == "field" and tuple(part["value"]) in varbits:
                node["left"] = node["right"] = {"type": "hexstr", "value": "0x0"}
                out.add("comparison of varbits")
                break
