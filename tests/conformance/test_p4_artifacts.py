"""p4src/compiled is what p4src gives, and the constants of other languages are its constants."""

import hashlib
import importlib.util
import json
import os
import re
import subprocess
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from finsy.proto.p4.config.v1.p4info_pb2 import P4Info
from google.protobuf import text_format
from rig.targets import COMPILED, REPOSITORY
from vector_files import load_vectors
from wormcast import wire as ids
from wormcast.routing import held
from wormcast_planner import TABLES_WITH_DEFAULT

P4SRC = REPOSITORY / "p4src"
TOFINO = REPOSITORY / "targets" / "tofino"
# Names in P4 that the Python enums spell without their prefix.
ENUM_PREFIXES: dict[str, type[IntEnum] | type[ids.Flag]] = {
    "KIND": ids.Kind,
    "FLAG": ids.Flag,
    "ROLE": ids.Role,
}


def _load_compile_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("p4src_compile", P4SRC / "compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compile_script = _load_compile_script()


def _constants() -> dict[str, int]:
    """Every `const bit<N> NAME = value;` of ids.p4 and sizes.p4."""
    found: dict[str, int] = {}
    for name in ("ids.p4", "sizes.p4"):
        text = (P4SRC / "shared" / name).read_text()
        lines = re.findall(r"^const bit<(\d+)> (\w+) = (\w+);", text, re.MULTILINE)
        assert len(lines) == text.count("\nconst "), (
            f"{name} has a constant that is not on a line of its own form"
        )
        for width, constant, value in lines:
            assert constant not in found
            found[constant] = int(value, 0)
            assert found[constant] < 1 << int(width)
    return found


def _drop_reasons() -> dict[str, int]:
    return _enum("drop_reason_t")


def _enum(of: str) -> dict[str, int]:
    text = (P4SRC / "shared" / "ids.p4").read_text()
    body = re.search(rf"enum bit<8> {of} \{{(.*?)\n\}}", text, re.DOTALL)
    assert body is not None
    return {name: int(value) for name, value in re.findall(r"^ +(\w+) = (\d+)", body.group(1), re.MULTILINE)}


def test_python_constants_equal_those_of_p4() -> None:
    """None differs, none is missing on either side."""
    expected = _constants()
    actual = {name: value for name, value in vars(ids).items() if name.isupper() and isinstance(value, int)}
    for prefix, members in ENUM_PREFIXES.items():
        actual |= {f"{prefix}_{member.name}": int(member) for member in members}
    assert actual == expected


def test_python_drop_reasons_equal_those_of_p4() -> None:
    """Names, numbers and order."""
    assert {reason.name: int(reason) for reason in ids.DropReason} == _drop_reasons()
    numbers = list(_drop_reasons().values())
    assert numbers == list(range(len(numbers)))
    assert numbers[-1] < ids.DROPS_CELLS


def test_python_train_events_equal_those_of_p4() -> None:
    """Names, numbers and order."""
    assert {event.name: int(event) for event in ids.TrainEvent} == _enum("train_event_t")
    assert max(ids.TrainEvent) < ids.TRAIN_CELLS


def test_python_registers_of_channels_are_those_of_p4() -> None:
    """What `wormcast worms` reads is there, as wide as it takes it, and its states are those of P4."""
    text = (P4SRC / "v1model" / "channels.p4").read_text()
    names = set(re.findall(r'@name\("\.(\w+)"\) register<', text))
    assert set(held.REGISTERS) <= names
    for count in ("channel_came", "channel_gone"):
        assert f'@name(".{count}") register<bit<{held.COUNT_BITS}>>' in text
    states = dict(re.findall(r"^ +(\w+) = (\d+)", text, re.MULTILINE))
    assert (states["CLAIMING"], states["OPEN"]) == (str(held.CLAIMING), str(held.OPEN))


def test_constants_of_the_contract_are_those_of_p4() -> None:
    """The table of CONTRACT.md."""
    contract = (P4SRC / "CONTRACT.md").read_text()
    rows = re.findall(r"^\| ([A-Z_]+) \| (0x[0-9a-f]+|\d+)", contract, re.MULTILINE)
    assert len(rows) >= 9
    constants = _constants()
    for name, value in rows:
        assert constants[name] == int(value, 0), name


def test_literals_in_p4_that_can_not_be_constants() -> None:
    """Sizes of stacks and varbits are written out in P4; they are MAX_BRANCHES and MAX_ROUTE."""
    metadata = (P4SRC / "v1model" / "metadata.p4").read_text()
    stacks = re.findall(r"_t\[(\d+)\] (\w+);", metadata)
    assert [length for length, _ in stacks] == [str(ids.MAX_BRANCHES)] * 4
    assert ids.GATHER_CELLS == ids.MAX_BRANCHES * ids.GATHER_SLOTS
    ways = re.findall(r"header way(\d+)_t \{ bit<(\d+)> bytes; \}", metadata)
    assert [8 * int(length) for length, _ in ways] == [int(bits) for _, bits in ways]
    lengths = [int(length) for length, _ in ways]
    assert lengths == [2**n for n in reversed(range(ids.MAX_ROUTE.bit_length()))]
    assert sum(lengths) == ids.MAX_ROUTE
    channels = (P4SRC / "v1model" / "channels.p4").read_text()
    kept = re.findall(r"register<bit<(\d+)>>\(PORT_CELLS\) channel_way(\d+);", channels)
    assert [(int(length), int(bits)) for bits, length in kept] == [(n, 8 * n) for n in lengths]
    assert ids.MAX_BACK < 16, "GoBack makes a route of the pieces of 8 to 1 bytes"
    headers = (P4SRC / "shared" / "headers.p4").read_text()
    assert re.findall(r"varbit<(\d+)>", headers) == [str(8 * ids.MAX_ROUTE)]
    every_branch = (
        ("checksum.p4", "BRANCH_FIELDS"),
        ("replication.p4", "KEEP_BRANCH"),
        ("signals.p4", "KEEP_AS_IT_CAME"),
        ("deparser.p4", "KEPT"),
        ("gather.p4", "LEAST_WITH"),
    )
    for name, times in every_branch:
        text = (P4SRC / "v1model" / name).read_text()
        used = [int(index) for index in re.findall(rf"{times}\((\d+)\)", text)]
        assert used == list(range(ids.MAX_BRANCHES))


def test_artifacts_are_those_of_the_sources() -> None:
    """SOURCES.sha256 names every source with its present hash; make -C p4src after a change."""
    assert (COMPILED / "SOURCES.sha256").read_text() == compile_script.hash_sources()
    for line in (COMPILED / "SOURCES.sha256").read_text().splitlines():
        digest, path = line.split("  ")
        assert hashlib.sha256((P4SRC / path).read_bytes()).hexdigest() == digest


def test_recompiling_gives_the_same_bytes() -> None:
    """Byte for byte, where the compiler is the one that made the artifacts."""
    compiler = compile_script.find_compiler()
    if compiler is None:
        pytest.skip("p4c-bm2-ss is not on this machine; only the hashes of the sources were compared")
    recorded = (COMPILED / "COMPILER").read_text().strip()
    present = compile_script.compiler_version(compiler)
    if present != recorded:
        pytest.skip(f"compiled with {recorded}, this machine has {present}: the bytes may differ")
    for name, content in compile_script.compile_program(compiler).items():
        assert (COMPILED / name).read_bytes() == content, f"{name} differs: run make -C p4src"


SINGLE = sorted(
    path for folder in ("bench", "switch/tests", "tests") for path in (REPOSITORY / folder).rglob("*.p4")
)


@pytest.mark.parametrize("source", SINGLE, ids=lambda path: path.stem)
def test_programs_of_one_file_are_compiled_beside_their_source(source: Path) -> None:
    """`p4src/compile.py --beside` after a change; the bytes too where the same compiler is."""
    folder = source.parent
    for name in compile_script.artifact_names(source):
        assert (folder / name).is_file(), f"{name} is missing"
    assert (folder / "SOURCES.sha256").read_text() == compile_script.hash_folder(folder)
    binary = folder / f"{source.stem}.p4info.bin"
    if binary.is_file():
        text = (folder / f"{source.stem}.p4info.txtpb").read_text()
        assert P4Info.FromString(binary.read_bytes()) == text_format.Parse(text, P4Info())
    compiler = compile_script.find_compiler()
    recorded = (folder / "COMPILER").read_text().strip()
    if compiler is None or compile_script.compiler_version(compiler) != recorded:
        return
    for name, content in compile_script.compile_beside(compiler, source).items():
        assert (folder / name).read_bytes() == content, f"{name} differs"


def test_artifacts_hold_no_paths() -> None:
    """The same bytes on every machine: nothing of where they were made."""
    program = json.loads((COMPILED / "wormcast.json").read_text())
    assert program["program"] == "v1model/wormcast.p4"
    for path in COMPILED.iterdir():
        assert not re.search(rb'"/|/(usr|home|tmp|root)/', path.read_bytes()), path.name


def _preambles(file: str = "wormcast.p4info.txtpb") -> dict[str, int]:
    text = (COMPILED / file).read_text()
    found = re.findall(r'preamble \{\n    id: (\d+)\n    name: "([^"]+)"', text)
    return {name: int(number) for number, name in found}


IDS = {
    "ingress.ports": 0x02000001,
    "ingress.port_roles": 0x02000002,
    "ingress.tree_sets": 0x02000003,
    "ingress.groups": 0x02000004,
    "ingress.class_d": 0x02000005,
    "egress.edge_ports": 0x02000006,
    "egress.trace": 0x0200000B,
    "ingress.port_known": 0x01000001,
    "ingress.role": 0x01000002,
    "ingress.replicate": 0x01000003,
    "ingress.replicate_filtered": 0x01000004,
    "ingress.enter_group": 0x01000005,
    "egress.to_host": 0x01000007,
    "egress.trace_as": 0x01000013,
    "ingress.port_backed": 0x0100000A,
    "ingress.packet_mode": 0x01000014,
    "ingress.wormhole_mode": 0x01000015,
    "ingress.wormhole": 0x0200000C,
    "trains": 0x12000006,
    "ingress.trust_port": 0x0100000B,
    "ingress.admit_host": 0x0100000C,
    "ingress.refuse_port": 0x0100000D,
    "ingress.link_port": 0x01000016,
    "ingress.source_known": 0x0100000E,
    "ingress.group_open": 0x0100000F,
    "ingress.sender_known": 0x01000010,
    "ingress.guard": 0x02000007,
    "ingress.sources": 0x02000008,
    "ingress.open_groups": 0x02000009,
    "ingress.group_senders": 0x0200000A,
    "rates": 0x14000001,
    "punts": 0x14000002,
    "ingress.gather_branch": 0x01000011,
    "ingress.gather_unknown": 0x01000012,
    "ingress.gather": 0x0200000D,
    "gather_life": 0x16000001,
    "gather_told": 0x16000002,
    "gather_cumulative": 0x16000003,
    "gather_stable": 0x16000004,
    "drops": 0x12000001,
    "ingress_ports": 0x12000002,
    "egress_ports": 0x12000003,
    "kinds": 0x12000004,
    "filtered": 0x12000005,
}


@pytest.mark.parametrize(("name", "number"), IDS.items())
def test_names_and_ids_of_the_contract(name: str, number: int) -> None:
    """Controllers and saved state refer to these; they never change."""
    assert _preambles()[name] == number
    contract = (P4SRC / "CONTRACT.md").read_text()
    assert f"`{name}" in contract or f"`{name.split('.')[-1]}" in contract


def test_every_table_counter_and_meter_is_in_the_contract() -> None:
    """Nothing a controller could use goes undocumented."""
    contract = (P4SRC / "CONTRACT.md").read_text()
    for name, number in _preambles().items():
        if number >> 24 in (0x02, 0x12, 0x14):
            assert f"`{name}`" in contract, name


def test_every_name_that_a_controller_writes_has_its_id_above() -> None:
    """A new one too: from then on it never changes."""
    misses = {"NoAction", *(f"ingress.{what}_unknown" for what in ("port", "group", "class_d"))}
    written = {name for name, number in _preambles().items() if number >> 24 in (0x01, 0x02, 0x12, 0x14)}
    assert written - IDS.keys() == misses


def test_defaults_that_a_controller_may_set_are_read_back() -> None:
    info = text_format.Parse((COMPILED / "wormcast.p4info.txtpb").read_text(), P4Info())
    free = [table.preamble.name for table in info.tables if not table.const_default_action_id]
    assert sorted(free) == sorted(TABLES_WITH_DEFAULT)


def test_every_table_is_filled_in_a_state_of_the_vectors() -> None:
    states = load_vectors("worm_switch.json")["states"]
    filled = {entry["table"] for state in states.values() for entry in state["tables"] + state["defaults"]}
    assert filled == {name for name, number in _preambles().items() if number >> 24 == 0x02}


# Tables that only the chip needs: between ports and device ports.
TOFINO_ONLY = {
    "ingress.entry_ports": 0x02000080,
    "ingress.device_ports": 0x02000081,
    "egress.exit_ports": 0x02000082,
    "ingress.entry_port": 0x01000080,
    "ingress.device_port": 0x01000081,
    "ingress.device_unknown": 0x01000082,
    "egress.exit_port": 0x01000083,
}


# What the programs for the chips do not do: gathered ACKs and the bound on packet-ins; on the first one wormhole mode.
GATHERING = {"ingress.gather", "ingress.gather_branch", "ingress.gather_unknown"}
WORMHOLE = {"ingress.packet_mode", "ingress.wormhole", "ingress.wormhole_mode", "trains"}
PUNTS = {"punts"}
NOT_ON_CHIP = {"tofino": GATHERING | WORMHOLE | PUNTS, "tofino2": GATHERING | PUNTS}


def _without_registers(file: str) -> dict[str, int]:
    """They are other ones on each target, and no controller writes them."""
    return {name: number for name, number in _preambles(file).items() if number >> 24 != 0x16}


@pytest.mark.parametrize("chip", compile_script.CHIP_ARCHITECTURES)
def test_chips_have_the_names_and_ids_of_the_contract_and_those_of_their_own(chip: str) -> None:
    """One contract for all programs; what is more is in the contract too."""
    ours, common = _without_registers(f"{chip}.p4info.txtpb"), _without_registers("wormcast.p4info.txtpb")
    assert common.keys() >= NOT_ON_CHIP[chip]
    assert ours == {name: common[name] for name in common.keys() - NOT_ON_CHIP[chip]} | TOFINO_ONLY
    contract = (P4SRC / "CONTRACT.md").read_text()
    for name in TOFINO_ONLY:
        assert f"`{name}" in contract or f"`{name.split('.')[-1]}" in contract or name.endswith("_unknown")


def test_the_first_chip_has_no_registers_and_each_says_its_architecture() -> None:
    """Those of Tofino 2 are for wormhole mode."""
    assert _without_registers("tofino.p4info.txtpb") == _preambles("tofino.p4info.txtpb")
    for chip, architecture in compile_script.CHIP_ARCHITECTURES.items():
        info = text_format.Parse((COMPILED / f"{chip}.p4info.txtpb").read_text(), P4Info())
        assert info.pkg_info.arch == architecture


@pytest.mark.parametrize("chip", compile_script.CHIP_ARCHITECTURES)
def test_chips_have_the_keys_and_parameters_of_the_contract(chip: str) -> None:
    """A controller writes the same entries to all."""

    def shape(file: str) -> dict[str, list[Any]]:
        info = text_format.Parse((COMPILED / file).read_text(), P4Info())
        tables = {
            table.preamble.name: [
                table.size if table.match_fields else 1,
                [(field.name, field.bitwidth, field.match_type) for field in table.match_fields],
                sorted(reference.id for reference in table.action_refs),
                table.is_const_table,
                table.const_default_action_id,
            ]
            for table in info.tables
        }
        actions = {
            action.preamble.name: [(parameter.name, parameter.bitwidth) for parameter in action.params]
            for action in info.actions
        }
        counters = {counter.preamble.name: [counter.size, counter.spec.unit] for counter in info.counters}
        meters = {meter.preamble.name: [meter.size, meter.spec.unit] for meter in info.meters}
        packets = {
            packet.preamble.name: [(field.name, field.bitwidth) for field in packet.metadata]
            for packet in info.controller_packet_metadata
        }
        return {**tables, **actions, **counters, **meters, **packets}

    ours, common = shape(f"{chip}.p4info.txtpb"), shape("wormcast.p4info.txtpb")
    for name in NOT_ON_CHIP[chip]:
        del common[name]
    assert {name: found for name, found in ours.items() if name not in TOFINO_ONLY} == common


def test_device_ports_of_the_two_chips_are_all_that_differs_between_them() -> None:
    """tofino.p4 and tofino2.p4 hold constants, and include the same program, with wormhole mode or without."""
    tops = [(TOFINO / name).read_text() for name in ("tofino.p4", "tofino2.p4")]
    own = r"(?m)^//.*$|= \w+;.*$|t?2?na\.p4|^#include \"(?:packet_mode|wormhole)\.p4\"\n"
    shapes = [re.sub(own, "", text) for text in tops]
    assert shapes[0] == shapes[1]
    for text in tops:
        assert text.rstrip().endswith('#include "wormcast.p4"')


def tofino_declarations() -> Path | None:
    """Where a p4c with its Tofino backend has tna.p4 and t2na.p4: P4C_TOFINO_INCLUDE, or where it is installed."""
    named = os.environ.get("P4C_TOFINO_INCLUDE")
    installed = [f"{prefix}/share/p4c/p4include" for prefix in ("/usr", "/usr/local")]
    places = [Path(place) for place in ([named] if named else installed)]
    return next((place for place in places if (place / "t2na.p4").is_file()), None)


@pytest.mark.parametrize(("name", "chip"), [("tofino", 1), ("tofino2", 2)])
def test_the_front_end_takes_the_program_with_the_declarations_of_the_chip(
    name: str, chip: int, tmp_path: Path
) -> None:
    """Not with ours, which have only what is used."""
    compiler, include = compile_script.find_compiler(), tofino_declarations()
    if compiler is None or include is None:
        pytest.skip("needs p4c-bm2-ss, and tna.p4 and t2na.p4 of p4c's Tofino backend (P4C_TOFINO_INCLUDE)")
    command = [compiler, "--arch", "psa", "--std", "p4-16", "--Wdisable", f"-D__TARGET_TOFINO__={chip}"]
    command += ["-I", str(include), "--top4", "FrontEndLast", "--dump", str(tmp_path), f"{name}.p4"]
    run = subprocess.run(command, cwd=TOFINO, check=False, capture_output=True, text=True)
    # Behind its front end this compiler looks for a program of v1model.
    assert list(tmp_path.glob("*FrontEndLast.p4")), run.stderr
    assert run.stderr.count("error:") == 1, run.stderr
    assert "package Switch" in run.stderr


def test_limits_of_tofino_are_those_of_its_parser() -> None:
    """Numbers that P4 can not take from sizes.p4: states for each port, pieces for each bit of a length."""
    text = (TOFINO / "parser.p4").read_text()
    ports = [int(port) for port in re.findall(r"state port_(\d+) ", text)]
    assert ports == list(range(ids.TOFINO_TREE_PORTS))
    for port, mask in re.findall(r"state port_(\d+) \{ meta.tree_ports = meta.tree_ports \| (0x\w+);", text):
        assert int(mask, 0) == 1 << int(port)
    pieces = [int(size) for size in re.findall(r"state route_(\d+) ", text)]
    assert sum(pieces) == ids.TOFINO_MAX_ROUTE
    assert sum(int(size) for size in re.findall(r"state hop_(\d+) ", text)) == ids.TOFINO_MAX_PATH - 1
    egress = (TOFINO / "egress_parser.p4").read_text()
    assert sum(int(size) for size in re.findall(r"state route_(\d+) ", egress)) == ids.TOFINO_MAX_PATH - 1


def _without(tree: Any, key: str) -> bool:
    """Whether a key is nowhere in a JSON value."""
    if isinstance(tree, dict):
        return key not in tree and all(_without(value, key) for value in tree.values())
    return not isinstance(tree, list) or all(_without(value, key) for value in tree)


def test_make_target_writes_the_artifacts(tmp_path: Path) -> None:
    """What `make -C p4src` runs, into another directory; without a compiler it says so."""
    command = ["python3", str(P4SRC / "compile.py"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if compile_script.find_compiler() is None:
        assert done.returncode == 2
        assert "p4c-bm2-ss is not on PATH" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        path.name for path in COMPILED.iterdir()
    )
    assert _without(json.loads((tmp_path / "wormcast.json").read_text()), "source_info")
