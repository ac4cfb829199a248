"""The pure parts of the differential fuzzer: no switch is run."""

import json
import operator
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from differential import known, packets, pcap, thrift
from differential.bits import Bits
from differential.checksums import correct, csum16
from differential.commands import _DO, KINDS, Session, as_text, whole_bytes
from differential.compare import compare
from differential.findings import dump
from differential.generate import Case, generate
from differential.guards import guarded
from differential.judge import first
from differential.mutate import BITWISE, CHANGES_MAX, IN_PLACE, LOGICAL, MASKED, OF_TWO, SHIFTS, mutated
from differential.packets import FRAME_MAX, make, spoil
from differential.program import COMPARISONS, Program, load, read
from differential.shrink import fewer, shrink
from differential.stale import cleaned
from differential.state import compared
from differential.switches import Outcome
from differential.values import Values
from rig.targets import REPOSITORY
from wormcast.wire import Flag

PROGRAMS = sorted((REPOSITORY / "switch" / "tests" / "programs").glob("*.json"))
SEEDS = 12
SUMS, PACKETS_MAX = 5, 20_000
"""Checksums that are looked at, of those that are right and of those that are not; the packets drawn for them at most."""
ETHERNET_BYTES, WORM_BYTES, TRAIN_BYTES = 14, 12, 20
NAMES = ("one", "other")
P4_14 = (*IN_PLACE, *OF_TWO, *SHIFTS)


def program(name: str) -> Program:
    return load(REPOSITORY / "switch" / "tests" / "programs" / f"{name}.json")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_cases_are_repeatable_and_valid(path: Path) -> None:
    """The same seed gives the same case, another one another; values fit their widths."""
    loaded = load(path)
    for number in range(SEEDS):
        case = generate(loaded, f"{path.stem}/{number}")
        assert dump(case) == dump(generate(load(path), f"{path.stem}/{number}"))
        assert dump(case) != dump(generate(loaded, f"{path.stem}/other/{number}"))
        assert all(1 <= len(frame) <= FRAME_MAX for _, frame in case.packets)
        assert {port for port, _ in case.packets} <= set(case.ports)
        if case.paced:
            assert len({port for port, _ in case.packets}) == 1
        for one in case.commands:
            _check(loaded, one)


def _check(loaded: Program, one: dict[str, Any]) -> None:
    assert one["do"] in _DO
    assert as_text(one).startswith(one["do"])
    for value, width in one.get("data", []):
        assert 0 <= value < 1 << width
    tables = {table.name: table for table in loaded.tables}
    if "key" in one:
        table = tables[one["table"]]
        assert [part["kind"] for part in one["key"]] == [key.kind for key in table.keys]
        for part, key in zip(one["key"], table.keys, strict=True):
            assert part["kind"] in KINDS
            for number in ("value", "mask", "low", "high"):
                assert 0 <= part.get(number, 0) < 1 << key.width
            assert part.get("value", 0) & ~part.get("mask", -1) == 0
            assert part.get("low", 0) <= part.get("high", 1 << key.width)


def test_a_good_share_of_packets_hits() -> None:
    """Exact entries of a table whose key is parsed are those of packets, more often than not."""
    loaded = program("entries")
    hits = tried = 0
    for number in range(40):
        case = generate(loaded, f"hits/{number}")
        keys = [one["key"] for one in case.commands if one["do"] == "table_add"]
        tried += len(case.packets)
        first_bytes = {
            (part["value"] & part.get("mask", -1)) for key in keys for part in key[:1] if "value" in part
        }
        hits += sum(frame[0] in first_bytes for _, frame in case.packets)
    assert hits > tried / 5, (hits, tried)


def test_every_way_through_a_parser_is_taken() -> None:
    """Of a program with a stack, a varbit, a look ahead and two selects."""
    loaded = program("options")
    ways: Counter[str] = Counter()
    for number in range(200):
        values = Values(Random(number), loaded)
        packet = make(loaded, values, 1)
        for header in ("options", "skipped", "tail"):
            if packet.fields.get((header, "$valid$")):
                ways[header] += 1
    assert all(ways[header] > 20 for header in ("options", "skipped", "tail")), ways


def test_selects_are_led_where_they_should_go() -> None:
    """A select over two fields: each has whole bytes of the value, whatever its width."""
    source = json.loads((REPOSITORY / "switch/tests/programs/options.json").read_text())
    parser = source["parsers"][0]
    parser["init_state"] = "start"
    header = {"name": "pair", "id": 90, "fields": [["small", 4, False], ["large", 12, False]]}
    source["header_types"].append(header)
    source["headers"].append({"name": "pair", "id": 90, "header_type": "pair", "metadata": False})
    key = [{"type": "field", "value": ["pair", name]} for name in ("small", "large")]
    way = {"type": "hexstr", "value": "0x050abc", "mask": None, "next_state": None}
    extract = {"op": "extract", "parameters": [{"type": "regular", "value": "pair"}]}
    state = {"name": "start", "id": 0, "parser_ops": [extract], "transition_key": key, "transitions": [way]}
    parser["parse_states"] = [state]
    loaded = read("pair", source)
    packet = make(loaded, Values(Random(1), loaded), 1)
    assert packet.fields["pair", "small"] == 5
    assert packet.fields["pair", "large"] == 0xABC


def test_bits_that_are_promised_come_true() -> None:
    bits = Bits()
    bits.append(4, 0xA)
    bits.promise(2, 6, 0b110011)
    assert bits.append(8, 0) == 4
    assert bits.get(0, 12) == 0b1011_0011_0000
    bits.promise(14, 2, 0b11)
    bits.fulfil()
    assert bits.to_bytes() == bytes([0b10110011, 0b00000011])


def test_slices_lead_to_the_packet() -> None:
    """A select on a slice of what was looked ahead at changes the bits that come."""
    source = json.loads((REPOSITORY / "switch/tests/programs/options.json").read_text())
    types = [{"name": "looked", "id": 90, "fields": [["word", 16, False], ["middle", 8, False]]}]
    types.append({"name": "two", "id": 91, "fields": [["bytes", 16, False]]})
    source["header_types"] += types
    for one, metadata in zip(types, (True, False), strict=True):
        name = {"name": one["name"], "id": one["id"], "header_type": one["name"], "metadata": metadata}
        source["headers"].append(name)
    word, middle = ({"type": "field", "value": ["looked", name]} for name in ("word", "middle"))
    shifted = {"op": ">>", "left": word, "right": {"type": "hexstr", "value": "0x4"}}
    slice_ = {"op": "&", "left": shifted, "right": {"type": "hexstr", "value": "0xff"}}
    ops = [
        {"op": "set", "parameters": [word, {"type": "lookahead", "value": [0, 16]}]},
        {"op": "set", "parameters": [middle, {"type": "expression", "value": slice_}]},
    ]
    way = {"type": "hexstr", "value": "0xa5", "mask": None, "next_state": "taken"}
    extract = {"op": "extract", "parameters": [{"type": "regular", "value": "two"}]}
    states = [
        {"name": "start", "parser_ops": ops, "transition_key": [middle], "transitions": [way]},
        {"name": "taken", "parser_ops": [extract], "transition_key": [], "transitions": []},
    ]
    source["parsers"][0] |= {"init_state": "start", "parse_states": states}
    loaded = read("slices", source)
    for seed in range(10):
        packet = make(loaded, Values(Random(seed), loaded), 1)
        assert packet.fields["two", "bytes"] >> 4 & 0xFF == 0xA5
        assert packet.fields["looked", "middle"] == 0xA5


def test_checksums() -> None:
    """The example of RFC 1071, section 3, and those of packets of a program."""
    assert csum16(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D
    assert csum16(b"\x01") == 0xFEFF


def test_half_of_the_checksums_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of wormcast.p4, over headers some of which are not in the packet.

    All that are put right are right, and about half are: by ten standard deviations, whatever is drawn.
    """
    loaded = load(REPOSITORY / "p4src" / "compiled" / "wormcast.json")
    corrected: list[int] = []
    monkeypatch.setattr(packets, "correct", lambda *of: (corrected.append(number), correct(*of)))
    monkeypatch.setattr(packets, "spoil", lambda _, frame: frame)
    sums: Counter[bool] = Counter()
    draws = 0
    for number in range(PACKETS_MAX):
        if min(sums[True], sums[False]) == SUMS:
            break
        draws += 1
        packet = make(loaded, Values(Random(number), loaded), 1)
        if packet.fields.get(("worm", "kind")) != 0 or packet.fields.get(("worm", "version")) != 1:
            continue
        length = WORM_BYTES + packet.fields["worm", "route_len"]
        if packet.fields["worm", "flags"] & Flag.TRAIN:
            length += TRAIN_BYTES
        worm = packet.frame[ETHERNET_BYTES : ETHERNET_BYTES + length]
        if len(worm) == length:
            right = csum16(worm) == 0
            assert right or number not in corrected
            sums[right] += 1
    assert min(sums[True], sums[False]) == SUMS, sums
    assert abs(len(corrected) - draws / 2) < 10 * draws**0.5 / 2, (len(corrected), draws)


def test_some_packets_are_spoiled() -> None:
    rng = Random(7)
    frame = bytes(range(40))
    spoilt = [spoil(rng, frame) for _ in range(500)]
    assert 20 < sum(len(one) < 40 and frame.startswith(one) for one in spoilt) < 90
    assert 5 < sum(len(one) == 40 and one != frame for one in spoilt) < 60
    assert sum(one == frame for one in spoilt) > 350
    assert spoil(rng, b"") == b"\x00"


def test_a_case_is_made_small() -> None:
    """One packet, its first byte and one command are what a made up difference needs."""
    packets = tuple((1, bytes([at]) + bytes(30)) for at in range(20))
    commands = tuple({"do": "register_write", "index": at} for at in range(9))
    case = Case("s", (1,), False, commands, packets)

    def shows(one: Case) -> bool:
        starts = [frame[0] for _, frame in one.packets]
        return 13 in starts and {"do": "register_write", "index": 4} in one.commands

    small = shrink(case, shows)
    assert small.packets == ((1, b"\x0d"),)
    assert small.commands == ({"do": "register_write", "index": 4},)
    tries = []

    def counted(one: Case) -> bool:
        tries.append(one)
        return shows(one)

    shrink(case, counted, runs=5)
    assert len(tries) == 5


def test_fewer_and_first() -> None:
    assert list(fewer(range(100), lambda some: {3, 77} <= set(some))) == [3, 77]
    assert list(fewer([1, 2, 3], lambda _: True)) == []
    for wanted in range(1, 20):
        assert first(19, partial(operator.le, wanted)) == wanted


def outcome(*frames: bytes, state: dict[str, Any] | None = None) -> Outcome:
    return Outcome({1: list(frames)}, [], state or {})


def test_what_differs() -> None:
    case = Case("s", (1,), False, ({"do": "mc_mgrp_create", "group": 1},), ())
    same = compare(case, outcome(b"a"), outcome(b"a"), NAMES)
    assert same.same
    frames = compare(case, outcome(b"a", b"b"), outcome(b"a"), NAMES)
    assert frames.kind == "frames"
    assert "port 1: one sent 2 frames, other 1" in frames.problem
    turned = (outcome(b"a", b"b"), outcome(b"b", b"a"))
    assert compare(case, *turned, NAMES).kind == "frames"
    assert compare(replace(case, reorders=True), *turned, NAMES).reordered
    state = compare(case, outcome(state={"counter c[0]": 1}), outcome(state={"counter c[0]": 2}), NAMES)
    assert state.problem == "counter c[0]: one 1, other 2"
    answer = replace(outcome_with("done")), replace(outcome_with("refused: 3"))
    assert compare(case, *answer, NAMES).kind == "answer"
    crash = Outcome({1: []}, crash="one ended")
    assert compare(case, crash, outcome(), NAMES).kind == "crash"
    endless = Outcome({1: []}, endless=0)
    assert "other does not come to rest" in compare(case, outcome(), endless, NAMES).problem


def outcome_with(answer: str) -> Outcome:
    return Outcome({1: []}, [answer])


def test_clocks_are_taken_out_of_programs() -> None:
    """Reads are 0, writes stay; random numbers have one value, unless both have one generator."""
    stamp = {"type": "field", "value": ["standard_metadata", "enq_timestamp"]}
    low, high = ({"type": "hexstr", "value": value} for value in ("0x1", "0x9"))
    calls: list[Any] = [
        {"op": "assign", "parameters": [stamp, stamp]},
        {"op": "modify_field_rng_uniform", "parameters": [stamp, low, high]},
    ]
    source = {"actions": [{"primitives": calls}], "learn_lists": [{"elements": [stamp]}]}
    copy, out = known.without_sources(source)
    assert copy["actions"][0]["primitives"][0]["parameters"] == [stamp, {"type": "hexstr", "value": "0x0"}]
    assert copy["actions"][0]["primitives"][1]["parameters"] == [stamp, low, low]
    assert copy["learn_lists"] == source["learn_lists"]
    assert out == ["modify_field_rng_uniform", "standard_metadata.enq_timestamp"]
    kept, _ = known.without_sources(source, alike=True)
    assert kept["actions"][0]["primitives"][1]["parameters"] == [stamp, low, high]
    assert source["actions"][0]["primitives"][0]["parameters"] == [stamp, stamp]


def test_varbits_are_not_compared() -> None:
    """Where a field is a varbit: of other fields comparisons stay."""
    source = json.loads((REPOSITORY / "switch/tests/programs/varbits.json").read_text())
    types = {one["name"]: one["fields"] for one in source["header_types"]}
    fields = [[one["name"], field] for one in source["headers"] for field in types[one["header_type"]]]
    varbit = next([header, field[0]] for header, field in fields if field[1] == "*")
    fixed = next([header, field[0]] for header, field in fields if field[1] == 8)
    sides = [{"type": "field", "value": place} for place in (varbit, fixed)]
    nodes = [{"op": "==", "left": side, "right": side} for side in sides]
    source["actions"][0]["primitives"] = [{"op": "assign", "parameters": [sides[1], *nodes]}]
    for alike, wanted in ((False, {"type": "hexstr", "value": "0x0"}), (True, sides[0])):
        copy, out = known.without_sources(source, alike)
        _, first_node, second_node = copy["actions"][0]["primitives"][0]["parameters"]
        assert first_node == {"op": "==", "left": wanted, "right": wanted}
        assert second_node == nodes[1]
        assert ("comparison of varbits" in out) is not alike


def test_known_ends_of_bmv2() -> None:
    loaded = program("stacks")
    assert known.reason_of_end(loaded, "what():  vector::_M_range_check: __n") is not None
    assert known.reason_of_end(loaded, "terminate called after throwing 'std::bad_alloc'") is None
    assert known.reason_of_end(loaded, "ended with status -6") is None
    assert known.reason_of_end(program("ends"), "ended with status -6") == known.ASSERTION


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_are_cleaned_for_bmv2(path: Path) -> None:
    """Both controls begin with the new table and go on as before; the rest is as it was."""
    source = json.loads(path.read_text())
    clean = cleaned(source)
    kept = guarded(source)
    assert source == json.loads(path.read_text())
    assert {**kept, "actions": source["actions"]} == source
    for before, after in zip(source["pipelines"], clean["pipelines"], strict=True):
        added = after["tables"][-1]
        assert after["init_table"] == added["name"]
        assert added["base_default_next"] == before["init_table"]
        assert after["tables"][:-1] == before["tables"]
    ids = [action["id"] for action in clean["actions"]]
    assert len(ids) == len(set(ids))
    assert clean["parsers"] == source["parsers"]


def _call(op: str, *parameters: Any) -> dict[str, Any]:
    return {"op": op, "parameters": list(parameters)}


def _number(value: int) -> dict[str, Any]:
    return {"type": "hexstr", "value": hex(value)}


def test_bmv2_keeps_to_the_ends_of_arrays_and_frees_unions() -> None:
    """Calls that may be past the end are passed by, jumps lead to where they did, what is popped is removed."""
    array = {"type": "counter_array", "value": "few"}
    index = {"type": "field", "value": ["h", "index"]}
    stack = {"type": "header_union_stack", "value": "options"}
    condition = {"type": "field", "value": ["h", "flag"]}
    calls = [
        _call("_jump_if_zero", condition, _number(3)),
        _call("count", array, index),
        _call("pop", stack, _number(1)),
        _call("count", array, _number(1)),
        _call("_jump", _number(5)),
    ]
    names = ["options[0].a", "options[0].b", "options[1].a", "options[1].b"]
    source: dict[str, Any] = {
        "headers": [{"id": number, "name": name} for number, name in enumerate(names)],
        "header_unions": [{"id": 0, "header_ids": [0, 1]}, {"id": 1, "header_ids": [2, 3]}],
        "header_union_stacks": [{"name": "options", "header_union_ids": [0, 1]}],
        "counter_arrays": [{"name": "few", "size": 2}],
        "actions": [{"primitives": calls}],
    }
    found = guarded(source)["actions"][0]["primitives"]
    assert source["actions"][0]["primitives"] == calls
    ops = [
        "_jump_if_zero",
        "_jump_if_zero",
        "count",
        "pop",
        "remove_header",
        "remove_header",
        "count",
        "_jump",
    ]
    assert [call["op"] for call in found] == ops
    assert found[0]["parameters"][1] == _number(6)  # where the second count is now
    guard = found[1]["parameters"]
    assert guard[1] == _number(3)
    assert guard[0]["value"]["value"]["cond"]["value"] == {"op": "<", "left": index, "right": _number(2)}
    assert [call["parameters"][0]["value"] for call in found[4:6]] == names[2:]
    assert found[7]["parameters"] == [_number(8)]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_are_changed_a_little(path: Path) -> None:
    """One to four values differ, in the same places of the same structure, repeatably."""
    source = json.loads(path.read_text())
    changed = [_changes(source, mutated(source, Random(seed))) for seed in range(30)]
    assert source == json.loads(path.read_text())
    assert changed == [_changes(source, mutated(source, Random(seed))) for seed in range(30)]
    assert all(len(one) <= CHANGES_MAX for one in changed)
    places = {place for one in changed for place, _, _ in one}
    assert places
    for where, before, after in (change for one in changed for change in one):
        assert where[-1] in ("op", "value"), where
        if before == "assign":
            assert after in P4_14
            continue
        groups = [group for group in (COMPARISONS, MASKED, BITWISE, LOGICAL) if before in group]
        assert not groups or any(after in group for group in groups)
        if not groups:
            assert len(after) <= max(len(before), 3), (before, after)


def _changes(before: Any, after: Any, where: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any, Any]]:
    if isinstance(before, dict):
        assert before.keys() == after.keys()
        if before.get("op") == "assign" and after["op"] in P4_14:
            return [((*where, "op"), "assign", after["op"])]
        return [one for key in before for one in _changes(before[key], after[key], (*where, key))]
    if isinstance(before, list):
        assert len(before) == len(after)
        return [one for at, old in enumerate(before) for one in _changes(old, after[at], (*where, at))]
    return [] if before == after else [(where, before, after)]


def test_what_is_no_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x is no program of BMv2: KeyError 'header_types'"):
        read("x", {})
    path = tmp_path / "list.json"
    path.write_text("[]")
    with pytest.raises(ValueError, match="list instead of an object"):
        load(path)


def test_captures(tmp_path: Path) -> None:
    """Written and read; a last frame that is not whole yet is not there."""
    path = tmp_path / "1_in.pcap"
    pcap.write(path, [(0, b"abc"), (1_500_000, b"")])
    assert pcap.read(path) == [b"abc", b""]
    path.write_bytes(path.read_bytes() + pcap.record(2, b"abcdef")[:-1])
    assert pcap.read(path) == [b"abc", b""]
    assert pcap.read(tmp_path / "none.pcap") == []
    assert pcap.record(1_500_000, b"")[:8] == bytes.fromhex("01000000 20a10700")


class Recorded:
    """A connection that keeps what is called, and answers with handles."""

    def __init__(self, code: int | None = None) -> None:
        self.calls: list[tuple[str, bytes]] = []
        self.code = code

    def call(self, service: str, method: str, *arguments: thrift.Value) -> int:
        self.calls.append((f"{service}:{method}", thrift.encode(thrift.struct_of(*arguments))))
        if self.code is not None:
            raise thrift.Refused(self.code)
        return len(self.calls) + 40


def test_an_entry_on_the_wire() -> None:
    """Byte for byte: context, table, key of one ternary field, action, data, priority."""
    connection: Any = Recorded()
    key = [{"kind": "ternary", "width": 12, "value": 0x120, "mask": 0xFF0}]
    common = {"table": "t", "action": "a", "data": [(5, 9)]}
    session = Session(connection)
    assert session.send({"do": "table_add", "key": key, "priority": 7, **common}) == "done"
    assert session.send({"do": "table_modify", "entry": 0, **common}) == "done"
    assert session.send({"do": "table_delete", "table": "t", "entry": 9}) == "done"
    names = [name for name, _ in connection.calls]
    assert names == [f"standard:bm_mt_{name}_entry" for name in ("add", "modify", "delete")]
    ternary = "0b0001 00000002 0120" + "0b0002 00000002 0ff0" + "00"
    part = "080001 00000002" + "0c0004" + ternary + "00"
    text = "080001 00000000" + "0b0002 00000001 74" + "0f0003 0c 00000001" + part
    text += "0b0004 00000001 61" + "0f0005 0b 00000001 00000002 0005" + "0c0006 080001 00000007 00" + "00"
    assert connection.calls[0][1] == bytes.fromhex(text.replace(" ", ""))
    assert bytes.fromhex("080003 00000029".replace(" ", "")) in connection.calls[1][1]  # handle 41
    assert bytes.fromhex("080003 00100000".replace(" ", "")) in connection.calls[2][1]  # no such entry


def test_entries_are_read_back_without_what_does_not_count() -> None:
    """Prefixes count from the first bit of the key, not of its bytes."""
    assert compared({1: 1, 3: {1: b"\x0a\xbc", 2: 4}}, 12) == ["lpm", 0xA, 4]
    assert compared({1: 1, 3: {1: b"\x0a\xbc", 2: 0}}, 12) == ["lpm", 0, 0]
    assert compared({1: 2, 4: {1: b"\xff", 2: b"\x0f"}}, 8) == ["ternary", 0xF, 0xF]
    assert compared({1: 0, 2: {1: b"\x07"}}, 8) == {1: 0, 2: {1: b"\x07"}}


def test_refusals_have_codes() -> None:
    connection: Any = Recorded(code=17)
    session = Session(connection)
    add = {"do": "table_add", "table": "t", "key": [], "action": "a", "data": []}
    assert session.send(add) == "refused: 17"
    assert session.entries == {"t": [None]}
    assert whole_bytes(0x1FF, 9) == b"\x01\xff"
