"""An exercise of p4lang/tutorials on wormcast-switch, with BMV2_SWITCH_EXE of its Makefile changed."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from labs.one_line import change_line
from labs.report import Report
from labs.rig import LabError, switch_binary
from labs.typed import MininetScript

LINE = "BMV2_SWITCH_EXE ="
LINK = "wormcast_switch_grpc"
"""run_exercise.py wants `grpc` in the name of a switch that it is to program over P4Runtime."""
COMPILER = "p4c-bm2-ss"
TOOLS = ("make", "route", "arp")
MODULES = ("mininet", "psutil", "grpc", "p4.v1.p4runtime_pb2", "p4.tmp.p4config_pb2")
"""What the scripts of the tutorials import."""
LEFT_IN_TMP = ("p4s.*.log", "bm-*-log.ipc")
"""What the tutorials' scripts leave in /tmp."""
DROPPED = re.compile(r"Results: (\d+)% dropped")
STARTED = re.compile(r"gRPC port: (\d+)")


def run(
    report: Report,
    clone: Path,
    exercise: str,
    *,
    solution: bool,
    python: str,
    compiled: tuple[Path, Path] | None,
    lines: Sequence[str],
) -> None:
    """Run an exercise of a clone. Raises LabError for what is no such clone, and for what is not installed."""
    folder = clone / "exercises" / exercise
    if not (clone / "utils" / "run_exercise.py").is_file() or not (folder / "Makefile").is_file():
        there = sorted(path.parent.name for path in clone.glob("exercises/*/Makefile"))
        raise LabError(
            f"{clone} has no utils/run_exercise.py and exercises/{exercise}/Makefile, as p4lang/tutorials has; "
            f"exercises there: {', '.join(there) or 'none'}"
        )
    if compiled is None and not solution and shutil.which(COMPILER) is None:
        compiled = built(folder)
        if compiled is not None:
            report.notes.append(
                f"{COMPILER} is not installed; the lab runs what is in {compiled[0].parent}, as it is"
            )
    check_tools(python, need_compiler=compiled is None)
    copy = report.directory / "tutorials"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(clone / "utils", copy / "utils")
    shutil.copytree(folder, copy / "exercises" / exercise)
    at = copy / "exercises" / exercise
    link = report.directory / LINK
    link.unlink(missing_ok=True)
    link.symlink_to(switch_binary())
    changed = change_line(
        folder / "Makefile", at / "Makefile", LINE, f"{LINE} {link}", f"exercises/{exercise}/Makefile"
    )
    report.check(
        "one line of the Makefile changes", changed.splitlines()[-1].replace(f"{report.directory}/", ""), True
    )
    program = build(at, compiled, solution=solution)
    command = run_command(at, python)
    with tidy_tmp():
        mininet = MininetScript(command, at, {})
        try:
            judge(report, mininet, at, lines)
        finally:
            mininet.kill()
            (report.directory / "transcript.txt").write_text(mininet.transcript)
    report.draw_text(f"{changed}\n{mininet.transcript}".replace(f"{report.directory}/", ""), "exercises")
    report.figures |= {"difference": changed, "program": program.name, "command": command}


def built(folder: Path) -> tuple[Path, Path] | None:
    """The program of an exercise and its P4Info, where the exercise was built before."""
    for source in sorted(folder.glob("*.p4")):
        program = folder / "build" / f"{source.stem}.json"
        p4info = folder / "build" / f"{source.name}.p4info.txtpb"
        if program.is_file() and p4info.is_file():
            return program, p4info
    return None


def check_tools(python: str, *, need_compiler: bool) -> None:
    """Raise LabError that names all that is missing."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if need_compiler and shutil.which(COMPILER) is None:
        missing.append(f"{COMPILER} (or give --program and --p4info)")
    if shutil.which(python) is None:
        raise LabError(
            f"there is no {python}; --python names the one that has what the tutorials' scripts import"
        )
    script = "import importlib\nfor name in {!r}:\n try: importlib.import_module(name)\n except Exception: print(name)"
    done = subprocess.run([python, "-c", script.format(MODULES)], capture_output=True, text=True)
    missing += [f"{name} for {python}" for name in done.stdout.split()]
    if done.returncode != 0:
        missing.append(f"{python}, which fails: {done.stderr.strip()[-200:]}")
    if missing:
        raise LabError(f"the exercise needs, and this machine has not: {', '.join(missing)}")


def build(at: Path, compiled: tuple[Path, Path] | None, *, solution: bool) -> Path:
    """Put the compiled program where the exercise looks for it; give its path."""
    (source,) = sorted(at.glob("*.p4"))[:1] or (at / "program.p4",)
    if solution:
        solved = at / "solution" / source.name
        if not solved.is_file():
            raise LabError(f"the exercise has no solution/{source.name}")
        shutil.copyfile(solved, source)
    for folder in ("build", "pcaps", "logs"):
        (at / folder).mkdir(exist_ok=True)
    program = at / "build" / f"{source.stem}.json"
    if compiled is None:
        done = subprocess.run(["make", "build"], cwd=at, capture_output=True, text=True)
        if done.returncode != 0:
            raise LabError(f"make build: {done.stderr.strip()[-800:]}")
        return program
    shutil.copyfile(compiled[0], program)
    wanted = {at / "build" / f"{source.name}.p4info.txtpb"}
    for path in at.rglob("*runtime.json"):
        wanted.add(at / json.loads(path.read_text())["p4info"])
    for path in wanted:
        shutil.copyfile(compiled[1], path)
    return program


def run_command(at: Path, python: str) -> list[str]:
    """What `make run` would run, with our Python and without sudo."""
    done = subprocess.run(["make", "--dry-run", "run"], cwd=at, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if "run_exercise.py" in line]
    if done.returncode != 0 or not lines:
        raise LabError(f"make --dry-run run: {done.stderr.strip()[-400:] or done.stdout[-400:]}")
    words = shlex.split(lines[-1])
    script = next(number for number, word in enumerate(words) if word.endswith("run_exercise.py"))
    return [shutil.which(python) or python, *words[script:]]


def judge(report: Report, mininet: MininetScript, at: Path, lines: Sequence[str]) -> None:
    """What the exercise's own scripts say, and whether hosts reach each other."""
    started = STARTED.findall(mininet.transcript)
    wanted = {path.name for path in at.rglob("*runtime.json")}
    report.check(
        "the exercise's scripts start the switches and program each over P4Runtime",
        f"gRPC ports {', '.join(started)}; errors: {mininet.transcript.count('ERROR')}",
        bool(started)
        and "ERROR" not in mininet.transcript
        and (not wanted or "Configuring switch" in mininet.transcript),
    )
    answers = [mininet.type(line) for line in lines or ("pingall",)]
    found = [DROPPED.search(answer) for answer in answers]
    if not lines:
        report.check(
            "every host reaches every other (pingall)",
            f"{found[0][1]}% dropped" if found[0] else answers[0].strip()[-200:],
            found[0] is not None and found[0][1] == "0",
        )
    else:
        for line, answer in zip(lines, answers, strict=True):
            report.check(f"what {line!r} says", answer.strip()[-300:], None)
    code = mininet.close("exit\n")
    report.check("Mininet ends in order", f"exit code {code}", code == 0)


@contextlib.contextmanager
def tidy_tmp() -> Iterator[None]:
    """Remove what the tutorials' scripts leave in /tmp."""

    def there() -> set[Path]:
        return {path for pattern in LEFT_IN_TMP for path in Path("/tmp").glob(pattern)}

    before = there()
    try:
        yield
    finally:
        for path in there() - before:
            path.unlink(missing_ok=True)
