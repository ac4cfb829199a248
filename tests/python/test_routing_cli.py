"""The commands that need no controller: topo make, topo draw, route, group plan, verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from wormcast import pictures, routing
from wormcast.cli.main import main


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)


def answer(*arguments: object, stdin: str | None = None) -> dict[str, Any]:
    result = run(*arguments, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    value: dict[str, Any] = json.loads(result.stdout)
    return value


@pytest.mark.parametrize(
    ("arguments", "spec"),
    [
        (["testbed"], "testbed"),
        (["torus", "--k", 4], "torus:4"),
        (["torus", "--k", "4x2x3", "--hosts", 2], "torus:4x2x3:2"),
        (["torus:4"], "torus:4"),
        (["irregular", "--switches", 8], "irregular:8:1"),
        (["irregular", "--switches", 8, "--seed", 5, "--links", 3], "irregular:8:5:4:3"),
        (["line", "--switches", 4], "line:4"),
        (["star", "--switches", 4, "--json"], "star:4"),
        (["shufflenet", "--p", 2, "--k", 3], "shufflenet:2:3"),
        (["fat-tree", "--k", 4], "fat-tree:4"),
    ],
)
def test_topo_make(arguments: list[object], spec: str) -> None:
    assert answer("topo", "make", *arguments) == routing.make(spec)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ladder"], "there is no topology 'ladder'; choices are testbed, line"),
        (["torus"], "torus needs --k"),
        (["testbed", "--k", 3], "testbed does not take --k; it takes no numbers"),
        (["line", "--switches", 3, "--pods", 3], "line does not take --pods; it takes --switches, --hosts"),
        (["torus:4", "--k", 3], "torus:4 has its numbers already; leave out --k"),
        (["ring", "--switches", 2], "2 switches make no ring"),
        (["line", "--switches", -1], "is not a number"),
    ],
)
def test_topo_make_refuses(arguments: list[object], message: str) -> None:
    result = run("topo", "make", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_from_file_to_file(tmp_path: Path) -> None:
    topology, routes, group = tmp_path / "topology.json", tmp_path / "routes.json", tmp_path / "group.json"
    assert run("topo", "make", "irregular:8:2", "-o", topology).exit_code == 0
    assert run("route", "--topology", topology, "--output", routes).exit_code == 0
    assert len(json.loads(routes.read_text())["routes"]) == 32 * 31
    assert answer("verify", "--topology", topology, "--routes", routes)["deadlock_free"]
    members = ",".join(map(str, range(0, 32, 3)))
    made = run(
        "group", "plan", "--topology", topology, "--scheme", "switch", "--members", members, "-o", group
    )
    assert made.exit_code == 0
    free = answer("verify", "--topology", topology, "--routes", routes, "--group", group)
    assert free["deadlock_free"]
    # Scheme A over routes that use all links: WORM Fig. 3.
    coupled = run(
        *["verify", "--topology", topology, "--routes", routes, "--group", group],
        *["--branching", "coupled", "--json"],
    )
    assert coupled.exit_code == 1
    cycle = json.loads(coupled.stdout)["cycle"]
    assert {wait["held_by"]["kind"] for wait in cycle} == {"unicast", "tree"}


def test_topology_from_standard_input() -> None:
    text = run("topo", "make", "torus", "--k", 3).stdout
    assert answer("verify", "--topology", "-", stdin=text)["deadlock_free"]


def test_route_of_one_pair_and_of_one_source() -> None:
    one = answer("route", "--topology", "testbed", 0, 5)
    assert one["routes"] == [routing.route(routing.make("testbed"), 0, 5)]
    assert len(answer("route", "--topology", "testbed", 3, "--algorithm", "tree-only")["routes"]) == 7
    missing = run("route", "--topology", "testbed", 3, 9)
    assert missing.exit_code == 2
    assert "there is no host 9; hosts are 0, 1, 2" in missing.stderr


def test_routes_of_a_split_fabric_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "split.json"
    left = routing.damage(routing.make("testbed"), links=[(0, 4), (2, 4)])
    file.write_text(json.dumps(left))
    routes = answer("route", "--topology", file, 0)
    assert {route["dst"] for route in routes["routes"]} == {1, 6, 7}
    assert {pair["dst"] for pair in routes["unreachable"]} == {2, 3, 4, 5}
    apart = run("route", "--topology", file, 0, 2)
    assert apart.exit_code == 2
    assert "parts that are not connected" in apart.stderr


def test_group_plan_forms(tmp_path: Path) -> None:
    by_option = answer("group", "plan", "--topology", "torus:3", "--members", "1,5,7", "--packets", 4)
    by_argument = answer("group", "plan", "--topology", "torus:3", "--packets", 4, 1, 5, 7)
    request = tmp_path / "request.json"
    request.write_text(
        json.dumps({"scheme": "k-binomial", "source": 1, "members": [1, 5, 7], "parameters": {"packets": 4}})
    )
    by_file = answer("group", "plan", "--topology", "torus:3", "--request", request)
    assert by_option == by_argument == by_file
    assert by_option["source"] == 1
    from_5 = answer("group", "plan", "--topology", "torus:3", "--request", request, "--source", 5)
    assert from_5["source"] == 5
    tree = answer(
        "group", "plan", "--topology", "testbed", "--scheme", "tree", "--fan-out", 1, "--source", 4, 0, 2, 4
    )
    assert [(edge["from"], edge["to"]) for edge in tree["edges"]] == [(4, 2), (2, 0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["group", "plan", "--topology", "testbed"], "no members"),
        (
            ["group", "plan", "--topology", "testbed", "--members", "1;2"],
            "is not a list of hosts; write it as 1,5,9",
        ),
        (["group", "plan", "--topology", "testbed", "--scheme", "x", 1], 'there is no scheme "x"'),
        (["group", "plan", "--topology", "testbed", 1, 1], "host 1 is given twice"),
        (["route", "--topology", "/nowhere/t.json"], "cannot read topology /nowhere/t.json"),
        (["route", "--topology", "ring:1"], "1 switches make no ring"),
        (["verify", "--topology", "testbed", "--algorithm", "best"], 'there is no algorithm "best"'),
        (["verify", "--topology", "testbed", "--root", -1], "-1 is not in the range 0<=x<=65534"),
        (["verify", "--topology", "testbed", "--root", 12], "there is no switch 12"),
        (["topo", "draw", "testbed", "-o", "/nowhere/t.svg"], "cannot write /nowhere/t.svg"),
    ],
)
def test_refusals(arguments: list[object], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_files_that_are_no_such_files(tmp_path: Path) -> None:
    text, group, hosts = tmp_path / "text.json", tmp_path / "group.json", tmp_path / "hosts.json"
    text.write_text("{")
    hosts.write_text(
        json.dumps(routing.group(routing.make("testbed"), {"scheme": "circuit", "source": 0, "members": [1]}))
    )
    group.write_text(json.dumps({"routes": [{"route": "0g"}]}))
    for arguments, message in [
        (["route", "--topology", text], "is not JSON"),
        (["verify", "--topology", "testbed", "--routes", text], "is not JSON"),
        (["verify", "--topology", "testbed", "--group", group], '"0g" is not an even number'),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2
        assert message in result.stderr


def test_draw(tmp_path: Path) -> None:
    picture = tmp_path / "torus.svg"
    assert run("topo", "draw", "torus:3", "--output", picture).exit_code == 0
    assert picture.read_text() == pictures.svg(routing.make("torus:3"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["route"], "routes, osud, root 0"),
        (["route", "--summary"], "pairs over a link"),
        (["verify"], "free of deadlock: every worm takes 54 channels in one order"),
        (["group", "plan", 0, 4, 8], "k-binomial from host 0 to 3 members"),
        (["balance"], "largest load of a channel"),
        (["change", "--fail-link", "0:1"], "Step 1: "),
    ],
)
def test_json_comes_with_json_alone(arguments: list[object], told: str, tmp_path: Path) -> None:
    """Also where the output is no terminal, as here."""
    plain = run(*arguments, "--topology", "torus:3")
    assert plain.exit_code == 0, plain.output
    assert told in plain.stdout
    assert not plain.stdout.startswith("{")
    value = answer(*arguments, "--topology", "torus:3")
    file = tmp_path / "answer.json"
    assert run(*arguments, "--topology", "torus:3", "--output", file).output == ""
    assert json.loads(file.read_text()) == value


def test_a_file_without_hosts_gets_some_and_that_is_said(tmp_path: Path) -> None:
    graph = tmp_path / "zoo.graphml"
    graph.write_text(run("topo", "make", "ring:3:0", "--format", "graphml").stdout)
    found = run("route", "--topology", graph, "h0", "h2", "--json")
    assert found.exit_code == 0, found.output
    assert "Warning" in found.stderr
    assert "every switch was given one" in found.stderr
    assert json.loads(found.stdout)["routes"][0]["dst"] == 2
    kept = run("topo", "convert", graph, "--to", "json")
    assert (json.loads(kept.stdout)["hosts"], kept.stderr) == ([], "")
