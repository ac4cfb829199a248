"""Groups that the switches replicate, from Python: what a plan says is what switches do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from routing_lab import ends, tree_ends
from wormcast import routing, verify
from wormcast.cli.main import main

Json = dict[str, Any]


def planned(topology: Json, members: list[int], scheme: str, guard: str) -> Json:
    parameters = {"guard": guard} | ({"group": 300} if scheme == "table" else {})
    return routing.group(
        topology,
        {"scheme": scheme, "source": members[0], "members": members, "parameters": parameters},
    )


def spread(topology: Json, entries: list[Json], sender: int) -> list[int]:
    """Hosts that copies of a GROUP worm reach."""
    beyond = ends(topology)
    ports = {entry["switch"]: entry["ports"] for entry in entries}
    place = next((h["switch"], h["port"]) for h in topology["hosts"] if h["id"] == sender)
    reached, waiting = [], [place]
    while waiting:
        switch, came_by = waiting.pop()
        for port in ports[switch]:
            if port != came_by:
                end = beyond[switch, port]
                if isinstance(end, int):
                    reached.append(end)
                else:
                    waiting.append(end)
        assert len(waiting) < 1000, "the worm goes round"
    return sorted(reached)


@pytest.mark.parametrize("guard", ["A", "B", "C"])
@pytest.mark.parametrize("spec", ["irregular:16:3", "torus:4:2", "fat-tree:4"])
def test_every_scheme_of_switches_reaches_the_members(spec: str, guard: str) -> None:
    topology = routing.make(spec)
    members = [1, 4, 6, 9, 12, 15]
    tree = planned(topology, members, "switch", guard)
    reached = []
    for source, route in verify.trees_of(tree):
        reached += tree_ends(topology, source, route)
    assert sorted(reached) == members[1:]
    table = planned(topology, members, "table", guard)
    assert {entry["group"] for entry in table["entries"]} == {300}
    sender = table["relay"]["host"] if "relay" in table else 1
    assert set(spread(topology, table["entries"], sender)) | {sender, 1} >= set(members)
    assert set(spread(topology, table["entries"], sender)) <= set(members)
    broadcast = planned(topology, members, "broadcast", guard)
    assert broadcast["filtered"] == len(topology["hosts"]) - 5
    for file in (tree, table, broadcast):
        assert file["link_crossings"] >= file["crossings_bound"] >= 6
        assert file["excess"] == pytest.approx(file["link_crossings"] / file["crossings_bound"] - 1, abs=1e-4)
        assert file["unicast"] == ("tree-only" if guard == "A" else "osud")


def test_the_command_line_plans_tables() -> None:
    def run(*arguments: str) -> Result:
        fixed = [
            "group",
            "plan",
            "--topology",
            "fat-tree:4",
            "--members",
            "1,6,9",
            "--scheme",
            "table",
            "--json",
        ]
        return CliRunner().invoke(main, [*fixed, *arguments])

    result = run("--guard", "C", "--group", "300")
    assert result.exit_code == 0, result.output
    file = json.loads(result.stdout)
    assert file["parameters"]["group"] == 300
    assert {entry["group"] for entry in file["entries"]} == {300}
    assert file["branching"] == "flushed"
    for option, value, reason in (
        ("--group", "255", "group 255 is broadcast"),
        ("--guard", "D", "choices are A, B, C"),
        ("--least", "hops", "choices are links, depth"),
    ):
        refused = run(option, value)
        assert refused.exit_code == 2
        assert reason in refused.output.replace("\n", " ")
