"""The model of the chip runs registers as the chip does: small programs, and what it refuses."""

from pathlib import Path

import pytest
from tofino.chip import SOURCES, TOFINO2, Chip
from tofino.syntax import SyntaxProblem, read_program
from tofino.tokens import Sources
from tofino.values import ProgramProblem

# Frames are the header `ask`, and leave by device port 8, or go round as often as `rounds` says.
PROGRAM = """
const PortId_t OUT = 8;
const PortId_t ROUND = 6;
const bit<16> MOST = 3;

header ask_t {
    bit<8> rounds;
    bit<8> index;
    bit<16> a;
    bit<16> b;
    bit<16> c;
}
struct headers_t { ask_t ask; }
struct meta_t { bool unicast; }
struct pair { bit<16> lo; bit<16> hi; }

parser P(packet_in packet, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ask);
        transition accept;
    }
}
control C(inout headers_t hdr, inout meta_t meta,
          in ingress_intrinsic_metadata_t ig_intr_md,
          in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
          inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
          inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    bit<16> told = 0;
    INSIDE
    apply {
        meta.unicast = true;
        ig_tm_md.ucast_egress_port = OUT;
        if (hdr.ask.rounds != 0) {
            ig_tm_md.ucast_egress_port = ROUND;
            hdr.ask.rounds = hdr.ask.rounds - 1;
        }
        told = hdr.ask.a;
        APPLY
    }
}
control D(packet_out packet, inout headers_t hdr, in meta_t meta,
          in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply { packet.emit(hdr.ask); }
}
parser EP(packet_in packet, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start { packet.extract(eg_intr_md); transition accept; }
}
control EC(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg_intr_md,
           in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
           inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
           inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    @name(".left") Register<bit<8>, bit<1>>(1) left;
    RegisterAction<bit<8>, bit<1>, bit<8>>(left) one_more = {
        void apply(inout bit<8> value) { value = value + 1; }
    };
    apply { one_more.execute(0); }
}
control ED(packet_out packet, inout headers_t hdr, in meta_t meta,
           in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {}
}
Pipeline(P(), C(), D(), EP(), EC(), ED()) pipe;
Switch(pipe) main;
"""

COUNT = """
    @name(".count") Register<bit<16>, bit<8>>(4) count;
    RegisterAction<bit<16>, bit<8>, bit<16>>(count) next = {
        void apply(inout bit<16> value, out bit<16> result) {
            value = value + 1;
            result = value;
        }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(count) clear = {
        void apply(inout bit<16> value) {
            value = 0;
        }
    };
"""


class Asked:
    """A chip with a program; each of its frames answers with `a`, `b` and `c` as they left."""

    def __init__(self, folder: Path, inside: str, apply: str) -> None:
        source = folder / "program.p4"
        source.write_text(PROGRAM.replace("INSIDE", inside).replace("APPLY", apply))
        self.chip = Chip(read_program(SOURCES / "front_end" / "t2na.p4", source), TOFINO2)

    def ask(self, index: int, a: int = 0, b: int = 0, port: int = 8) -> tuple[int, int, int]:
        (copy,) = self.chip.forward(port, frame(index, a, b)).out
        return answer(copy.data)


def frame(index: int, a: int = 0, b: int = 0, rounds: int = 0) -> bytes:
    return bytes([rounds, index]) + a.to_bytes(2, "big") + b.to_bytes(2, "big") + bytes(2)


def answer(data: bytes) -> tuple[int, int, int]:
    a, b, c = (int.from_bytes(data[at : at + 2], "big") for at in (2, 4, 6))
    return a, b, c


def test_a_counter_goes_on_from_frame_to_frame(tmp_path: Path) -> None:
    """Each cell by itself, from zero."""
    asked = Asked(tmp_path, COUNT, "hdr.ask.a = next.execute(hdr.ask.index);")
    assert [asked.ask(index)[0] for index in (0, 0, 3, 0, 3)] == [1, 2, 1, 3, 2]


def test_actions_of_one_register_share_its_cells(tmp_path: Path) -> None:
    """One of them has no output. They are called by a condition, and in an action."""
    inside = COUNT + "action start_anew(bit<8> index) { clear.execute(index); }"
    apply = """
        if (hdr.ask.a == 1) { start_anew(hdr.ask.index); } else { hdr.ask.b = next.execute(hdr.ask.index); }
    """
    asked = Asked(tmp_path, inside, apply)
    assert [asked.ask(2, a)[1] for a in (0, 0, 1, 0)] == [1, 2, 0, 1]


def test_entries_of_the_program_are_tried_in_their_order(tmp_path: Path) -> None:
    """Values, masks and what does not matter; the default where none holds."""
    inside = """
        action answer(bit<16> number) { hdr.ask.c = number; }
        action counts() { hdr.ask.c = 100; }
        table judges {
            key = { hdr.ask.a: ternary; hdr.ask.b: ternary; hdr.ask.isValid(): exact; }
            actions = { answer; counts; }
            const entries = {
                (1, 2, true): answer(1);
                (1, _, true): answer(2);
                (0 &&& 0xfffe, 7, true): answer(3);
                (4, 4, false): answer(4);
            }
            const default_action = counts();
            size = 4;
        }
    """
    asked = Asked(tmp_path, inside, "judges.apply();")
    questions = {(1, 2): 1, (1, 7): 2, (0, 7): 3, (0, 6): 100, (4, 4): 100, (2, 2): 100}
    assert {question: asked.ask(0, *question)[2] for question in questions} == questions


PAIR = """
    @name(".pairs") Register<pair, bit<8>>(16, INITIAL) pairs;
    RegisterAction2<pair, bit<8>, bit<16>, bit<16>>(pairs) step = {
        void apply(inout pair value, out bit<16> rv1, out bit<16> rv2) {
            rv1 = value.lo;
            rv2 = value.hi;
            if (value.lo == told && value.hi < MOST) {
                value.hi = value.hi + 1;
            } else if (value.lo != told) {
                value.lo = told;
                value.hi = 0;
            }
        }
    };
"""
STEP = "hdr.ask.b = step.execute(hdr.ask.index, hdr.ask.c);"


@pytest.mark.parametrize("initial", ["{ 5, 1 }", "{ lo = 5, hi = 1 }", "(pair){ lo = 16w5, hi = 16w1 }"])
def test_a_pair_with_conditions_and_two_outputs(initial: str, tmp_path: Path) -> None:
    """The action knows a variable of the control as it is at the time of the call, and a constant."""
    asked = Asked(tmp_path, PAIR.replace("INITIAL", initial), STEP)
    assert [asked.ask(1, a)[1:] for a in (5, 5, 5, 7, 7, 7)] == [
        (5, 1),
        (5, 2),
        (5, 3),
        (5, 3),
        (7, 0),
        (7, 1),
    ]
    assert asked.ask(2, 5)[1:] == (5, 1)  # other cells are as they were


def test_an_initial_number(tmp_path: Path) -> None:
    inside = COUNT.replace("(4)", "(4, 0xfffe)")
    asked = Asked(tmp_path, inside, "hdr.ask.a = next.execute(hdr.ask.index);")
    assert [asked.ask(1)[0] for _ in range(3)] == [0xFFFF, 0, 1]


def test_an_output_that_nobody_sets_is_zero(tmp_path: Path) -> None:
    """And one that nobody asks for is left out, where the extern lets it."""
    inside = COUNT.replace("out bit<16> result) {", "out bit<16> result, out bit<16> more) {").replace(
        "result = value;", ""
    )
    asked = Asked(tmp_path, inside, "hdr.ask.a = next.execute(hdr.ask.index);")
    assert asked.ask(0, a=9) == (0, 0, 0)


def test_a_struct_is_copied_not_shared(tmp_path: Path) -> None:
    inside = """
    @name(".pairs") Register<pair, bit<8>>(1) pairs;
    pair mine;
    pair theirs;
    RegisterAction<pair, bit<8>, pair>(pairs) swap = {
        void apply(inout pair value, out pair result) {
            result = value;
            value = mine;
        }
    };
    """
    apply = """
        mine.lo = hdr.ask.a;
        mine.hi = hdr.ask.b;
        theirs = swap.execute(hdr.ask.index);
        hdr.ask.a = theirs.lo;
        mine.lo = 77;
    """
    asked = Asked(tmp_path, inside, apply)
    assert [asked.ask(0, a)[0] for a in (1, 2, 3)] == [0, 1, 2]


def test_what_the_front_end_makes_of_it(tmp_path: Path) -> None:
    """p4c gives names to all, and takes calls out of expressions."""
    inside = """
    @name("C.tmp") bit<16> tmp;
    @name(".count") @id(0x13000001) Register<bit<16>, bit<8>>(32w4, 16w6) count_0;
    @name("C.next") RegisterAction<bit<16>, bit<8>, bit<16>>(count_0) next_0 = {
        @name("C.next.apply") void apply(inout bit<16> value, out bit<16> result) {
            @name("C.next.more") bit<16> more_0;
            more_0 = value + 16w1;
            value = more_0;
            result = value;
        }
    };
    """
    asked = Asked(tmp_path, inside, "tmp = next_0.execute(hdr.ask.index); hdr.ask.a = tmp;")
    assert [asked.ask(0)[0] for _ in range(2)] == [7, 8]


def test_a_second_access_in_a_pass_is_refused(tmp_path: Path) -> None:
    """By whichever action and to whichever cell; in the next pass it is a first one."""
    twice = "hdr.ask.a = next.execute(hdr.ask.index); if (hdr.ask.b == 1) { clear.execute(0); }"
    asked = Asked(tmp_path, COUNT, twice)
    assert asked.ask(1)[0] == 1
    with pytest.raises(ProgramProblem, match="count is accessed twice"):
        asked.ask(1, b=1)
    (copy,) = asked.chip.forward(8, frame(3, rounds=2)).out
    assert answer(copy.data)[0] == 3


@pytest.mark.parametrize("index", [4, 255])
def test_an_index_beyond_the_register_is_refused(index: int, tmp_path: Path) -> None:
    asked = Asked(tmp_path, COUNT, "hdr.ask.a = next.execute(hdr.ask.index);")
    asked.ask(3)
    with pytest.raises(ProgramProblem, match="count has 4 cells"):
        asked.ask(index)


def test_an_action_does_not_know_variables_of_apply(tmp_path: Path) -> None:
    """Nor does the compiler let it."""
    inside = COUNT.replace("value = value + 1;", "value = step;")
    asked = Asked(tmp_path, inside, "bit<16> step = 4; hdr.ask.a = next.execute(hdr.ask.index);")
    with pytest.raises(ProgramProblem, match="step is not known"):
        asked.ask(0)


@pytest.mark.parametrize(
    ("inside", "apply", "problem"),
    [
        (COUNT, "hdr.ask.a = next.execute((bit<16>)hdr.ask.index);", "none at"),
        (COUNT, "hdr.ask.a = next.execute(hdr.ask.index, hdr.ask.b);", "2 outputs of 1"),
        (COUNT, "hdr.ask.a = count.read(hdr.ask.index);", "Register.read is not known"),
        (COUNT.replace("(count) next", "(told) next"), "next.execute(hdr.ask.index);", "told is no register"),
        (
            PAIR.replace("INITIAL", "{ 0, 0 }").replace("apply(inout pair", "apply(inout bit<16>"),
            STEP,
            "pairs has cells of",
        ),
    ],
)
def test_what_the_compiler_refuses_is_refused(inside: str, apply: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ProgramProblem, match=problem):
        Asked(tmp_path, inside, apply).ask(0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("void apply(inout bit<16> value, out", "void apply(in bit<16> value, out"),
        ("void apply(inout bit<16> value, out", "void apply(inout bit<16> value, in"),
        ("void apply", "void predicate"),
        ("RegisterAction<bit<16>, bit<8>, bit<16>>", "RegisterAction2<bit<16>, bit<8>, bit<16>, bit<16>>"),
        ("RegisterAction<", "DirectRegisterAction<"),
        ("};", "}"),
    ],
)
def test_what_the_reader_does_not_know_is_an_error(before: str, after: str, tmp_path: Path) -> None:
    assert before in COUNT
    with pytest.raises(SyntaxProblem):
        Asked(tmp_path, COUNT.replace(before, after), "")


def test_each_pipe_has_cells_of_its_own(tmp_path: Path) -> None:
    apply = "ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port; hdr.ask.a = next.execute(hdr.ask.index);"
    asked = Asked(tmp_path, COUNT, apply)
    ports = [TOFINO2.device_port(port) for port in (0, 119, 120)]
    assert [port >> 7 for port in ports] == [0, 0, 1]
    assert [asked.ask(0, port=port)[0] for port in ports] == [1, 2, 1]
    left = {
        pipe: cells[0].value.value
        for (pipe, name), cells in asked.chip.switch.registers.items()
        if name == "left"
    }
    assert left == {0: 2, 1: 1}


def test_a_new_state_is_a_chip_that_starts(tmp_path: Path) -> None:
    asked = Asked(tmp_path, COUNT, "hdr.ask.a = next.execute(hdr.ask.index);")
    asked.ask(0)
    asked.chip.install({"tables": [], "defaults": [], "multicast_groups": []}, [])
    assert asked.ask(0)[0] == 1


def test_frames_go_round_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    """Several in the switch at a time, each one pass at a time, by the clock that is set between."""
    apply = "hdr.ask.a = next.execute(0); hdr.ask.c = ig_prsr_md.global_tstamp[15:0];"
    switch = Asked(tmp_path, COUNT, apply).chip
    assert [switch.enter(8, frame(0, b=b, rounds=b)).recirculated for b in (1, 2, 3)] == [1, 1, 1]
    assert [answer(data)[:2] for data in switch.recirculating] == [(1, 1), (2, 2), (3, 3)]
    switch.switch.now_ns = 40
    assert switch.pass_one(1).out == []
    (copy,) = switch.enter(8, frame(0, b=9)).out
    assert (copy.device_port, answer(copy.data)) == (8, (5, 9, 40))
    assert [answer(data)[:2] for data in switch.recirculating] == [(1, 1), (3, 3), (4, 2)]
    del switch.recirculating[1]
    (copy,) = switch.pass_one(1).out
    assert answer(copy.data)[:2] == (6, 2)
    with pytest.raises(AssertionError, match="other frames"):
        switch.forward(8, frame(0))
    (copy,) = switch.pass_one(0).out
    assert answer(copy.data)[:2] == (7, 1)
    assert switch.recirculating == []


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("#define A\n#ifdef A\nONE\n#else\nTWO\n#endif\nEND", ["ONE", "END"]),
        ("#ifdef A\nONE $\n#else // not A\nTWO\n#endif\nEND", ["TWO", "END"]),
        (
            "#ifndef A\n#define A\n#ifdef A\nONE\n#endif\n#else\n#define B\n#endif\n#ifdef B\nTWO\n#endif",
            ["ONE"],
        ),
        ("#ifdef A\n#ifndef B\nONE\n#endif\n#endif\nEND", ["END"]),
        ("#ifdef A\n#ifdef B\nONE\n#else\nTWO\n#endif\n#else\nEND\n#endif", ["END"]),
    ],
)
def test_conditions_of_the_preprocessor(source: str, read: list[str], tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text(source)
    assert [token.text for token in Sources().tokens(path)] == read


@pytest.mark.parametrize(
    "source", ["#if A\n#endif", "#ifdef A", "#endif", "#else", "#define A 1", "#undef A"]
)
def test_directives_that_are_not_known(source: str, tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text(source)
    with pytest.raises(SyntaxProblem):
        list(Sources().tokens(path))
