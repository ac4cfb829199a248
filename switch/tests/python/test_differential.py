"""The differential fuzzer on switches: both engines beside each other, BMv2 where it is, and a
switch that is made to be wrong."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from differential import __main__ as command
from differential import findings, pcap
from differential.campaign import Campaign, Summary, prepare, run_campaign, run_case
from differential.generate import generate
from differential.judge import Pair, judge
from differential.switches import Switch
from rig.targets import targets

SEED = "ci"
ENGINE_CASES = 3  # of each committed program
BMV2_CASES = 2
OURS = next(target for target in targets() if target.name == "wormcast-switch")
PROGRAMS = command.COMMITTED[0]

needs_switch = pytest.mark.skipif(OURS.binary is None, reason=OURS.missing)
needs_bmv2 = pytest.mark.skipif(
    shutil.which("simple_switch") is None, reason="simple_switch is not on this machine"
)


def pair_of(*words: str) -> Pair:
    return command.choose_pair(command.parse(list(words)))


def campaign(pair: Pair, cases: int, folder: Path) -> Summary:
    programs = command.find_programs(list(command.COMMITTED), alike=not pair.reference.bmv2)
    campaign = Campaign(pair, programs, SEED, cases, folder)
    return run_campaign(campaign, progress=False)


def test_unreadable_programs_of_a_folder_are_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is named itself is an error."""
    good = sorted(PROGRAMS.glob("*.json"))[0]
    shutil.copy(good, tmp_path / "good.json")
    broken = json.loads(good.read_text())
    broken["pipelines"] = [{"name": "ingress", "tables": 3}]
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "text.json").write_text("{")
    found = command.find_programs([tmp_path], alike=True)
    assert [program.name for program in found] == ["good"]
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in said] == [
        f"{tmp_path}/{name}.json:" for name in ("broken", "list", "text")
    ]
    for name in ("broken", "list", "text"):
        with pytest.raises(ValueError, match=r".+"):
            command.find_programs([tmp_path / f"{name}.json"], alike=True)


@needs_switch
def test_both_engines_do_the_same(tmp_path: Path) -> None:
    """Machine code and interpreter, over every committed program."""
    summary = campaign(pair_of("--against", "interpreted"), ENGINE_CASES, tmp_path)
    assert not summary.findings, summary.text()
    assert not summary.left_out
    assert not summary.not_taken
    assert summary.cases == ENGINE_CASES * summary.programs
    assert summary.programs > 20
    # A campaign in which hardly anything comes out proves nothing.
    assert summary.frames > summary.packets / 2


@needs_switch
@needs_bmv2
@pytest.mark.slow
def test_the_switch_does_what_bmv2_does(tmp_path: Path) -> None:
    """simple_switch beside wormcast-switch, over every committed program."""
    summary = campaign(pair_of(), BMV2_CASES, tmp_path)
    assert not summary.findings, summary.text()
    assert not summary.not_taken
    assert summary.given_up <= summary.cases / 20
    assert summary.frames > summary.packets / 2


@needs_switch
def test_a_difference_is_found_and_made_small(tmp_path: Path) -> None:
    """A switch whose port 1 loses all frames differs from one whose does not; what is left of the case is
    one packet, and the folder shows it again."""
    assert OURS.binary is not None
    wrong = Switch("wrong", OURS.binary, ("--impair", "1:loss=1"))
    pair = Pair(wrong, Switch("right", OURS.binary))
    program = prepare(PROGRAMS / "ends.json", alike=True)
    campaign = Campaign(pair, (program,), SEED, 1, tmp_path)
    summary = run_campaign(campaign, progress=False)
    assert [(name, verdict.kind) for name, verdict, _ in summary.findings] == [("ends", "frames")]
    folder = summary.findings[0][2]
    again, case = findings.load(folder)
    assert len(case.packets) == 1
    assert case.commands == ()
    assert len(pcap.read(folder / "right" / "1_out.pcap")) == 1
    assert not (folder / "wrong" / "1_out.pcap").exists()
    assert again.json == program.json
    assert judge(pair, again, case, tmp_path / "again").verdict.kind == "frames"


@needs_switch
def test_counters_and_registers_are_compared(tmp_path: Path) -> None:
    """What is read at the end is equal where the packets are, and other where none have come."""
    assert OURS.binary is not None
    ours = Switch("wormcast-switch", OURS.binary)
    program = prepare(PROGRAMS / "externs.json", alike=True)
    case = generate(program, SEED)
    some = judge(Pair(ours, ours), program, case, tmp_path / "some")
    none = judge(Pair(ours, ours), program, replace(case, packets=()), tmp_path / "none")
    assert some.verdict.same
    assert some.tested.state == some.reference.state
    assert some.tested.state != none.tested.state
    words = prepare(PROGRAMS / "meters.json", alike=True)
    read = judge(Pair(ours, ours), words, generate(words, SEED), tmp_path / "words").tested.state
    assert len(read["register ingress.words"]) == 4


@needs_switch
def test_a_program_that_only_one_takes_is_a_finding(tmp_path: Path) -> None:
    """And not an error of the fuzzer."""
    assert OURS.binary is not None
    refuses = Switch("refuses", OURS.binary, ("--no-such-option",))
    program = prepare(PROGRAMS / "ends.json", alike=True)
    campaign = Campaign(Pair(refuses, Switch("right", OURS.binary)), (program,), SEED, 1, tmp_path)
    judged = run_case(campaign, program, SEED, tmp_path / "run")
    assert judged.verdict.kind == "broken"
    assert "--no-such-option" in judged.verdict.problem
    assert not (tmp_path / "run" / SEED).exists()


@needs_switch
def test_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 0 and a summary; 2 with the name of what is not there."""
    words = ["--against", "interpreted", "--cases", "1", "--findings", str(tmp_path), "--keep"]
    program = PROGRAMS / "tables.json"
    monkeypatch.setattr("sys.argv", ["differential", *words, "--program", str(program)])
    assert command.main() == 0
    assert "1 cases of 1 programs" in capsys.readouterr().out
    kept = list((tmp_path / "cases").glob("*/tested/program.json"))
    assert len(kept) == 1
    assert json.loads(kept[0].read_text())["program"] == "tables.p4"
    monkeypatch.setattr("sys.argv", ["differential", *words, "--program", str(tmp_path / "none.json")])
    assert command.main() == 2
    assert "none.json" in capsys.readouterr().err
