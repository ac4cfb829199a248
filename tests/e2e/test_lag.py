"""`wormcast group lag` on running fabrics: a member whose agent stands still is named while a transfer runs, and once it
goes on the transfer ends."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wormcast.mininet.fabric import Fabric
from wormcast.mininet.transfer import transfer

Json = dict[str, Any]
MIB = 2**20
SOURCE = 0
RECEIVERS = [1, 2, 3, 4, 5, 6]
STOPPED = 5
STOPPED_S = 1.0
"""Until all packets that were under way have been acknowledged by the others."""
SECONDS_MAX = 600.0
"""Only against hanging for ever."""


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=20.0 if switch == "wormcast" else 5.0)


def lag(fabric: Fabric, *arguments: str) -> Json:
    done = fabric.run(0, ["wormcast", "group", "lag", *arguments, "--json"], seconds_max=SECONDS_MAX)
    assert done.returncode == 0, (done.stdout, done.stderr)
    shown: Json = json.loads(done.stdout)
    return shown


@pytest.mark.parametrize(
    ("scheme", "gather", "guard"),
    [("switch", True, False), ("table", True, True), ("switch", False, False), ("repeat", False, False)],
)
def test_a_member_that_stands_still_is_named(
    fabric: Fabric, scheme: str, gather: bool, guard: bool, random_file: Callable[[int], Path]
) -> None:
    fabric.put("guard", {"on": guard})
    seen: list[Json] = []
    texts: list[str] = []

    def stand_still() -> None:
        (group,) = fabric.get("groups")["groups"]
        agent = fabric.agents[STOPPED]
        agent.send_signal(signal.SIGSTOP)
        try:
            time.sleep(STOPPED_S)
            seen.append(lag(fabric, group["name"], "--origin", f"h{SOURCE}"))
            done = fabric.run(0, ["wormcast", "group", "lag", str(group["id"])], seconds_max=SECONDS_MAX)
            texts.append(done.stdout)
        finally:
            agent.send_signal(signal.SIGCONT)

    try:
        result = transfer(
            fabric,
            scheme,
            random_file((8 if fabric.options.switch == "wormcast" else 1) * MIB),
            SOURCE,
            RECEIVERS,
            seconds_max=SECONDS_MAX,
            midway=stand_still,
            midway_share=0.2,
            gather=gather,
        )
    finally:
        fabric.put("guard", {"on": False})
    assert result.intact, result.failed
    (shown,) = seen
    assert shown["origin"] == SOURCE
    assert shown["no_answer"] == [STOPPED]
    assert {row["host"] for row in shown["members"]} == set(RECEIVERS)
    first, *others = shown["members"]
    assert first["host"] == STOPPED, shown
    assert first["behind"] > max(row["behind"] for row in others), shown
    assert first["acknowledged"] + first["behind"] == shown["sent"]
    # What it said itself counts where that goes further than what switches have of it.
    assert first["by"]["way"] in (("switch", "host") if gather else ("host",))
    if gather:
        # Its own port, and nobody else behind it.
        (place,) = [host for host in fabric.get("topology")["hosts"] if host["id"] == STOPPED]
        places = [(branch["switch"], branch["port"], branch["members"]) for branch in shown["branches"]]
        assert (place["switch"], place["port"], [STOPPED]) in places
        assert all("why" not in branch for branch in shown["branches"]), shown["branches"]
    else:
        assert shown["branches"] == []
    (text,) = texts
    assert f"no answer from the agents of hosts {STOPPED}" in text
    rows = [line.split() for line in text.splitlines()]
    table = [int(row[0]) for row in rows if row and row[0].isdigit()]
    assert table[0] == STOPPED
    assert sorted(table) == RECEIVERS


def test_wrong_use_is_refused_with_the_choices(fabric: Fabric) -> None:
    group = fabric.post("groups", {"name": "quiet", "scheme": "switch", "members": [0, 1], "gather": True})
    try:
        for arguments, words in (
            (["loud"], ["no group 'loud'", "quiet"]),
            (["quiet", "--origin", "2"], ["host 2 is no member", "0, 1"]),
            (["quiet", "--origin", "1"], ["host 1 has sent nothing"]),
            (["quiet"], ["nobody whose agent answers has sent anything"]),
        ):
            done = fabric.run(0, ["wormcast", "group", "lag", *arguments], seconds_max=SECONDS_MAX)
            assert done.returncode != 0
            assert all(word in done.stderr for word in words), (words, done.stderr)
    finally:
        fabric.delete(f"groups/{group['id']}")
