"""Many cases over many programs, some at a time."""

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from differential import findings
from differential.compare import ENDLESS, Verdict
from differential.generate import PACKETS_MAX, Case, generate
from differential.judge import Judged, Pair, judge
from differential.known import without_sources
from differential.mutate import mutated
from differential.program import Program, read
from differential.shrink import shrink
from differential.switches import NotStarted, Outcome, SwitchError, run

BROKEN = "broken"


@dataclass(frozen=True)
class Campaign:
    """What to run. `keep`: the directories of all cases stay, under `findings`. `mutates`:
    every second case of a program has a changed one."""

    pair: Pair
    programs: tuple[Program, ...]
    seed: str
    cases: int
    findings: Path
    jobs: int = 2
    packets: int = PACKETS_MAX
    keep: bool = False
    shrinks: bool = True
    mutates: bool = False

    def jobs_in_order(self) -> Iterator[tuple[Program, str]]:
        """Programs and the seeds of their cases; every program first once, then once more."""
        for number in range(self.cases):
            for program in self.programs:
                seed = f"{self.seed}/{program.name}/{number}"
                if self.mutates and number % 2:
                    changed = read(program.name, mutated(program.json, Random(seed)))
                    changed.changed = True
                    yield changed, seed
                else:
                    yield program, seed


@dataclass
class Summary:
    """What came of it."""

    programs: int = 0
    cases: int = 0
    packets: int = 0
    frames: int = 0
    commands: int = 0
    refused: int = 0
    reordered: int = 0
    given_up: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    not_taken: dict[str, str] = field(default_factory=dict)
    # How often each command was sent, and what wormcast-switch's pipeline has counted.
    features: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[str, Verdict, Path]] = field(default_factory=list)

    def add(self, judged: Judged) -> None:
        self.cases += 1
        self.packets += len(judged.case.packets)
        self.frames += judged.reference.count
        self.commands += len(judged.case.commands)
        self.refused += sum(answer != "done" for answer in judged.reference.answers)
        self.reordered += judged.verdict.reordered
        self.given_up += judged.given_up
        self.left_out.update(judged.left_out)
        self.features.update(f"command.{command['do']}" for command in judged.case.commands)
        self.features.update({name: count for name, count in judged.tested.counts.items() if count})

    def json(self) -> str:
        counts = ("programs", "cases", "packets", "frames", "commands", "refused", "reordered", "given_up")
        found = [{"program": name, "kind": one.kind, "folder": str(at)} for name, one, at in self.findings]
        more = {"left_out": self.left_out, "not_taken": self.not_taken, "findings": found}
        features = dict(sorted(self.features.items()))
        numbers = {name: getattr(self, name) for name in counts}
        return json.dumps({**numbers, **more, "features": features}, indent=1) + "\n"

    def text(self) -> str:
        lines = [
            f"{self.cases} cases of {self.programs} programs: {self.packets} packets in, {self.frames} frames "
            f"out, {self.commands} commands ({self.refused} refused by both or one)"
        ]
        lines += [f"not run: {name}: {reason}" for name, reason in self.not_taken.items()]
        lines += [f"{count} packets left out: {reason}" for reason, count in self.left_out.items()]
        if self.reordered:
            lines.append(f"{self.reordered} cases with frames of a port in another order, which is allowed")
        if self.given_up:
            lines.append(
                f"{self.given_up} cases given up: too many packets to leave out, or a program that is not taken"
            )
        lines += [f"FOUND {kind.kind}: {name}: {folder}" for name, kind, folder in self.findings]
        lines.append(f"{len(self.findings)} findings")
        return "\n".join(lines)


def prepare(path: Path, alike: bool) -> Program:
    """A program as the switches get it. Raises OSError, ValueError."""
    source = json.loads(path.read_text())
    if not isinstance(source, dict):
        raise ValueError(f"{path} is no program of BMv2: {type(source).__name__} instead of an object")
    try:
        return read(path.stem, without_sources(source, alike)[0])
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not as BMv2's programs are: {type(error).__name__}: {error}") from error


def start(campaign: Campaign, program: Program, root: Path) -> str | None:
    """Why a program is not run: the reference does not take it. None where it does."""
    case = replace(generate(program, "start"), packets=(), commands=())
    try:
        run(campaign.pair.reference, program, case, root / "start" / program.name)
    except NotStarted as error:
        return " ".join(str(error).split())[:200]
    except SwitchError:
        return None
    return None


def run_case(campaign: Campaign, program: Program, seed: str, root: Path) -> Judged:
    """One case. What breaks outside the switches is a verdict as well."""
    case = generate(program, seed, campaign.packets)
    directory = root / "".join(one if one.isalnum() else "-" for one in seed)
    try:
        return judge(campaign.pair, program, case, directory)
    except NotStarted as error:
        if start(campaign, program, directory) is not None:
            return Judged(case, Verdict(), Outcome(), Outcome(), given_up=True)
        return Judged(case, Verdict(BROKEN, str(error)), Outcome(), Outcome())
    except SwitchError as error:
        return Judged(case, Verdict(BROKEN, str(error)), Outcome(), Outcome())
    finally:
        if not campaign.keep:
            shutil.rmtree(directory, ignore_errors=True)


def smaller(campaign: Campaign, program: Program, judged: Judged, root: Path) -> Judged:
    """The finding with as little as shows it."""
    directory = root / "shrink"

    def once(case: Case) -> Judged | None:
        try:
            return judge(campaign.pair, program, case, directory)
        except SwitchError:
            return None

    def shows(case: Case) -> bool:
        again = once(case)
        return again is not None and again.verdict.kind == judged.verdict.kind

    # Each run of one without end takes long, and those that start with less may end.
    if judged.verdict.kind in (BROKEN, ENDLESS) or not shows(judged.case):
        return judged
    again = once(shrink(judged.case, shows))
    shutil.rmtree(directory, ignore_errors=True)
    return again if again is not None and not again.verdict.same else judged


def run_campaign(campaign: Campaign, progress: bool = True) -> Summary:
    """Runs a campaign and writes its findings."""
    summary = Summary(programs=len(campaign.programs))
    scratch = Path(tempfile.mkdtemp(prefix="differential-"))
    root = campaign.findings / "cases" if campaign.keep else scratch
    try:
        with ThreadPoolExecutor(campaign.jobs) as threads:
            futures: dict[Future[Judged], tuple[Program, str]] = {}
            refusals = threads.map(lambda program: start(campaign, program, scratch), campaign.programs)
            for program, refusal in zip(campaign.programs, refusals, strict=True):
                if refusal is not None:
                    summary.not_taken[program.name] = refusal
            for program, seed in campaign.jobs_in_order():
                if program.name in summary.not_taken:
                    continue
                futures[threads.submit(run_case, campaign, program, seed, root)] = (program, seed)
            try:
                for future in as_completed(futures):
                    program, seed = futures.pop(future)
                    judged = future.result()
                    summary.add(judged)
                    if not judged.verdict.same:
                        _found(campaign, summary, program, seed, judged, scratch)
                    if progress:
                        _show(summary, campaign.cases * (len(campaign.programs) - len(summary.not_taken)))
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return summary


def _found(
    campaign: Campaign, summary: Summary, program: Program, seed: str, judged: Judged, scratch: Path
) -> None:
    folder = findings.folder_of(campaign.findings, program, judged.case)
    # Before it is made small, which may take long and be interrupted.
    findings.write(folder, campaign.pair, program, judged)
    print(
        f"\nFOUND in {program.name}, seed {seed}: {folder}\n{findings.describe(judged.verdict)}", flush=True
    )
    if campaign.shrinks:
        judged = smaller(campaign, program, judged, scratch)
        findings.write(folder, campaign.pair, program, judged)
    summary.findings.append((program.name, judged.verdict, folder))


def _show(summary: Summary, total: int) -> None:
    if sys.stderr.isatty() or summary.cases % 100 == 0:
        end = "" if sys.stderr.isatty() else "\n"
        print(
            f"\r{summary.cases} of {total} cases, {len(summary.findings)} findings",
            end=end,
            file=sys.stderr,
            flush=True,
        )
