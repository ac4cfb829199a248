"""A folder for each difference: everything that is needed to see it again."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from differential import pcap
from differential.commands import as_text
from differential.compare import Verdict
from differential.generate import STAMP_STEP_US, Case
from differential.judge import Judged, Pair
from differential.program import Program, read
from differential.switches import Outcome

CASE, PROGRAM = "case.json", "program.json"
AGAIN = """Both switches again:

    python -m differential --replay {folder}

program.json   what both were given (BMv2: with headers that are not there made 0, see stale.py)
commands.txt   what was written before the packets, as simple_switch_CLI would say it
case.json      commands and packets for --replay
PORT_in.pcap   the packets
NAME/          what each switch sent
difference.txt where they differ
"""


def folder_of(root: Path, program: Program, case: Case) -> Path:
    """Where the finding of a case goes."""
    return root / (program.name + "-" + "".join(one if one.isalnum() else "-" for one in case.seed))


def write(folder: Path, pair: Pair, program: Program, judged: Judged) -> None:
    """Writes a finding; one of the same case that is there is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    case = judged.case
    (folder / PROGRAM).write_bytes(program.text)
    (folder / CASE).write_text(dump(case))
    (folder / "commands.txt").write_text("".join(as_text(one) + "\n" for one in case.commands))
    (folder / "difference.txt").write_text(judged.verdict.kind + "\n" + judged.verdict.problem + "\n")
    (folder / "README").write_text(AGAIN.format(folder=folder))
    stamped = list(enumerate(case.packets))
    for port in sorted({port for port, _ in case.packets}):
        frames = [(at * STAMP_STEP_US, frame) for at, (to, frame) in stamped if to == port]
        pcap.write(folder / f"{port}_in.pcap", frames)
    for name, outcome in zip(pair.names, (judged.tested, judged.reference), strict=True):
        _write_outcome(folder / name, outcome)


def _write_outcome(folder: Path, outcome: Outcome) -> None:
    folder.mkdir()
    for port, frames in outcome.frames.items():
        if frames:
            pcap.write(folder / f"{port}_out.pcap", list(enumerate(frames)))
    (folder / "state.json").write_text(json.dumps(outcome.state, indent=1, default=str) + "\n")
    if outcome.crash:
        (folder / "crash.txt").write_text(outcome.crash + "\n")


def dump(case: Case) -> str:
    """A case as JSON."""
    as_json = asdict(case) | {"packets": [[port, frame.hex()] for port, frame in case.packets]}
    return json.dumps(as_json, indent=1) + "\n"


def load(folder: Path) -> tuple[Program, Case]:
    """The program and case of a finding. Raises OSError, ValueError."""
    program = read(folder.name, json.loads((folder / PROGRAM).read_text()))
    try:
        source = json.loads((folder / CASE).read_text())
        packets = tuple((int(port), bytes.fromhex(frame)) for port, frame in source["packets"])
        return program, Case(
            source["seed"],
            ports=tuple(source["ports"]),
            paced=bool(source["paced"]),
            commands=tuple(source["commands"]),
            packets=packets,
            reorders=bool(source.get("reorders", source["paced"])),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder / CASE} is no case: {type(error).__name__} {error}") from error


def describe(verdict: Verdict) -> str:
    """A verdict in a few lines, for the terminal."""
    lines = verdict.problem.splitlines()
    return "\n".join(f"    {line[:200]}" for line in [verdict.kind, *lines][:8])
