"""`host limit` on real switches: an agent keeps to its rate, so nothing that it sends is dropped or sent again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from guard_worms import drops
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import Result, transfer

LIMITED = 0
SECONDS_MAX = 600.0
FILE_BYTES = {"wormcast": 4_700_000, "bmv2": 1_000_000}
RATE_BPS = {"wormcast": 8_000_000, "bmv2": 2_000_000}
PACKET_BYTES = 1_400


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=50.0 if switch == "wormcast" else 10.0)


def limit(fabric: Fabric, bps: int | None) -> list[str]:
    """Sets the rate, waits until the agent has it, and says who keeps the host to it."""
    kept_by: list[str] = fabric.put(f"hosts/{LIMITED}/rate", {"bps": bps})["rate_kept_by"]
    deadline = time.monotonic() + SECONDS_MAX
    while (status := fabric.get("status"))["epoch"] != fabric.get(f"hosts/{LIMITED}")["plan_epoch"]:
        assert time.monotonic() < deadline, status
        time.sleep(0.2)
    return kept_by


def sent(fabric: Fabric, scheme: str, file: Path, receivers: list[int]) -> Result:
    result = transfer(fabric, scheme, file, LIMITED, receivers, seconds_max=600)
    assert result.intact
    assert not result.failed
    return result


@pytest.mark.parametrize("guard", [False, True])
def test_a_host_keeps_to_its_rate_and_loses_nothing_by_it(
    fabric: Fabric, guard: bool, random_file: Callable[[int], Path]
) -> None:
    fabric.put("guard", {"on": guard})
    kind = fabric.options.switch
    rate = RATE_BPS[kind]
    try:
        assert limit(fabric, rate) == (["agent", "switch"] if guard else ["agent"])
        time.sleep(2.0)  # until the switch has it too
        file = random_file(FILE_BYTES[kind])
        before = drops(fabric)
        for scheme, receivers, copies in (("switch", [1, 2, 5], 1), ("repeat", [3, 6], 2)):
            result = sent(fabric, scheme, file, receivers)
            # As fast as it may send, however slow the machine is.
            assert result.seconds > 0.95 * copies * 8 * FILE_BYTES[kind] / rate
            # Of 3,400 packets 2,368 were sent again where the switch alone held the host to its rate.
            assert result.retransmissions < 0.05 * copies * FILE_BYTES[kind] / PACKET_BYTES
        assert drops(fabric) - before == {}
    finally:
        assert limit(fabric, None) == []


def test_routes_avoid_a_host_with_a_rate(fabric: Fabric) -> None:
    """Switches meter all that comes from it, so nobody's worms go through it."""
    fabric.put("routing", {"algorithm": "rrmit"})
    try:

        def through() -> set[int]:
            return {host for route in fabric.get("routes")["routes"] for host in route["in_transit"]}

        deadline = time.monotonic() + SECONDS_MAX
        while not (used := through()):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        host = min(used)
        assert not fabric.put(f"hosts/{host}/rate", {"bps": 10_000_000})["re_injects"]
        while host in through():
            assert time.monotonic() < deadline
            time.sleep(0.5)
        fabric.put(f"hosts/{host}/rate", {"bps": None})
    finally:
        fabric.put("routing", {"algorithm": "osud"})
