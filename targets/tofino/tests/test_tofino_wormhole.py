"""The program for Tofino 2 keeps the rules of wormhole mode (SPEC.md §3.1), on a model of the chip: trains from several
channels, in drawn order, with losses. WORMCAST_SEED repeats a run."""

import functools
import os
from collections import Counter
from typing import Any

import pytest
from tofino import chip
from tofino.syntax import Program
from tofino.trains import SLOT_NS, Plan, Trains
from vector_files import load_vectors

STATE: dict[str, Any] = load_vectors("worm_switch.json")["states"]["wormhole"]
SEED = os.environ.get("WORMCAST_SEED")
SEEDS = [int(SEED)] if SEED else range(int(os.environ.get("WORMCAST_TRAIN_RUNS", "8")))


@functools.cache
def program() -> Program:
    """That of Tofino 2."""
    return chip.load(top="tofino2.p4")


# What may happen, and what the counter `trains` has to show of it in all runs together.
PLANS = {
    "nothing is lost": (Plan(), set()),
    "one output": (Plan(outputs=(5,), entries=0.8), set()),
    "one channel": (Plan(channels=(4,), worms=12), set()),
    "hosts are slow": (Plan(slow=0.02), set()),
    "some ports are not there": (Plan(outputs=(5, 77)), set()),
    "frames are lost on the link": (Plan(lost_before=0.15), {"ABORTED", "TAIL_LOST"}),
    "few frames of long trains are lost": (Plan(lost_before=0.03, longest=12, alone=0.1), {"ABORTED"}),
    "frames that wait are lost": (Plan(lost_waiting=0.02), {"EXPIRED", "TURN_LOST"}),
    "all frames are lost anywhere": (
        Plan(lost_before=0.1, lost_waiting=0.02),
        {"ABORTED", "EXPIRED", "TURN_LOST"},
    ),
    "hosts fall silent": (Plan(silences=0.03), {"EXPIRED"}),
    "everything": (
        Plan(lost_before=0.05, lost_waiting=0.01, slow=0.01, silences=0.01),
        {"ABORTED", "TAIL_LOST", "EXPIRED"},
    ),
    "few may wait": (Plan(held_max=6, entries=0.8, longest=10), {"ABORTED"}),
    "few may wait, and are lost": (Plan(held_max=6, entries=0.8, lost_waiting=0.02), {"ABORTED"}),
}
# In these nothing but waiting happens.
CALM = ("nothing is lost", "one output", "one channel", "some ports are not there")


@functools.cache
def events_of(name: str, seed: int) -> Counter[str]:
    """What was counted in a run, which Trains has judged."""
    trains = Trains(program(), STATE, seed, PLANS[name][0])
    trains.run()
    return trains.events


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PLANS)
def test_trains_leave_by_the_rules(name: str, seed: int) -> None:
    """Trains is the judge."""
    events = events_of(name, seed)
    assert name not in CALM or set(events) == {"HELD"}, events


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_absorbed_waits_for_its_output(seed: int) -> None:
    """Worms of one frame: they do not come between the frames of a train."""
    Trains(program(), STATE, seed, Plan(absorbed=0.5)).run()


def test_no_more_frames_wait_than_may() -> None:
    """But for those that come in before one that waits has said so. The train ends there, and others wait for it no longer
    than for any."""
    held_max = 8
    trains = Trains(program(), STATE, 1, Plan(held_max=held_max))
    first, long = trains.make(1, 5, 2, has_header=True), trains.make(0, 5, 40, has_header=True)
    trains.enter(first)
    trains.rounds()
    most = 0
    for _ in long.frames:
        trains.enter(long)
        trains.rounds()
        most = max(most, len(trains.chip.recirculating))
    assert held_max <= most <= held_max + 2
    trains.enter(first)
    trains.settle()
    assert (long.left, long.aborted) == (list(range(most)), True)
    trains.fresh(0, 5)


def test_worms_that_go_on_make_no_room_for_more_than_may_wait() -> None:
    """More comes in by a channel than an output takes, which has a worm of others between any two."""
    held_max = 8
    trains = Trains(program(), STATE, 1, Plan(held_max=held_max))
    between = trains.make(1, 5, 2, has_header=True)
    trains.enter(between)
    trains.rounds()
    most = served = 0
    worms = []
    for step in range(12):
        for _ in range(4):
            worms.append(trains.make(0, 5, 2, has_header=True))
            for _ in range(2):
                trains.enter(worms[-1])
                trains.rounds()
        following = trains.make(2 - step % 2, 5, 2, has_header=True)
        trains.enter(following)
        trains.rounds()
        most = max(most, len(trains.chip.recirculating))
        trains.wait(2)  # until it is not taken for full any more
        trains.enter(between)
        trains.rounds()
        between, served = following, sum(bool(worm.left) for worm in worms)
    assert served == 12
    assert held_max <= most <= held_max + 3
    trains.enter(between)
    trains.settle()


def test_what_has_left_does_not_count_as_waiting() -> None:
    """Of a long train a few wait at a time, each of them once."""
    trains = Trains(program(), STATE, 1, Plan(held_max=8))
    long = trains.make(0, 5, 40, has_header=True)
    for _ in range(4):
        trains.enter(long)
    while trains.chip.recirculating:
        if long.next < len(long.frames):
            trains.enter(long)
        left = len(long.left)
        while len(long.left) == left:
            trains.pass_one(0)
    assert (long.left, long.aborted) == (list(range(40)), False)


def test_what_was_lost_does_not_count_as_waiting_for_ever() -> None:
    """Not once a worm has gone by."""
    trains = Trains(program(), STATE, 1, Plan(held_max=8))
    for _ in range(8):
        worm = trains.make(0, 5, 2, has_header=True)
        for _ in worm.frames:
            trains.enter(worm)
        trains.lose(0)
        trains.lose(0)
        trains.fall_silent()
    trains.enter(trains.make(0, 5, 1, has_header=False))
    trains.settle()
    trains.fresh(0, 5)


def test_a_head_that_is_refused_leaves_no_trace() -> None:
    """Else the next one would take the worm before for one without a tail, and end it."""
    trains = Trains(program(), STATE, 1, Plan(held_max=5))
    first, long = trains.make(1, 5, 2, has_header=True), trains.make(0, 5, 5, has_header=True)
    trains.enter(first)
    trains.rounds()
    for _ in long.frames:
        trains.enter(long)
        trains.rounds()
    refused, last = (trains.make(0, 5, 2, has_header=True) for _ in range(2))
    trains.enter(refused)
    assert len(trains.chip.recirculating) == 5
    trains.enter(first)
    trains.pass_one(trains.place_of(long, 0))
    assert (first.left, long.left) == ([0, 1], [0])
    for _ in range(2):  # the last of those that wait learns, and says, that they are fewer
        trains.pass_one(trains.place_of(long, 4))
    trains.enter(last)
    trains.pass_one(trains.place_of(last, 0))
    trains.enter(last)
    trains.settle()
    assert (long.left, long.aborted, last.left) == ([0, 1, 2, 3, 4], False, [0, 1])


def test_a_head_comes_behind_a_worm_that_lost_its_turn() -> None:
    """It closes that worm, whose tail never came, and goes on itself."""
    trains = Trains(program(), STATE, 1, Plan())
    silent, waits, last = (
        trains.make(channel, 5, frames, has_header=True) for channel, frames in ((1, 2), (0, 1), (1, 1))
    )
    trains.enter(silent)
    trains.rounds()
    trains.enter(waits)
    trains.fall_silent()
    assert (silent.left, waits.left) == ([0], [0])
    trains.enter(last)
    trains.rounds()
    assert last.left == [0]


def test_who_comes_after_a_very_long_silence_waits_no_longer_than_others() -> None:
    """Slots of time go round after 18 minutes, and half of that looks like the future."""
    trains = Trains(program(), STATE, 1, Plan())
    silent, late = trains.make(1, 5, 2, has_header=True), trains.make(0, 5, 1, has_header=True)
    trains.enter(silent)
    trains.rounds()
    trains.chip.switch.now_ns += 40_000 * SLOT_NS
    trains.enter(late)
    trains.fall_silent()
    assert late.left == [0]


def test_a_worm_that_has_lost_its_turn_makes_room_in_its_channel_at_once() -> None:
    """The next one of that channel waits for no further silence."""
    trains = Trains(program(), STATE, 1, Plan())
    first = trains.make(1, 5, 2, has_header=True)
    broken, last = (trains.make(0, 5, frames, has_header=True) for frames in (3, 1))
    trains.enter(first)
    trains.rounds()
    for worm in (broken, broken, broken, last):
        trains.enter(worm)
        trains.rounds()
    trains.lose(trains.place_of(broken, 1))
    trains.enter(first)
    trains.rounds()
    assert (broken.left, last.left) == ([0], [])
    trains.fall_silent()
    assert (broken.left, last.left) == ([0], [0])
    # What ended has been taken off the count. The one that was lost is forgotten later.
    held = trains.chip.switch.registers[0, "channel_held"]
    assert held[0].value.value == 1


def test_what_waits_goes_on_when_the_mode_is_turned_off() -> None:
    """Behind a train whose rest is refused then. Later the mode may come again."""
    trains = Trains(program(), STATE, 1, Plan())
    begun = trains.make(1, 5, 3, has_header=True)
    trains.enter(begun)
    trains.rounds()
    worms = [trains.make(channel, 5, 3, has_header=True) for channel in (0, 4)]
    for worm in worms:
        for _ in worm.frames:
            trains.enter(worm)
    trains.rounds()
    assert (begun.left, len(trains.chip.recirculating)) == ([0], 6)
    mode = trains.chip.switch.defaults.pop("ingress.wormhole")
    trains.settle()
    assert [worm.left for worm in worms] == [[0, 1, 2], [0, 1, 2]]
    trains.chip.switch.defaults["ingress.wormhole"] = mode
    trains.fall_silent()  # those that waited took the switch for full
    trains.fresh(0, 5)


@pytest.mark.skipif(len(SEEDS) < 8, reason="a few runs do not show everything")
@pytest.mark.parametrize("name", PLANS)
def test_everything_happens_that_should(name: str) -> None:
    """Or the runs would prove less than they say."""
    events = sum((events_of(name, seed) for seed in SEEDS), Counter[str]())
    assert set(events) >= PLANS[name][1] | {"HELD"}, events
