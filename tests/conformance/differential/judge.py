"""One case on two switches, without the packets that the second one need not survive."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from differential import known
from differential.compare import Verdict, compare
from differential.generate import Case
from differential.program import Program
from differential.switches import Outcome, Switch, run

LEFT_OUT_MAX = 4  # packets of a case; then the case is given up


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
        reference = run(pair.reference, program, case, directory / "reference")
        tested = run(pair.tested, program, case, directory / "tested")
        reason = may_end(pair, program, reference)
        given_up = reason is not None and len(left_out) == LEFT_OUT_MAX
        if reason is None or given_up:
            verdict = Verdict() if given_up else compare(case, tested, reference, pair.names)
            return Judged(case, verdict, tested, reference, left_out, given_up)
        left_out.append(reason)

        def ends(count: int, case: Case = case) -> bool:
            part = replace(case, packets=case.packets[:count])
            outcome = run(pair.reference, program, part, directory / "reference")
            return may_end(pair, program, outcome) is not None

        if case.paced and reference.endless is not None:
            at = reference.endless
        else:
            at = first(len(case.packets), ends) - 1
        case = replace(case, packets=case.packets[:at] + case.packets[at + 1 :])


def may_end(pair: Pair, program: Program, outcome: Outcome) -> str | None:
    """Why the reference was ended by a packet, or came to no end, where that is known of BMv2."""
    if not pair.reference.bmv2:
        return None
    if outcome.endless is not None:
        return known.ENDLESS
    return known.reason_of_end(program, outcome.crash) if outcome.crash else None


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
