"""One case on two switches, without the packets that the second one need not survive."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from differential import known
from differential.compare import Verdict, compare
from differential.generate import Case
from differential.program import Program
from differential.switches import Outcome, Switch, run

LEFT_OUT_MAX = 8  # packets of a case; then the case is given up
# Times as much of processors for BMv2 where the tested switch has dropped nothing as endless.
PATIENCE = 10.0


@dataclass(frozen=True)
class Pair:
    """The switch that is tested and the one that it is compared with."""

    tested: Switch
    reference: Switch

    @property
    def names(self) -> tuple[str, str]:
        """How reports call them."""
        return self.tested.name, self.reference.name


@dataclass
class Judged:
    """A case as it was compared in the end, and what came of it. `left_out`: why packets of it
    were taken out. `given_up`: too many were."""

    case: Case
    verdict: Verdict
    tested: Outcome
    reference: Outcome
    left_out: list[str] = field(default_factory=list)
    given_up: bool = False


def judge(pair: Pair, program: Program, case: Case, directory: Path) -> Judged:
    """Runs a case on both and compares. Raises SwitchError."""
    left_out: list[str] = []
    while True:
        tested = run(pair.tested, program, case, directory / "tested")
        reference = run_reference(pair, program, case, directory, tested)
        reason = may_end(pair, program, reference, tested)
        given_up = reason is not None and len(left_out) == LEFT_OUT_MAX
        if reason is None or given_up:
            verdict = Verdict() if given_up else compare(case, tested, reference, pair.names)
            return Judged(case, verdict, tested, reference, left_out, given_up)
        left_out.append(reason)
        at = culprit(pair, program, case, directory, reference)
        case = replace(case, packets=case.packets[:at] + case.packets[at + 1 :])


def run_reference(pair: Pair, program: Program, case: Case, directory: Path, tested: Outcome) -> Outcome:
    """Runs a case on the reference; more patiently where the tested switch says that it ends."""
    outcome = run(pair.reference, program, case, directory / "reference")
    if outcome.endless is None or not pair.reference.bmv2 or known.reason_of_no_end(tested.counts):
        return outcome
    return run(pair.reference, program, case, directory / "reference", patience=PATIENCE)


def may_end(pair: Pair, program: Program, reference: Outcome, tested: Outcome) -> str | None:
    """Why the reference was ended by a packet, or came to no end, where that is known of BMv2; of
    a changed program also why it may have gone on for longer than the tested switch does."""
    if not pair.reference.bmv2:
        return None
    if reference.crash:
        return known.reason_of_end(program, reference.crash)
    if reference.endless is not None or program.changed:
        return known.reason_of_no_end(tested.counts)
    return None


def culprit(pair: Pair, program: Program, case: Case, directory: Path, reference: Outcome) -> int:
    """The first packet that ends the reference, or that it comes to no end with.

    The latter is asked of the tested switch, which is through with it at once; whether it is
    right shows when the reference runs without the packet.
    """
    if case.paced and reference.endless is not None:
        return reference.endless

    def ends(count: int) -> bool:
        part = replace(case, packets=case.packets[:count])
        if not reference.crash:
            counts = run(pair.tested, program, part, directory / "tested").counts
            return known.reason_of_no_end(counts) is not None
        outcome = run(pair.reference, program, part, directory / "reference")
        return outcome.crash is not None and known.reason_of_end(program, outcome.crash) is not None

    return first(len(case.packets), ends) - 1


def first(count: int, holds: Callable[[int], bool]) -> int:
    """The least number from 1 to `count` that something holds for, where it holds for `count`
    and for all numbers above one that it holds for."""
    low, high = 1, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
