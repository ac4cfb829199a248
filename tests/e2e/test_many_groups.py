"""Hundreds of groups on every host: each is taken by all agents, carries files, and can go again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import transfer

GROUPS = 600
SETTLE_SECONDS_MAX = 600.0


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=20.0 if switch == "wormcast" else 5.0)


def counts(fabric: Fabric) -> list[tuple[int, int, int]]:
    """What each host is to have of groups, has, and refuses."""
    shown = [host["groups"] for host in fabric.get("hosts")["hosts"]]
    return [(host["planned"], host["installed"], host["refused_total"]) for host in shown]


def test_every_agent_takes_hundreds_of_groups(fabric: Fabric, random_file: Callable[[int], Path]) -> None:
    hosts = [host["id"] for host in fabric.get("hosts")["hosts"]]
    groups = [{"name": f"many-{n}", "scheme": "k-binomial", "members": hosts} for n in range(GROUPS)]
    made = fabric.post("groups", {"groups": groups})["groups"]
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while counts(fabric) != [(GROUPS, GROUPS, 0)] * len(hosts):
        assert time.monotonic() < deadline, counts(fabric)
        time.sleep(0.2)
    assert all(host["plan_error"] is None for host in fabric.get("hosts")["hosts"])
    result = transfer(fabric, "circuit", random_file(200_000), 0, hosts[1:], seconds_max=600)
    assert result.intact
    assert not result.failed
    assert len(made) == GROUPS
