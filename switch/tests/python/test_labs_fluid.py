"""The fluid model of the queue lab: closed forms, what holds for any traffic, and the switch on virtual time beside it."""

from __future__ import annotations

import dataclasses
import math
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labs import packets, queues
from labs.fluid import Curve, serve
from labs.rig import LabError

ROOT = Path(__file__).resolve().parents[3]

RATE = 1e6


def one(*phases: tuple[float, float]) -> Curve:
    return Curve.of_rates(phases)


def test_a_queue_grows_by_what_is_too_much_and_then_runs_empty() -> None:
    (flow,) = serve([one((2, 1.5e6), (3, 0))], RATE)
    assert flow.depth_bits([0, 1, 2, 2.5, 3, 5]) == pytest.approx([0, 5e5, 1e6, 5e5, 0, 0])
    assert flow.delay_s([1, 2]) == pytest.approx([0.5, 1.0])
    assert flow.lost_bits() == 0


def test_a_full_queue_loses_what_does_not_fit() -> None:
    (flow,) = serve([one((10, 1.5e6))], RATE, limits_bits=[2e5])
    filled_after = 2e5 / 0.5e6
    assert flow.lost_bits() == pytest.approx((10 - filled_after) * 0.5e6)
    assert flow.depth_bits([filled_after / 2, filled_after, 9]) == pytest.approx([1e5, 2e5, 2e5])
    assert flow.delay_s([5]) == pytest.approx([2e5 / RATE])
    lost_share_later = 1 - RATE / 1.5e6
    accepted = flow.accepted.at(9) - flow.accepted.at(8)
    assert 1 - accepted / 1.5e6 == pytest.approx(lost_share_later)


def test_what_has_priority_leaves_the_rest_what_it_does_not_need() -> None:
    high, low = serve([one((4, 0.6e6)), one((4, 0.7e6))], RATE)
    assert high.depth_bits([1, 4]) == pytest.approx([0, 0], abs=1)
    assert high.delay_s([1, 3]) == pytest.approx([0, 0], abs=1e-6)
    assert low.left.at(4) - low.left.at(2) == pytest.approx(2 * 0.4e6)
    assert low.depth_bits([4]) == pytest.approx([4 * 0.3e6])


def test_priority_can_starve_and_delay_counts_what_comes_later() -> None:
    # From second 1 on the high priority takes all for a second; what the low one holds then waits that second.
    high, low = serve([one((1, 0), (1, 1e6), (1, 0)), one((1, 1.5e6), (2, 0))], RATE)
    assert low.depth_bits([1, 1.5, 2, 2.5]) == pytest.approx([5e5, 5e5, 5e5, 0])
    assert high.depth_bits([1.5]) == pytest.approx([0], abs=1)
    assert low.delay_s([1]) == pytest.approx([1.5])


def test_a_burst_through_a_constant_rate() -> None:
    # An arrival curve of burst and rate, r < R: the backlog is at most the burst, the delay burst / R
    # (Le Boudec, Thiran: Network Calculus, theorems 1.4.1 and 1.4.2 with no latency).
    burst, r, instant = 3e5, 4e5, 1e-5
    (flow,) = serve([one((instant, burst / instant), (5, r))], RATE)
    times = np.linspace(0, 5, 5_001)
    assert flow.depth_bits(times).max() == pytest.approx(burst, rel=1e-2)
    assert flow.delay_s(times[1:]).max() == pytest.approx(burst / RATE, rel=1e-2)
    assert flow.depth_bits([burst / (RATE - r) + instant]) == pytest.approx([0], abs=burst * 1e-3)


def test_a_bucket_lets_an_idle_port_catch_up() -> None:
    (flow,) = serve([one((2, 1.5e6), (2, 0), (2, 1.5e6))], RATE, burst_bits=1e5)
    assert flow.depth_bits([0.2, 1.2, 2.0]) == pytest.approx([0, 5e5, 9e5])
    # 0.9 s to empty the queue, 0.1 s to fill the bucket, and it is full again when traffic comes.
    assert flow.depth_bits([4.2, 5.2]) == pytest.approx([0, 5e5])


def test_frames_are_a_fluid_between_their_ends() -> None:
    curve = Curve.of_frames([1.0, 2.0, 2.0, 4.0], [8, 8, 8, 8], 0.0)
    assert curve.at([0, 0.5, 1, 2, 3, 4]) == pytest.approx([0, 4, 8, 24, 28, 32])
    assert curve.when([0, 8, 24, 32]) == pytest.approx([0, 1, 2, 4], abs=1e-6)
    assert math.isinf(curve.when([33])[0])


def test_when_names_the_first_moment() -> None:
    curve = one((1, 8.0), (2, 0.0), (1, 8.0))
    assert curve.when([8.0, 12.0]) == pytest.approx([1.0, 3.5], abs=1e-5)


@pytest.mark.parametrize(
    ("rate", "options"),
    [(0, {}), (-1, {}), (1, {"burst_bits": -1}), (1, {"limits_bits": [0]}), (1, {"limits_bits": [1, 1]})],
)
def test_what_cannot_be_is_refused(rate: float, options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        serve([one((1, 1))], rate, **options)  # type: ignore[arg-type]


def test_curves_that_go_back_are_refused() -> None:
    with pytest.raises(ValueError, match="increase"):
        Curve(np.array([0.0, 0.0]), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="fall"):
        Curve(np.array([0.0, 1.0]), np.array([1.0, 0.0]))


PHASES = st.lists(st.tuples(st.floats(0.01, 2), st.floats(0, 3e6)), min_size=1, max_size=6)
LIMITS = st.one_of(st.just(math.inf), st.floats(1e3, 1e6))


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(PHASES, LIMITS), min_size=1, max_size=4), st.sampled_from([0.0, 1e3, 1e5]))
def test_nothing_is_made_and_no_rate_is_wasted(
    queues_: list[tuple[list[tuple[float, float]], float]], burst: float
) -> None:
    limits = [limit for _, limit in queues_]
    flows = serve([one(*phases) for phases, _ in queues_], RATE, limits_bits=limits, burst_bits=burst)
    times = flows[0].left.times
    for flow, limit in zip(flows, limits, strict=True):
        held = flow.accepted.at(times) - flow.left.at(times)
        assert held.min() > -1
        assert held.max() <= limit + 1
        assert flow.lost_bits() >= -1
        assert flow.left.bits[-1] == pytest.approx(flow.accepted.bits[-1], abs=2), (
            "all that was let in has left"
        )
    left = sum(flow.left.at(times) for flow in flows)
    steps, gained = np.diff(times), np.diff(left)
    assert np.all(gained <= RATE * steps + burst + 1)
    total = float(left[-1] - left[0])
    assert total <= RATE * float(times[-1] - times[0]) + burst + 1
    # While anything waits, the port sends at its rate: it is never idle for nothing.
    waits = sum(flow.depth_bits((times[:-1] + times[1:]) / 2) for flow in flows) > 10
    assert np.all(gained[waits] >= RATE * steps[waits] * (1 - 1e-6) - 1)


# --- the switch on virtual time -----------------------------------------------------------------


@pytest.fixture
def virtual_switch() -> Path:
    """The program, where it is built."""
    try:
        path = queues.virtual_switch()
    except LabError:
        path = None
    if path is None:
        pytest.skip(f"{queues.VIRTUAL} is not built; `make build` makes it")
    return path


def drawn(seed: int) -> queues.Setup:
    """A port, its frames and its traffic."""
    chance = random.Random(seed)
    rate = chance.choice([500, 1_000, 4_000, 20_000])
    phases = tuple(
        (chance.uniform(0.4, 1.5), chance.uniform(0.1, 1.3), chance.uniform(0.1, 1.3))
        for _ in range(chance.randint(2, 5))
    )
    frame_bytes = chance.choice([100, 250, 700, 1_500])
    return queues.Setup(
        f"{rate}kbit",
        rate * 1e3,
        max(frame_bytes, rate // 20),
        chance.randint(100, 600),
        (*phases, (3.0, 0.0, 0.0)),
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_switch_is_within_five_percent_of_the_model(seed: int, virtual_switch: Path) -> None:
    setup = drawn(seed)
    run = queues.run_on_virtual_time(setup, queues.PROGRAM, virtual_switch)
    model = setup.model([setup.offered(queues.URGENT), setup.offered(queues.BULK)])
    for priority, comparison in queues.compare(run, setup, model).items():
        assert comparison.worst <= queues.WITHIN, (setup, queues.NAMES[priority], comparison)
    for priority in queues.NAMES:
        assert len(run.of(priority)) + run.dropped[priority] == len(run.sent[priority])


@pytest.mark.parametrize(
    "wrong", [{"rate_bps": 1.1e6}, {"rate_bps": 0.9e6}, {"queue_frames": 180}, {"queue_frames": 220}], ids=str
)
def test_another_port_is_told_from_this_one(wrong: dict[str, float], virtual_switch: Path) -> None:
    """The comparison can fail: a port that is a tenth faster, slower, shallower or deeper is further off."""
    setup = queues.Setup("1mbit", 1e6, 250, 200)
    run = queues.run_on_virtual_time(setup, queues.PROGRAM, virtual_switch)
    arrivals = [setup.offered(queues.URGENT), setup.offered(queues.BULK)]
    other = dataclasses.replace(setup, **wrong).model(arrivals)
    assert max(comparison.worst for comparison in queues.compare(run, setup, other).values()) > queues.WITHIN


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("5 0 00ff\n4 0 00ff\n", "line 2: time goes back"),
        ("0 510 00ff\n", "port from 0 to 509"),
        ("0 0 00f\n", "line 1: `0 0 00f`"),
        ("0 0\n", "TIME_US PORT HEX"),
        ("0 0 " + "00" * (65_535 + 257), "65791 bytes"),
        ("0 0 00 00\n", "`0 0 00 00`"),
    ],
)
def test_lines_that_are_no_frames_are_refused(lines: str, named: str, virtual_switch: Path) -> None:
    done = subprocess.run(
        [str(virtual_switch), str(queues.PROGRAM)], input=lines, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 2
    assert named in done.stderr
    assert len(done.stderr) < 400


def test_what_goes_in_alone_decides_what_comes_out(virtual_switch: Path) -> None:
    command = [str(virtual_switch), str(queues.PROGRAM), "--port-rate", "1mbit", "--queue-frames", "2"]
    frames = "".join(
        f"{time_us} 0 {packets.build(3, time_us, 0, 125).hex()}\n" for time_us in range(0, 8_000, 200)
    )
    first, again = (
        subprocess.run(command, input=frames, capture_output=True, text=True, timeout=600, check=True).stdout
        for _ in range(2)
    )
    assert first == again
    *left, drops = first.splitlines()
    sent, dropped = len(left), int(drops.removeprefix("drops 1 3 "))
    assert sent + dropped == 40
    assert dropped > 0
    times = [int(line.split()[0]) for line in left]
    assert times[-1] - times[-2] == pytest.approx(1_000, abs=20), "125 bytes at 1 Mbit/s"


def test_a_wait_that_looks_like_a_vlan_tag_is_put_back() -> None:
    frame = bytearray(packets.build(5, 7, 1_000, 80))
    frame[10:14] = (0x8100).to_bytes(4, "big")
    frame[14:16] = (80).to_bytes(2, "big")
    as_the_kernel_gives_it = bytes(frame[:12] + frame[16:])
    for given_ in (bytes(frame), as_the_kernel_gives_it):
        packet = packets.parse(given_, 2_000)
        assert packet is not None
        assert (packet.priority, packet.number, packet.waited_s) == (5, 7, pytest.approx(0x8100 * 1e-6))
    assert packets.parse(bytes(60), 0) is None
