"""The Tofino program (targets/tofino), run from its sources on a model of the chip, does what the others do."""

import functools
import itertools
import os
import tempfile
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oracle.codec import Worm
from oracle.trace import Record, decode_record, encode_trace, without_times
from reference import Outcome, ReferenceSwitch
from test_p4_artifacts import compile_script
from test_reference import Frames
from tofino import chip
from tofino.reference_tofino import CELLS_A_FRAME, Tofino2Reference, TofinoReference
from tofino.syntax import Program, read_program
from vector_files import load_vectors
from wormcast.wire import (
    CE_QUEUE_DEPTH,
    CPU_PORT,
    DROP_PORT,
    RECIRCULATE_PORT,
    TRACE_QUEUE_MAX,
    TRACE_STAY_MAX,
    DropReason,
    Kind,
)

Json = dict[str, Any]
DOCUMENT = load_vectors("worm_switch.json")
RANDOM_FRAMES = int(os.environ.get("WORMCAST_RANDOM_FRAMES", "300"))
READINGS = ("sources", "p4c")
PROGRAMS = ("tofino.p4", "tofino2.p4")


@functools.cache
def program_of(reading: str, top: str = "tofino.p4") -> Program:
    """A program as our reader takes it from its sources, or from what p4c's front end made of them."""
    if reading == "sources":
        return chip.load(top=top)
    compiler = compile_script.find_compiler()
    if compiler is None:
        pytest.skip("p4c-bm2-ss is not on this machine; the program was run as read from its sources only")
    with tempfile.TemporaryDirectory() as folder:
        return read_program(compile_script.front_end_of_chip(compiler, Path(top).stem, Path(folder)))


def reference_of(state: Json, top: str) -> TofinoReference:
    """What the chip with this program is held against."""
    return TofinoReference(state) if top == "tofino.p4" else Tofino2Reference(state)


def installed(state: str, reading: str = "sources", top: str = "tofino.p4") -> chip.Chip:
    """A chip in a state of the vectors."""
    switch = chip.Chip(program_of(reading, top), chip.TARGETS[top])
    ports = [*DOCUMENT["states"][state]["ports"], 9, 10]
    switch.install(DOCUMENT["states"][state], ports)
    return switch


def outcome_of(
    switch: chip.Chip, port: int, frame: bytes, deq_qdepth: int = 0, egress_port: int | None = None
) -> Outcome:
    """What the chip made of a frame, in the words of the reference; times of its records are left out."""
    header = b"" if egress_port is None else (egress_port << 7).to_bytes(2, "big")
    device_port, cells_a_frame = switch.target.device_port, CELLS_A_FRAME[switch.target.declarations]
    result = switch.forward(device_port(port), header + frame, deq_qdepth * cells_a_frame)
    back = {device_port(number): number for number in (*range(254), CPU_PORT)}
    outcome = Outcome(recirculated=result.recirculated)
    for copy in result.out:
        to = back[copy.device_port]
        data = copy.data
        if to == CPU_PORT:
            assert int.from_bytes(data[:2], "big") == port << 7
            data = data[2:]
        outcome.out.append((to, without_times(frame, data)))
    cells = result.grown
    outcome.drops = Counter({DropReason(cell).name: n for cell, n in cells.get("drops", {}).items()})
    outcome.filtered = Counter({Kind(cell).name: n for cell, n in cells.get("filtered", {}).items()})
    outcome.kinds = Counter({_kind(cell): n for cell, n in cells.get("kinds", {}).items()})
    assert cells["ingress_ports"] == {port: 1}
    leaving = Counter(to for to, _ in outcome.out)
    if result.recirculated:
        leaving[RECIRCULATE_PORT] = result.recirculated
    assert cells.get("egress_ports", {}) == dict(leaving)
    return outcome


def _kind(cell: int) -> str:
    return Kind(cell).name if cell in Kind.__members__.values() else str(cell)


def assert_equal(actual: Outcome, expected: Outcome, what: str) -> None:
    """Frames in any order, and counters."""
    assert sorted(actual.out) == sorted(expected.out), what
    assert +actual.drops == +expected.drops, what
    assert +actual.filtered == +expected.filtered, what
    assert +actual.kinds == +expected.kinds, what
    assert actual.recirculated == expected.recirculated, what


@pytest.mark.parametrize("top", PROGRAMS)
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(
    "vector", [pytest.param(vector, id=vector["name"]) for vector in DOCUMENT["vectors"]]
)
def test_tofino_does_what_the_vector_says(vector: Json, reading: str, top: str) -> None:
    """Where the target can; where it can not, what CONTRACT.md says of it."""
    frame = bytes.fromhex(vector["frame"])
    given = (
        vector["ingress_port"],
        frame,
        vector.get("deq_qdepth", 0),
        vector.get("packet_out", {}).get("egress_port"),
    )
    expected = reference_of(DOCUMENT["states"][vector["state"]], top).handle(*given)
    assert_equal(outcome_of(installed(vector["state"], reading, top), *given), expected, vector["name"])


@pytest.mark.parametrize(("flags", "priority"), [(0x06, 3), (0x07, 4), (0xA0, 3), (0xBF, 4)])
@pytest.mark.parametrize("kind", [Kind.UNICAST, Kind.TREE, Kind.GROUP, Kind.BROADCAST])
def test_priority_is_that_of_the_buffer_class(kind: Kind, flags: int, priority: int) -> None:
    """As switch/docs/lossless.md has it: PFC stops only what is of the class that is full."""
    routes = {Kind.UNICAST: b"\x05", Kind.TREE: b"\x05\x00\xff", Kind.GROUP: b"\x00\x07", Kind.BROADCAST: b""}
    worm = Worm(kind=kind, route=routes[kind], payload=b"payload", flags=flags)
    result = installed("small").forward(chip.device_port(3), worm.to_frame())
    assert result.out
    assert result.priorities == [(priority, priority)]


def test_priority_of_what_is_no_worm() -> None:
    """LLDP takes no room of worms; a class D packet is a worm of class 1 once it is in."""
    seen = {}
    for vector in DOCUMENT["vectors"]:
        if vector["name"] in ("IGMP report of a host", "class D: from a member host"):
            switch = installed(vector["state"])
            port = chip.device_port(vector["ingress_port"])
            seen[vector["name"]] = switch.forward(port, bytes.fromhex(vector["frame"])).priorities
    assert seen == {"IGMP report of a host": [(0, 0)], "class D: from a member host": [(3, 3)]}


def test_a_port_without_a_device_port_drops_and_says_so() -> None:
    """Where a controller has not filled the map: never silent, and no frame to device port 0."""
    switch = chip.Chip(program_of("sources"))
    switch.install(DOCUMENT["states"]["small"], ports=[3])
    worm = Worm(kind=Kind.UNICAST, route=b"\x05", payload=b"payload")
    result = switch.forward(chip.device_port(3), worm.to_frame())
    assert not result.out
    assert result.grown["drops"] == {DropReason.PORT_UNKNOWN: 1}


def test_a_frame_of_a_device_port_without_a_port_counts_as_of_none() -> None:
    """It has no role, so a plain host there is no edge."""
    switch = chip.Chip(program_of("sources"))
    switch.install(DOCUMENT["states"]["small"], ports=[5])
    worm = Worm(kind=Kind.UNICAST, route=b"\x05", payload=b"payload")
    result = switch.forward(chip.device_port(3), worm.to_frame())
    assert [copy.device_port for copy in result.out] == [chip.device_port(5)]
    assert result.grown["ingress_ports"] == {DROP_PORT: 1}


@pytest.mark.parametrize(
    "frame",
    [
        b"\x01\x02\x03",
        Worm(kind=Kind.TREE, route=b"\x05\x02\x01\x00\x06\x00\xff", payload=b"payload").to_frame(),
        Worm(kind=Kind.GROUP, route=b"\x00\x07", payload=bytes(20), next=0x0800).to_frame(),
    ],
)
def test_a_packet_out_leaves_as_it_is(frame: bytes) -> None:
    """Whatever it is: a worm that the controller sends is not taken apart, nor marked."""
    outcome = outcome_of(installed("small"), CPU_PORT, frame, 10 * CE_QUEUE_DEPTH, egress_port=5)
    assert outcome == Outcome(out=[(5, frame)])


# Vectors that ask for more than the target reads, or for what it does not check (CONTRACT.md, Tofino).
DIFFERENT = {
    "UNICAST: route of 255 bytes",
    "UNICAST: route of 254 bytes",
    "UNICAST: absorbed without end",
    "TREE: longest sub-route",
    "TREE: a switch does not look into sub-routes",
    "TREE: missing ports beyond the small ones",
    "TREE: sixteen branches",
    "TREE: sixteen sub-routes of odd length",
    "TREE: missing ports on a switch with many",
    "TREE: port twice",
    "TREE: ports descend",
    "TREE: ports descend behind a sub-route",
    "TREE: seventeen branches",
    "TRACE: queue",
    "TRAIN: of one frame, in packet mode",
    "TRAIN: TREE of one frame, in packet mode",
    "TRAIN: of one frame, absorbed",
    "TRAIN: of one frame, absorbed in wormhole mode",
    "TRAIN: GROUP",
    "CONTROL: its header is in the checksum",
    "CONTROL: header cut short",
    "WORMHOLE: STOP ends here",
    "INTERRUPT: a head that branches",
    "INTERRUPT: the root gives numbers",
    "INTERRUPT: the head of a later fragment",
    "INTERRUPT: the end of a fragment without its head",
    "guard: UNICAST route of 255 bytes",
    *(vector["name"] for vector in DOCUMENT["vectors"] if vector["drops"] == {"ROUTE_REFUSED": 1}),
    "guard: STOP of a host",
    "guard: RESET of a host",
    "guard: STOP of a switch",
}


# All that is said of GATHER worms, but for what is wrong with any worm.
SAME = {"GATHER: the checksum covers what it says"}


def _names() -> list[str]:
    return [vector["name"] for vector in DOCUMENT["vectors"]]


def test_tofino_differs_from_other_targets_where_listed_and_nowhere_else() -> None:
    """A new vector has to be met, or the difference has to be written down."""
    different = set()
    for vector in DOCUMENT["vectors"]:
        given = (
            vector["ingress_port"],
            bytes.fromhex(vector["frame"]),
            vector.get("deq_qdepth", 0),
            vector.get("packet_out", {}).get("egress_port"),
        )
        state = DOCUMENT["states"][vector["state"]]
        ours, theirs = (switch(state).handle(*given) for switch in (TofinoReference, ReferenceSwitch))
        for outcome in (ours, theirs):
            outcome.out.sort()
            for counts in (outcome.drops, outcome.filtered, outcome.kinds):
                counts += Counter()
        if ours != theirs:
            different.add(vector["name"])
    assert different == DIFFERENT | {name for name in _names() if name.startswith("GATHER: ")} - SAME


class TofinoFrames(Frames):
    """Random frames whose trees are mostly such as a sender builds: sub-routes are lists of branches."""

    def _tree(self, branches: int) -> bytes:
        choose = self.random
        if choose.random() < 0.3:
            return super()._tree(branches)
        ports = sorted({choose.choice([*self.ports, *range(32)]) for _ in range(branches)})
        route = b""
        for port in ports:
            sub_route = b"".join(
                bytes([choose.randrange(254), 0]) for _ in range(choose.choice((0, 0, 1, 2, 7, 15, 31)))
            )
            if len(route) + len(sub_route) + 3 <= 127:
                route += bytes([port, len(sub_route)]) + sub_route
        return route + b"\xff"


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("state", list(DOCUMENT["states"]))
def test_tofino_does_what_its_reference_says(state: str, reading: str) -> None:
    """Frames out and counters, for random frames and queues; WORMCAST_SEED repeats a run."""
    seed = int(os.environ.get("WORMCAST_SEED", "1996"))
    frames = TofinoFrames(seed, DOCUMENT["states"][state])
    reference = TofinoReference(DOCUMENT["states"][state])
    switch = installed(state, reading)
    seen: Counter[str] = Counter()
    for number in range(4 * RANDOM_FRAMES):
        port, frame = frames.next()
        depth = frames.random.choice((0, 0, CE_QUEUE_DEPTH - 1, CE_QUEUE_DEPTH, 10 * CE_QUEUE_DEPTH))
        expected = reference.handle(port, frame, depth)
        actual = outcome_of(switch, port, frame, depth)
        what = f"frame {number} of seed {seed}, {state}: port {port}, depth {depth}, {frame.hex()}"
        assert_equal(actual, expected, what)
        seen.update(expected.drops)
        seen.update(["forwarded"] if expected.out else [])
    # The frames have to reach most of the program for this test to mean anything.
    assert len(seen) >= 9, seen
    assert state == "empty" or seen["forwarded"] > RANDOM_FRAMES / 3, seen


@pytest.mark.parametrize("length", [*range(66), 126, 127, 128, 255])
@pytest.mark.parametrize("kind", list(Kind))
def test_every_length_of_a_route(kind: Kind, length: int) -> None:
    """Each length takes its own way through the parsers; the last byte of the sum is padded or not.

    Behind the route egress finds a trace, where there is one.
    """
    switch, reference = installed("traced"), TofinoReference(DOCUMENT["states"]["traced"])
    route = bytes([5, length - 3] + [1, 0] * 126)[: length - 1] + b"\xff" if length > 2 else b"\xff" * length
    for flags, wrong in itertools.product((0x06, 0x26), (False, True)):
        worm = Worm(kind, route, encode_trace([]) + b"payload", flags, source=7, sequence=length)
        frame = bytearray(worm.to_frame())
        frame[-10 if wrong and length else -1] ^= wrong
        expected = reference.handle(3, bytes(frame), CE_QUEUE_DEPTH)
        assert_equal(outcome_of(switch, 3, bytes(frame), CE_QUEUE_DEPTH), expected, f"{kind.name} {length}")


@pytest.mark.parametrize("payload", [b"", b"\xff", b"\x05\x00\xff", b"\x20", b"payload"])
@pytest.mark.parametrize(
    "route",
    [b"", b"\x05", b"\x05\x00", b"\x05\x00\x28", b"\x05\x04\x01\x00", b"\x05\x00\xff\x06"],
)
def test_no_marker_is_found_behind_the_route(route: bytes, payload: bytes) -> None:
    """The walk of a route that does not end goes on into the payload."""
    switch = installed("small")
    worm = Worm(kind=Kind.TREE, route=route, payload=payload)
    outcome = outcome_of(switch, 3, worm.to_frame())
    assert outcome == Outcome(drops=Counter(TREE_MALFORMED=1), kinds=Counter(TREE=1))


@pytest.mark.parametrize("checksum", [*range(64), 0x00FF, 0x0100, 0x8000, 0xFFEF, 0xFFF0, 0xFFFE])
def test_a_mark_keeps_the_checksum_right(checksum: int) -> None:
    """CE takes 16 from a checksum, and 17 from one below 16."""
    left = Worm(kind=Kind.UNICAST, route=b"", payload=b"", hops=1, sequence=0)
    sequence = (left.checksum() - checksum) % 0xFFFF
    worm = Worm(kind=Kind.UNICAST, route=b"\x05", payload=b"", sequence=sequence)
    switch, reference = installed("small"), TofinoReference(DOCUMENT["states"]["small"])
    ((_, plain),) = outcome_of(switch, 3, worm.to_frame()).out
    assert int.from_bytes(plain[24:26], "big") == checksum
    expected = reference.handle(3, worm.to_frame(), CE_QUEUE_DEPTH)
    assert_equal(outcome_of(switch, 3, worm.to_frame(), CE_QUEUE_DEPTH), expected, f"{checksum:#06x}")


@pytest.mark.parametrize("kind", range(16))
def test_each_bit_of_kinds_is_of_one_kind(kind: int) -> None:
    """The program asks for each by itself."""
    worm = Worm(kind=kind, route=b"\x05", payload=b"payload", source=5)
    for kinds in (0, *(1 << bit for bit in range(8)), 0xFF):
        state = deepcopy(DOCUMENT["states"]["guarded"])
        next(entry for entry in state["tables"] if "kinds" in entry["parameters"])["parameters"]["kinds"] = (
            kinds
        )
        switch = chip.Chip(program_of("sources"))
        switch.install(state, state["ports"])
        actual = outcome_of(switch, 0, worm.to_frame())
        assert_equal(actual, TofinoReference(state).handle(0, worm.to_frame()), f"{kind} of {kinds:#x}")
        assert ("KIND_REFUSED" in actual.drops) != bool(kinds >> kind & 1)


def test_a_group_worm_is_not_held_against_the_longest_route() -> None:
    """Its route is wrong, and it counts as that."""
    worm = Worm(kind=Kind.GROUP, route=bytes(9), payload=b"payload", source=5)
    assert outcome_of(installed("guarded"), 0, worm.to_frame()).drops == {"GROUP_MALFORMED": 1}


@pytest.mark.parametrize(
    ("kind", "route"),
    [
        (Kind.UNICAST, b"\x05"),
        (Kind.UNICAST, b"\xfe\xfe\x05"),
        (Kind.TREE, b"\x05\x00\xff"),
        (Kind.GROUP, b"\x01\x2c"),
    ],
)
def test_a_port_gets_its_rate_and_no_more(kind: Kind, route: bytes) -> None:
    """Bytes of whole frames, each once in however many passes; what is refused takes nothing."""
    worm = Worm(kind=kind, route=route, payload=bytes(1000), source=5)
    frame, forged = worm.to_frame(), replace(worm, source=8).to_frame()
    state = deepcopy(DOCUMENT["states"]["guarded"])
    rate = 1_000_000
    state["meters"] = [{"meter": "rates", "index": 0, "rate_bytes": rate, "burst_bytes": 3 * len(frame)}]
    switch = chip.Chip(program_of("sources"))
    switch.install(state, state["ports"])
    frame_ns = 1_000_000_000 * len(frame) // rate + 1
    now_ns = 0

    def drops(frame: bytes, after_ns: int = 0) -> list[int]:
        nonlocal now_ns
        now_ns += after_ns
        return list(switch.forward(chip.device_port(0), frame, now_ns=now_ns).grown.get("drops", {}))

    too_fast, refused = [DropReason.RATE_EXCEEDED], [DropReason.SOURCE_REFUSED]
    for _ in range(3):
        assert drops(frame) == []
        assert drops(forged) == refused
    assert drops(frame) == too_fast
    assert drops(frame, frame_ns // 2) == too_fast
    assert drops(frame, frame_ns // 2 + 1) == []
    assert drops(frame) == too_fast
    assert [drops(frame, frame_ns) for _ in range(20)] == [[]] * 20
    now_ns += 10**12  # a quiet port saves no more than its burst
    assert [drops(frame) for _ in range(4)] == [[], [], [], too_fast]
    # Another port has no bound.
    other = Worm(kind=Kind.UNICAST, route=b"\x05", payload=bytes(1000), source=6).to_frame()
    assert not switch.forward(chip.device_port(1), other, now_ns=now_ns).grown.get("drops")


# What the program multiplies nanoseconds by.
MICROSECONDS = 2**-10 + 2**-16 + 2**-17 + 2**-21
LAST_NS = 1 << 40  # of the clock as egress reads it


def records_of(route: bytes, now_ns: int, stay_ns: int, deq_qdepth: int = 0) -> list[Record]:
    """Those of a worm with this route, oldest first."""
    worm = Worm(Kind.UNICAST, route, encode_trace([]) + b"payload", 0x26)
    frame = worm.to_frame()
    (copy,) = installed("traced").forward(chip.device_port(3), frame, deq_qdepth, now_ns, stay_ns).out
    count = copy.data[26]
    found = [decode_record(copy.data[28 + 16 * at :][:16]) for at in range(count)]
    assert None not in found
    return [record for record in reversed(found) if record]


@pytest.mark.parametrize(
    "now_ns", [0, 255, 256, 1023, 1024, 123_456_789_012, LAST_NS // 2, LAST_NS - 500, (1 << 48) - 500]
)
@pytest.mark.parametrize(
    "stay_ns",
    [0, 1, 700, 1024, 10_000, 999_999, 1 << 32, 5_000_000_000, 16_770_000_000, 16_790_000_000, 10**12],
)
def test_times_of_a_record(now_ns: int, stay_ns: int) -> None:
    """Within 4 microseconds and 72 millionths, also where 32 bits of nanoseconds go round, or 40."""
    (record,) = records_of(b"\x05", now_ns, stay_ns)
    assert record.stay_us == TRACE_STAY_MAX or -4.1 < record.stay_us - MICROSECONDS * stay_ns < 1.1
    assert (record.stay_us == TRACE_STAY_MAX) == (stay_ns > 16_780_000_000)
    left = MICROSECONDS * ((now_ns + stay_ns) % LAST_NS)
    assert 0 <= left - record.left_us < 4.1
    assert abs(1 - 1000 * MICROSECONDS) < 73e-6


def test_the_stay_of_a_worm_that_recirculates_begins_where_it_came_in() -> None:
    records = records_of(b"\xfe\xfe\x05", 2_000_000, 50_000_000)
    assert [round(record.stay_us / 1000) for record in records] == [50, 100, 150]
    assert [round(record.left_us / 1000) for record in records] == [52, 102, 152]


@pytest.mark.parametrize("cells", [0, 1, 0xFFFE, 0xFFFF, 0x10000, 0x7FFFF])
def test_a_record_has_the_cells_of_the_queue(cells: int) -> None:
    (record,) = records_of(b"\x05", 0, 0, cells)
    assert record.queue == min(cells, TRACE_QUEUE_MAX)


def test_a_gather_worm_has_no_trace() -> None:
    """The flag means nothing in it: where its payload ends, nothing is cut off."""
    worm = Worm(Kind.GATHER, b"\x05", b"", 0x26)
    assert outcome_of(installed("traced"), 3, worm.to_frame()).drops == {"KIND_UNKNOWN": 1}
