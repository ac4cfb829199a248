"""Minimal routes over in-transit hosts: `wormcast.routing` and `wormcast route`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from wormcast import routing, verify
from wormcast.cli.main import main

Json = dict[str, Any]
IN_TRANSIT = ["omit", "rmit", "rrmit", "pit", "rrmit-min"]
SCHEMAS = Path(routing.__file__).parent / "schemas"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def answer(*arguments: object) -> Json:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    value: Json = json.loads(result.stdout)
    return value


def check_schema(value: Json, kind: str) -> None:
    schema = json.loads((SCHEMAS / f"{kind}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)


def follow(topology: Json, route: Json) -> int:
    """Host that a route leads to, re-injected at each host on the way."""
    ends: dict[tuple[int, int], tuple[str, int]] = {}
    for link in topology["links"]:
        ends[link["a"], link["a_port"]] = ("switch", link["b"])
        ends[link["b"], link["b_port"]] = ("switch", link["a"])
    home = {host["id"]: host["switch"] for host in topology["hosts"]}
    for host in topology["hosts"]:
        ends[host["switch"], host["port"]] = ("host", host["id"])
    at = ("host", route["src"])
    passed = []
    for port in route["ports"]:
        if at[0] == "host":
            passed.append(at[1])
        at = ends[home[at[1]] if at[0] == "host" else at[1], port]
    assert passed == [route["src"], *route["in_transit"]]
    assert at[0] == "host"
    return at[1]


def hops(topology: Json, start: int) -> dict[int, int]:
    """Links from a switch to every other."""
    near: dict[int, list[int]] = {switch["id"]: [] for switch in topology["switches"]}
    for link in topology["links"]:
        near[link["a"]].append(link["b"])
        near[link["b"]].append(link["a"])
    found, queue = {start: 0}, deque([start])
    while queue:
        at = queue.popleft()
        for to in near[at]:
            if to not in found:
                found[to] = found[at] + 1
                queue.append(to)
    return found


def links_of(route: Json) -> int:
    return len(route["switches"]) - 1 - len(route["in_transit"])


@given(st.integers(3, 14), st.integers(0, 1000), st.sampled_from(IN_TRANSIT), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_routes_lead_there_by_shares(switches: int, wiring: int, algorithm: str, seed: int) -> None:
    topology = routing.make(f"irregular:{switches}:{wiring}:1:3")
    file = routing.routes(topology, algorithm, seed=seed)
    check_schema(file, "routes")
    assert verify.verify(topology, file)["deadlock_free"]
    home = {host["id"]: host["switch"] for host in topology["hosts"]}
    pairs = 0
    for (src, dst), group in groupby(file["routes"], lambda r: (r["src"], r["dst"])):
        pairs += 1
        alternatives = list(group)
        shares = [Fraction(r.get("share", 1)).limit_denominator(12600) for r in alternatives]
        assert sum(shares) == 1
        assert len({tuple(r["ports"]) for r in alternatives}) == len(alternatives)
        least = hops(topology, home[src])[home[dst]]
        for route in alternatives:
            assert follow(topology, route) == dst
            assert route["minimal"] == (links_of(route) == least)
        minimal = sum(share for share, r in zip(shares, alternatives, strict=True) if r["minimal"])
        if algorithm == "pit":
            assert minimal in (1, Fraction(4, 5))
        elif algorithm != "rrmit-min":
            assert minimal == 1
        assert routing.routes(topology, algorithm, seed=seed, src=src, dst=dst)["routes"] == alternatives
        assert routing.route(topology, src, dst, algorithm, seed=seed) == alternatives[0]
    assert pairs == switches * (switches - 1)


def test_figures_are_those_of_the_routes() -> None:
    topology = routing.make("irregular:16:3")
    for algorithm in ["osud", *IN_TRANSIT]:
        file, figures = routing.routes(topology, algorithm), routing.route_summary(topology, algorithm)
        rows = [(r, r.get("share", 1.0)) for r in file["routes"]]
        assert figures["pairs"] == 64 * 63
        assert figures["unreachable"] == 0
        assert figures["root"] == file["root"]
        expected = {
            "switches_mean": sum(len(r["switches"]) * share for r, share in rows) / (64 * 63),
            "links_mean": sum(links_of(r) * share for r, share in rows) / (64 * 63),
            "in_transit_mean": sum(len(r["in_transit"]) * share for r, share in rows) / (64 * 63),
            "alternatives_mean": len(rows) / (64 * 63),
        }
        assert {name: figures[name] for name in expected} == pytest.approx(expected)
        load = dict.fromkeys(range(64), 0.0)
        for route, share in rows:
            for host in route["in_transit"]:
                load[host] += share
        assert figures["in_transit_load"]["max"] == pytest.approx(max(load.values()))
        assert figures["in_transit_load"]["mean"] == pytest.approx(sum(load.values()) / 64)


def test_route_command(tmp_path: Path) -> None:
    topology = tmp_path / "topology.json"
    assert run("topo", "make", "irregular:16:3", "-o", topology).exit_code == 0
    pair = answer("route", "--topology", topology, "--algorithm", "rrmit", "--from", 0, "--to", 60, "--json")
    check_schema(pair, "routes")
    assert pair == answer("route", "--topology", topology, 0, 60, "--algorithm", "rrmit")
    assert pair["seed"] == 1
    assert {(r["src"], r["dst"]) for r in pair["routes"]} == {(0, 60)}
    into = answer("route", "--topology", topology, "--algorithm", "omit", "--to", 7)
    assert [r["dst"] for r in into["routes"]] == [7] * 63
    assert "seed" not in into
    torus = [
        answer("route", "--topology", "torus:5", "--algorithm", "rmit", "--seed", seed, 0, 12)["routes"]
        for seed in (1, 1, 2)
    ]
    assert torus[0] == torus[1]
    assert len(torus[0]) == len({tuple(r["ports"]) for r in torus[0]})
    whole = tmp_path / "routes.json"
    assert run("route", "--topology", topology, "--algorithm", "pit", "-o", whole).exit_code == 0
    assert answer("verify", "--topology", topology, "--routes", whole)["deadlock_free"]
    for algorithm in IN_TRANSIT:
        assert answer("verify", "--topology", topology, "--algorithm", algorithm)["deadlock_free"]


def test_route_summary_command() -> None:
    figures = answer("route", "--topology", "irregular:32:1", "--algorithm", "omit", "--summary")
    check_schema(figures, "route-summary")
    assert figures["minimal"] == 1
    assert figures["baseline"]["algorithm"] == "osud"
    assert figures["baseline"]["minimal"] < 1
    assert figures["links_mean"] < figures["baseline"]["links_mean"]
    assert figures["link_load"]["max"] < figures["baseline"]["link_load"]["max"]


def test_at_a_terminal_there_is_a_table(tmp_path: Path) -> None:
    """`script` gives the command a terminal of its own."""
    command = [sys.executable, "-m", "wormcast.cli.main", "route", "--topology", "irregular:16:3"]

    def shown(*arguments: str) -> str:
        words = " ".join([*command, "--algorithm", "rrmit", *arguments])
        done = subprocess.run(
            ["script", "-qec", words, str(tmp_path / "typescript")],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    table = shown("0", "60")
    assert "in transit" in table
    assert "routes, rrmit, root" in table
    assert '"routes"' in shown("0", "60", "--json")
    assert "in-transit hosts of a route" in shown("--summary")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algorithm", "shortest"], 'no algorithm "shortest"; algorithms are osud, tree-only, omit, rmit'),
        ([1, 2, "--from", 3], "the source is given twice: 1 as argument and 3 with --from; give one"),
        (["--summary", "--to", 3], "leave out source and destination"),
        (["--from", 99], "there is no host 99; hosts are 0, 1, 2"),
        (["--from", 5, "--to", 5], "host 5 needs no route to itself"),
        (["--seed", -1], "-1 is not in the range"),
    ],
)
def test_route_command_refuses(arguments: list[object], message: str) -> None:
    result = run("route", "--topology", "testbed", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
