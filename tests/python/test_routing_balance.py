"""Channel loads and forwarding tables, from Python and on the command line."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from wormcast import routing, verify
from wormcast.cli.main import main

SCHEMA = Path(routing.__file__).parent / "schemas" / "balance.schema.json"


def wormcast(*arguments: object) -> tuple[int, str]:
    """Exit code and everything printed."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def count(routes: dict[str, Any]) -> Counter[tuple[int, int]]:
    """Pairs of hosts over each channel, named by the switch and port it leaves by."""
    loads: Counter[tuple[int, int]] = Counter()
    for route in routes["routes"]:
        loads.update(zip(route["switches"][:-1], route["ports"][:-1], strict=True))
    return loads


@pytest.mark.parametrize("spec", ["irregular:16:1", "torus:4", "fat-tree:4", "line:1:3"])
@pytest.mark.parametrize("algorithm", ["osud", "tree-only"])
def test_the_report_is_what_the_routes_do(spec: str, algorithm: str) -> None:
    topology = routing.make(spec)
    report = routing.balance_report(topology, algorithm)
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    counted = {
        "plain": count(routing.routes(topology, algorithm)),
        "chosen": count(routing.balanced_routes(topology, algorithm)),
    }
    for side, loads in counted.items():
        figures = report[side]
        assert figures["largest"] == max(loads.values(), default=0)
        assert figures["total"] == sum(loads.values())
        assert figures["channels"] == 2 * len(topology["links"])
        assert figures["idle"] == figures["channels"] - len(loads)
        for link in report["links"]:
            both_ways = [loads[link["a"], link["a_port"]], loads[link["b"], link["b_port"]]]
            assert link[side] == both_ways
    assert len(report["links"]) == len(topology["links"])
    assert report["chosen"]["largest"] <= report["plain"]["largest"]


def test_balanced_routes_are_free_of_deadlock_and_reach_everyone() -> None:
    topology = routing.make("irregular:24:3:2")
    routes = routing.balanced_routes(topology)
    assert {(route["src"], route["dst"]) for route in routes["routes"]} == {
        (a, b) for a in range(48) for b in range(48) if a != b
    }
    assert verify.verify(topology, routes)["deadlock_free"]
    assert routes["root"] == routing.balance_report(topology)["chosen"]["root"]


def test_balance_on_the_command_line(tmp_path: Path) -> None:
    routes = tmp_path / "routes.json"
    code, output = wormcast("balance", "--topology", "irregular:16:2", "--json", "--routes", routes)
    assert code == 0
    report = json.loads(output)
    assert report["gain"] > 0.2
    assert max(count(json.loads(routes.read_text())).values()) == report["chosen"]["largest"]
    code, output = wormcast("balance", "--topology", "irregular:16:2", "--root", 3, "--json")
    kept = json.loads(output)
    assert (code, kept["plain"]["root"], kept["chosen"]["root"], kept["candidates"]) == (0, 3, 3, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algorithm", "omit"], "osud and tree-only, not for omit"),
        (["--algorithm", "nonsense"], 'there is no algorithm "nonsense"'),
        (["--root", 99], "there is no switch 99"),
    ],
)
def test_balance_refuses(arguments: list[object], message: str) -> None:
    code, output = wormcast("balance", "--topology", "torus:4", *arguments)
    assert code == 2
    assert message in output


@pytest.mark.parametrize("algorithm", routing.algorithms())
def test_forwarding_tables_begin_the_routes(algorithm: str) -> None:
    topology = routing.damage(routing.make("irregular:9:2:2:3"), switches=[4], links=[(0, 3)])
    tables = routing.forwarding(topology, algorithm)
    assert tables.switches == (0, 1, 2, 3, 5, 6, 7, 8)
    assert len(tables.ports) == len(tables.switches) * len(tables.hosts)
    switch_of = {host["id"]: host["switch"] for host in topology["hosts"]}
    first: dict[tuple[int, int], int] = {}
    for route in routing.routes(topology, algorithm)["routes"]:
        first.setdefault((route["src"], route["dst"]), route["ports"][0])
    for src, switch in switch_of.items():
        row = tables.row(switch)
        expected = {dst: first[src, dst] for dst in tables.hosts if (src, dst) in first}
        own = next(host["port"] for host in topology["hosts"] if host["id"] == src)
        assert row == expected | {src: own}
    with pytest.raises(ValueError, match="there is no switch 4; switches are 0, 1"):
        tables.row(4)
