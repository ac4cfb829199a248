"""Scheme `auto` and its costs, from Python and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from wormcast import routing
from wormcast.cli.main import main


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def auto(*options: object) -> dict[str, Any]:
    result = run(
        *["group", "plan", "--topology", "torus:4", "--members", "0,2,5,7,11", "--scheme", "auto"],
        *[*options, "--json"],
    )
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.output)
    return answer


def test_the_plan_is_the_chosen_one_and_says_what_it_was_chosen_from() -> None:
    answer = auto("--bytes", 1_000_000, "--among", "repeat,circuit,k-binomial")
    chosen = answer["auto"]["chosen"]
    assert answer["scheme"] == chosen["scheme"] != "repeat"
    assert answer["auto"]["packets"] == -(-1_000_000 // 1444)
    times = {one["scheme"]: one["microseconds"] for one in reversed(answer["auto"]["estimates"])}
    assert set(times) == {"repeat", "circuit", "k-binomial"}
    assert times[answer["scheme"]] == min(times.values())
    request = {"scheme": answer["scheme"], "source": 0, "members": answer["members"]}
    again = routing.group(routing.make("torus:4"), {**request, "parameters": answer["parameters"]})
    assert again["edges"] == answer["edges"]
    replayed = routing.replay(routing.make("torus:4"), {**request, "parameters": answer["parameters"]})
    assert replayed["completion_us"] == pytest.approx(
        answer["auto"]["estimates"][0]["microseconds"], rel=0.02
    )


def test_costs_come_from_a_file(tmp_path: Path) -> None:
    result = run("costs", "--costs", "nic", "--json")
    assert result.exit_code == 0
    costs = json.loads(result.output)
    assert costs["link_bits_per_s"] == 2_000_000_000
    file = tmp_path / "costs.json"
    file.write_text(json.dumps({**costs, "switch_hop_ns": 1e6}))
    fast, slow = (auto("--costs", of)["auto"]["estimates"][0]["microseconds"] for of in ("nic", file))
    assert slow > fast + 1000


def test_a_total_order_leaves_schemes_that_have_one() -> None:
    answer = auto("--total-order", "--packets", 3)
    schemes = {one["scheme"] for one in answer["auto"]["estimates"]}
    assert schemes == {"circuit", "tree", "switch"}
    assert answer["parameters"].get("variant") == "ordered" or answer["total_order"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--costs", '{"hop": 1}'], ["hop", "switch_hop_ns"]),
        (["--costs", '{"utilisation": 2}'], ["costs.utilisation", "0.99"]),
        (["--among", "pigeon"], ["pigeon", "k-binomial"]),
        (["--costs", "no/such/file"], ["no/such/file"]),
    ],
)
def test_what_is_refused_is_named(options: list[str], parts: list[str], tmp_path: Path) -> None:
    if options[1].startswith("{"):
        file = tmp_path / "costs.json"
        file.write_text(options[1])
        options = [options[0], str(file)]
    result = run("group", "plan", "--topology", "torus:4", "--members", "1,2", "--scheme", "auto", *options)
    assert result.exit_code == 2
    for part in parts:
        assert part in result.output
