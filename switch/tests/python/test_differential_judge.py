"""What the differential fuzzer excuses: runs without end, with switches that are made up."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from differential import judge as judging
from differential import known, switches
from differential.campaign import Campaign, Summary, smaller
from differential.compare import Verdict
from differential.generate import Case
from differential.judge import LEFT_OUT_MAX, PATIENCE, Judged, Pair, judge
from differential.program import Program
from differential.switches import Outcome, Running, Switch, read_counts, unread

OURS = Switch("ours", Path("ours"))
BMV2 = Switch("theirs", Path("theirs"), bmv2=True)
PAIR = Pair(OURS, BMV2)
ENDLESS_BYTE = 0xEE


def case_of(*firsts: int, paced: bool = False) -> Case:
    packets = tuple((1, bytes([first, at])) for at, first in enumerate(firsts))
    return Case("s", (1,), paced, (), packets)


class Switches:
    """A reference that has no end with some packets, and a tested switch that may drop them."""

    def __init__(self, drops: bool, ends_after: float = float("inf")) -> None:
        self.drops, self.ends_after = drops, ends_after
        self.runs: list[tuple[str, float]] = []

    def run(
        self, switch: Switch, _: Program, case: Case, __: Path, log: Any = None, patience: float = 1.0
    ) -> Outcome:
        assert log is None
        self.runs.append((switch.name, patience))
        endless = [at for at, (_, frame) in enumerate(case.packets) if frame[0] == ENDLESS_BYTE]
        if switch.bmv2 and endless and patience < self.ends_after:
            at = endless[0] if case.paced else len(case.packets) - 1
            return Outcome({1: []}, endless=at)
        dropped = endless if self.drops and not switch.bmv2 else []
        frames = [frame for at, (_, frame) in enumerate(case.packets) if at not in dropped]
        return Outcome({1: frames}, counts={"drop.action_loop": len(dropped)})


@pytest.mark.parametrize("paced", [False, True])
def test_a_packet_without_end_is_left_out(
    paced: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the tested switch drops it and says so; the others are compared."""
    both = Switches(drops=True)
    monkeypatch.setattr(judging, "run", both.run)
    program = Program("p", {})
    judged = judge(PAIR, program, case_of(1, 2, ENDLESS_BYTE, 3, ENDLESS_BYTE, paced=paced), tmp_path)
    assert judged.verdict.same
    assert [frame[0] for _, frame in judged.case.packets] == [1, 2, 3]
    assert judged.left_out == ["BMv2 comes to no end, or late: " + known.ENDLESS["drop.action_loop"]] * 2
    assert all(patience == 1 for _, patience in both.runs)
    many = judge(PAIR, program, case_of(*[ENDLESS_BYTE] * (LEFT_OUT_MAX + 1), paced=paced), tmp_path)
    assert many.given_up
    assert len(many.left_out) == LEFT_OUT_MAX


def test_a_reference_without_end_that_nobody_explains_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After it was given more time; one that ends then is compared."""
    program, case = Program("p", {}), case_of(1, ENDLESS_BYTE)
    both = Switches(drops=False)
    monkeypatch.setattr(judging, "run", both.run)
    judged = judge(PAIR, program, case, tmp_path)
    assert judged.verdict.kind == "endless"
    assert "theirs does not come to rest" in judged.verdict.problem
    assert ("theirs", PATIENCE) in both.runs
    slow = Switches(drops=False, ends_after=PATIENCE)
    monkeypatch.setattr(judging, "run", slow.run)
    assert judge(PAIR, program, case, tmp_path).verdict.same


def test_later_than_the_switch_allows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What ends at last is compared, but in changed programs, whose bounds may be others."""
    late = Switches(drops=True, ends_after=1.0)
    monkeypatch.setattr(judging, "run", late.run)
    case = case_of(1, ENDLESS_BYTE, 2)
    assert judge(PAIR, Program("p", {}), case, tmp_path).verdict.kind == "frames"
    judged = judge(PAIR, Program("p", {}, changed=True), case, tmp_path)
    assert judged.verdict.same
    assert len(judged.left_out) == 1


def test_what_was_used_is_counted(tmp_path: Path) -> None:
    """Commands and what the tested switch counts, over all cases."""
    case = replace(case_of(1), commands=({"do": "table_clear"}, {"do": "table_clear"}))
    judged = Judged(case, Verdict(), Outcome(counts={"resubmitted": 3, "recirculated": 0}), Outcome())
    summary = Summary(programs=1, findings=[("p", Verdict("frames"), tmp_path)])
    summary.add(judged)
    summary.add(judged)
    read = json.loads(summary.json())
    assert read["features"] == {"command.table_clear": 4, "resubmitted": 6}
    assert (read["cases"], read["packets"], read["commands"]) == (2, 2, 4)
    assert read["findings"] == [{"program": "p", "kind": "frames", "folder": str(tmp_path)}]


def test_what_has_no_end_is_not_made_small(tmp_path: Path) -> None:
    """Each try would take as long."""
    verdict = Verdict("endless", "x")
    judged = Judged(case_of(1), verdict, Outcome(), Outcome())
    campaign = Campaign(PAIR, (), "1", 1, tmp_path)
    assert smaller(campaign, Program("p", {}), judged, tmp_path) is judged


class Machine:
    """A process, its processor time and the clock, as a list of moments."""

    pid = 1

    def __init__(self, moments: Iterator[tuple[float, float, Any]]) -> None:
        self.moments = moments
        self.now, self.cpu, self.seen = next(moments)

    def poll(self) -> None:
        return None

    def sleep(self, _: float) -> None:
        self.now, self.cpu, self.seen = next(self.moments)

    def rests(self, monkeypatch: pytest.MonkeyPatch, cpu_s: float) -> bool:
        """What the fuzzer takes it for."""
        monkeypatch.setattr(switches, "cpu_time_s", lambda _: self.cpu)
        monkeypatch.setattr(switches, "activity", lambda _: self.seen)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)
        running = object.__new__(Running)
        running.pipe = -1
        running.process = self  # type: ignore[assignment]
        return running._rest(cpu_s)


def test_when_a_switch_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as nothing has moved between looks."""
    moments = iter([(0.0, 0.0, None), (0.1, 0.1, None), *((1.0 + at, 0.1, "asleep") for at in range(9))])
    machine = Machine(moments)
    assert machine.rests(monkeypatch, 1.0)
    assert machine.now < 6


def test_a_busy_switch_with_little_of_a_processor_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes until it has used what it may."""
    machine = Machine((10.0 * at, 0.01 * at, None) for at in range(1000))
    assert not machine.rests(monkeypatch, 3.0)
    assert machine.now > 2000


def test_a_switch_that_was_stopped_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """It uses nothing, but its threads do not sleep; it goes on later."""
    stopped = [(10.0 * at, 0.0, None) for at in range(100)]
    after = [(1000.0 + at, 0.01 * at, at) for at in range(50)]
    asleep = [(1100.0 + at, 0.5, "asleep") for at in range(9)]
    machine = Machine(iter([*stopped, *after, *asleep]))
    assert machine.rests(monkeypatch, 3.0)
    assert machine.now > 1100


def test_a_switch_that_wakes_now_and_then_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine((10.0 * at, 0.0001 * at, at) for at in range(100))
    assert machine.rests(monkeypatch, 3.0)


def test_a_switch_that_has_not_read_its_packet_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though all its threads sleep."""
    machine = Machine((0.01 * at, 0.0, "asleep") for at in range(100))
    left = iter([60] * 20)
    monkeypatch.setattr(Running, "_unread", lambda _: next(left, 0) > 0)
    assert machine.rests(monkeypatch, 3.0)
    assert machine.now > 0.2


def test_what_is_in_a_pipe() -> None:
    ends = os.pipe()
    try:
        assert unread(ends[0]) == 0
        os.write(ends[1], bytes(300))
        assert unread(ends[0]) == 300
        assert unread(ends[1]) == 300
    finally:
        os.close(ends[0])
        os.close(ends[1])


def test_counts(tmp_path: Path) -> None:
    """Those of the pipeline; none of what is not there or no JSON."""
    path = tmp_path / "counts.json"
    assert read_counts(path) == {}
    path.write_text("{")
    assert read_counts(path) == {}
    path.write_text('{"pipeline": {"drop.action_loop": 2}, "ports": []}')
    assert read_counts(path) == {"drop.action_loop": 2}
    assert known.reason_of_no_end(read_counts(path)) is not None
    assert known.reason_of_no_end({"drop.pass_limit": 0, "drop.queue_full": 3}) is None
