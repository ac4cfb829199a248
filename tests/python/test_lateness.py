"""What is late, and for how long that is told."""

from __future__ import annotations

from wormcast.network.ids import HostId
from wormcast.reconcile.lateness import WINDOW_S, Lateness


def test_the_worst_of_the_last_seconds_is_told_and_then_forgotten() -> None:
    lateness = Lateness()
    lateness.note_controller(0.2, 1.0)
    assert lateness.to_json(1.0)["controller_ms"] == 0
    lateness.note_controller(0.8, 2.0)
    lateness.note_controller(0.3, 3.0)
    lateness.note_agent(HostId(4), 9_000, 1.0)
    assert lateness.to_json(3.0)["agents"] == 0, "what it says first is from before"
    lateness.note_agent(HostId(4), 9_500, 2.0)
    lateness.note_agent(HostId(5), 0, 2.0)
    lateness.note_agent(HostId(5), 2_000, 3.0)
    told = lateness.to_json(3.0)
    assert (told["controller_ms"], told["agents"], told["agents_ms"]) == (800, 2, 2_000)
    told = lateness.to_json(2.5 + WINDOW_S)
    assert (told["controller_ms"], told["agents"], told["agents_ms"]) == (300, 1, 2_000)
    assert lateness.to_json(3.5 + WINDOW_S)["agents"] == 0


def test_an_agent_that_starts_anew_is_not_late_for_it() -> None:
    lateness = Lateness()
    lateness.note_agent(HostId(1), 5_000, 1.0)
    lateness.note_agent(HostId(1), 0, 2.0)
    lateness.note_agent(HostId(1), 0, 3.0)
    assert lateness.to_json(3.0)["agents"] == 0
