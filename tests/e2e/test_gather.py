"""Groups whose ACKs switches gather: files come whole, by gathered ACKs, also where switches and members go and come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import transfer

MIB = 2**20
SOURCE = 0
RECEIVERS = [1, 2, 3, 4, 5, 6]
SECONDS_MAX = 600.0
"""Only against hanging for ever."""


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=20.0 if switch == "wormcast" else 5.0)


def file_size(fabric: Fabric) -> int:
    return 4 * MIB if fabric.options.switch == "wormcast" else MIB


def gather_worms(fabric: Fabric) -> int:
    """That switches have taken since they were started."""
    switches = [s["id"] for s in fabric.get("switches")["switches"]]
    return sum(fabric.get(f"switches/{s}/counters")["kinds"].get("gather", 0) for s in switches)


def stream(fabric: Fabric, host: int) -> dict[str, Any]:
    """What an agent says of the stream of the source in the newest group."""
    status = fabric.agent_status(host)
    assert status is not None
    group = max(status["groups"], key=lambda group: group["group"])
    return next(one for one in group["streams"] if one["origin"] == SOURCE)


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("scheme", ["switch", "table", "broadcast"])
def test_a_file_comes_to_all_and_its_acks_come_gathered(
    fabric: Fabric, scheme: str, guard: bool, random_file: Callable[[int], Path]
) -> None:
    fabric.put("guard", {"on": guard})
    before = gather_worms(fabric)
    seen: list[dict[str, Any]] = []

    def look() -> None:
        seen.extend(stream(fabric, host) for host in [SOURCE, *RECEIVERS])
        (group,) = fabric.get("groups")["groups"]
        assert group["gathered"]["origins"] == [SOURCE, *RECEIVERS]
        assert group["gathered"]["by_hosts"] == []

    try:
        result = transfer(
            fabric,
            scheme,
            random_file(file_size(fabric)),
            SOURCE,
            RECEIVERS,
            seconds_max=SECONDS_MAX,
            midway=look,
            gather=True,
        )
    finally:
        fabric.put("guard", {"on": False})
    assert result.intact
    assert not result.failed
    source, *members = seen
    assert source["gathered_received"] > 0
    assert all(member["gathered_sent"] > 0 for member in members)
    assert gather_worms(fabric) > before


def test_a_switch_that_restarts_and_members_that_change_cost_nothing(
    fabric: Fabric, random_file: Callable[[int], Path]
) -> None:
    """Registers of the switch are zero then, and its entries new; a new plan takes another epoch. Host 7 comes too late
    for the message."""
    epochs: list[int] = []

    def disturb() -> None:
        (group,) = fabric.get("groups")["groups"]
        epochs.append(group["gathered"]["epoch"])
        fabric.post(f"groups/{group['id']}/members", {"members": [7]})
        epochs.append(fabric.get(f"groups/{group['id']}")["gathered"]["epoch"])
        fabric.kill_switch(1)
        fabric.revive_switch(1)
        fabric.wait_ready()
        fabric.delete(f"groups/{group['id']}/members/7")
        epochs.append(fabric.get(f"groups/{group['id']}")["gathered"]["epoch"])

    result = transfer(
        fabric,
        "switch",
        random_file(2 * file_size(fabric)),
        SOURCE,
        RECEIVERS,
        seconds_max=SECONDS_MAX,
        midway=disturb,
        expect_failed=[7],
        gather=True,
    )
    assert result.intact, result.failed
    assert epochs[0] < epochs[1] < epochs[2]


def test_a_plain_group_has_no_gathered_acks(fabric: Fabric, random_file: Callable[[int], Path]) -> None:
    before = gather_worms(fabric)
    result = transfer(fabric, "switch", random_file(MIB // 4), SOURCE, RECEIVERS, seconds_max=SECONDS_MAX)
    assert result.intact
    assert gather_worms(fabric) == before
