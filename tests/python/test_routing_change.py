"""Safe changes of routes: `wormcast.routing.change` and `wormcast change`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from wormcast import routing, verify
from wormcast.cli.change import describe
from wormcast.cli.main import main

SCHEMA = json.loads((Path(routing.__file__).parent / "schemas" / "change.schema.json").read_text())
Json = dict[str, Any]
Pair = tuple[int, int]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["change", *map(str, arguments)])


def answer(*arguments: object) -> Json:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    value: Json = json.loads(result.stdout)
    jsonschema.validate(value, SCHEMA)
    return value


def routes_by_pair(file: Json) -> dict[Pair, Json]:
    return {(route["src"], route["dst"]): route for route in file["routes"]}


def install(before: Json, steps: list[Json]) -> dict[Pair, Json]:
    """The routes in force after these steps."""
    routes = routes_by_pair(before)
    for step in steps:
        assert step["routes_changed"] == len(step["changed"])
        for pair in step["drain"]:
            del routes[pair["src"], pair["dst"]]
        routes |= {(route["src"], route["dst"]): route for route in step["changed"]}
    return routes


@pytest.mark.parametrize("algorithm", ["osud", "tree-only", "omit"])
def test_a_lost_link(algorithm: str) -> None:
    topology = routing.make("irregular:16:3")
    link = topology["links"][0]
    name = f"{link['a']}:{link['a_port']}"
    file = answer("--topology", "irregular:16:3", "--fail-link", name, "--algorithm", algorithm)
    new = routing.damage(topology, links=[(link["a"], link["a_port"])])
    before = routing.routes(topology, algorithm)
    after = install(before, file["steps"])
    # The routes of the end fit the new topology, and are free of deadlock.
    assert verify.verify(new, {"routes": list(after.values())})["deadlock_free"]
    surviving = [route for route in before["routes"] if _survives(route, link)]
    assert file["summary"]["routes_broken"] == len(before["routes"]) - len(surviving)
    # So are those that survive and those of the first step together.
    together = {"routes": [*surviving, *file["steps"][0]["changed"]]}
    assert verify.verify(new, together)["deadlock_free"]


def _survives(route: Json, link: Json) -> bool:
    ends = {(link["a"], link["a_port"]), (link["b"], link["b_port"])}
    return not ends & set(zip(route["switches"], route["ports"], strict=True))


def test_a_switch_goes_and_comes_back(tmp_path: Path) -> None:
    topology = routing.make("torus:4")
    (tmp_path / "without.json").write_text(routing.to_text(routing.damage(topology, switches=[5])))
    gone = answer("--topology", "torus:4", "--fail-switch", 5)
    assert gone == answer("--topology", "torus:4", "--to", tmp_path / "without.json")
    assert not gone["unreachable"]
    back = answer("--topology", tmp_path / "without.json", "--to", "torus:4")
    assert {5} <= {route["dst"] for step in back["steps"] for route in step["changed"]}


def test_an_added_link(tmp_path: Path) -> None:
    topology = routing.make("line:4")
    for switch in topology["switches"]:
        switch["ports"] = 12
    (tmp_path / "line.json").write_text(routing.to_text(topology))
    file = answer("--topology", tmp_path / "line.json", "--add", "0:9-3:9", "--add", "3:10-8:0")
    grown = routing.add_links(topology, [((0, 9), (3, 9)), ((3, 10), (8, 0))])
    assert {"id": 8, "ports": 12} in grown["switches"]
    after = install(routing.routes(topology), file["steps"])
    assert verify.verify(grown, {"routes": list(after.values())})["deadlock_free"]
    assert after[0, 3]["switches"] == [0, 3]


def test_another_root_of_a_ring() -> None:
    file = answer("--topology", "ring:8", "--new-root", 4)
    assert len(file["steps"]) > 1
    assert all(not step["drain"] for step in file["steps"])
    assert file["steps"][-1]["root"] == 4
    topology = routing.make("ring:8")
    after = install(routing.routes(topology), file["steps"])
    assert after == routes_by_pair(routing.routes(topology, root=4))
    text = describe(file)
    assert f"Step {len(file['steps'])}: fresh, root 4" in text
    assert "wait until" in text


def test_routes_in_force_from_a_file(tmp_path: Path) -> None:
    topology = routing.make("ring:5")
    (tmp_path / "routes.json").write_text(routing.to_text(routing.routes(topology, root=2)))
    given = answer("--topology", "ring:5", "--routes", tmp_path / "routes.json", "--fail-switch", 2)
    assert given["summary"]["steps"] == 1
    assert given["summary"]["routes"] == 12
    split = answer("--topology", "line:3", "--fail-switch", 1)
    assert split["unreachable"] == [{"src": 0, "dst": 2}, {"src": 2, "dst": 0}]
    assert split["steps"] == []
    assert "No route changes" in describe(split)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing changes; give --to, --fail-link, --fail-switch, --add or --new-root"),
        (["--fail-link", "3"], "--fail-link '3': '3' is not a switch and a port; write it as 3:1"),
        (["--fail-link", "0:77"], "there is no link at 0:77; ports of switch 0 with links to switches are "),
        (["--fail-switch", 9], "there is no switch 9; switches are 0, 1, 2, 3"),
        (["--add", "0:1"], "--add '0:1' is not a link; write it as 3:1-4:2"),
        (["--add", "0:1-3:1"], "port 1 of switch 0 is used twice"),
        (["--to", "ring:5", "--fail-switch", 1], "--to gives the whole new topology"),
        (["--new-root", 9], "there is no switch 9; switches are 0, 1, 2, 3"),
        (["--fail-switch", 1, "--algorithm", "rmit"], "rmit is not one of osud, tree-only, omit"),
        (["--fail-switch", 1, "--algorithm", "best"], 'there is no algorithm "best"'),
        (["--fail-switch", 1, "--routes", "/nowhere"], "cannot read routes /nowhere"),
    ],
)
def test_what_is_refused(arguments: list[object], message: str) -> None:
    result = run("--topology", "ring:4", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
