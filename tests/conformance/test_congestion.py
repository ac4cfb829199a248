"""CE: a worm that leaves a long queue says so, and nothing else about it changes (SPEC.md §2.1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from oracle.codec import Worm, decode_frame
from rig.host import SwitchRig
from rig.targets import Target
from vector_files import load_vectors
from wormcast.wire import CE_QUEUE_DEPTH, Flag, Kind

SMALL = load_vectors("worm_switch.json")["states"]["small"]
FRAMES = 200

pytestmark = pytest.mark.network


@pytest.fixture
def slow_switch(target: Target, tmp_path: Path) -> Iterator[SwitchRig]:
    """A switch whose ports are slower than the one that feeds it."""
    with SwitchRig(target, tmp_path, SMALL["ports"], slow=True) as rig:
        yield rig


def test_long_queue_marks_congestion(slow_switch: SwitchRig) -> None:
    """A worm through an idle switch has no mark; of a burst into a slow port, those with many behind them have."""
    slow_switch.install("small", SMALL)
    worm = Worm(kind=Kind.UNICAST, route=b"\x05\x02", payload=bytes(300))
    assert flood(slow_switch, worm, 1) == [(worm.at(b"\x02"), 1)]
    marked = plain = 0
    for left, count in flood(slow_switch, worm, FRAMES):
        assert left.flags & ~Flag.CE == worm.flags
        assert (left.hops, left.route, left.payload) == (1, b"\x02", worm.payload)
        if left.flags & Flag.CE:
            marked += count
        else:
            plain += count
    assert marked > 0, f"{plain} worms came out, none marked"
    # The last of the burst leave a queue that has become short again.
    assert plain >= CE_QUEUE_DEPTH


def flood(switch: SwitchRig, worm: Worm, count: int) -> list[tuple[Worm, int]]:
    """What comes out, each worm with how often; the codec verifies every checksum."""
    answer = switch.ask(do="flood", frame=worm.to_frame().hex(), ingress_port=0, count=count)
    return [(decode_frame(bytes.fromhex(copy["frame"])), copy["count"]) for copy in answer["out"]]
