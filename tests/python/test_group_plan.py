"""`wormcast group plan`: every scheme and option, the metrics, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from wormcast import pictures, routing
from wormcast.cli.group_table import group_table
from wormcast.cli.main import main

SCHEMA = Path(routing.__file__).parent / "schemas" / "group.schema.json"
EDGES = [name for name in routing.schemes() if name not in ("switch", "table", "broadcast", "auto")]
MEMBERS = "1,5,9,20,33,40,50,63"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["group", "plan", *map(str, arguments)])


def answer(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    value: dict[str, Any] = json.loads(result.stdout)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(value)
    return value


@pytest.mark.parametrize("scheme", EDGES)
@pytest.mark.parametrize("topology", ["unidirectional-torus:8", "torus:8", "torus:4x4x4"])
def test_every_scheme_on_tori(topology: str, scheme: str) -> None:
    group = answer(
        "--topology", topology, "--members", MEMBERS, "--source", 20, "--scheme", scheme, "--metrics"
    )
    assert sorted(edge["to"] for edge in group["edges"]) == [1, 5, 9, 33, 40, 50, 63]
    one_way = topology.startswith("unidirectional")
    assert group["parameters"]["routing"] == ("dimension-order" if one_way else "osud")
    has = {20: 0}
    for edge in group["edges"]:
        assert has[edge["from"]] < edge["step"]
        has[edge["to"]] = edge["step"]
    metrics = group["metrics"]
    assert metrics["fpfs"]["steps"] == group["steps"]
    assert metrics["link_concentration"] == metrics["link_visits"] / metrics["links_used"]
    assert (metrics["latency"] is None) == (scheme in ("circuit", "tree", "k-binomial", "postal"))


@pytest.mark.parametrize("scheme", ["switch", "table", "broadcast"])
def test_switches_replicate(scheme: str) -> None:
    group = answer("--topology", "testbed", "--members", "0,3,5", "--scheme", scheme)
    assert group["scheme"] == scheme
    assert "metrics" not in group


def test_a_tree_of_the_groups_own_has_little_of_what_is_asked_for() -> None:
    base = (
        "--topology",
        "irregular:32:4",
        "--members",
        "1,30,60,90,120",
        "--scheme",
        "switch",
        "--guard",
        "C",
    )
    few, short = (answer(*base, "--least", least) for least in ("links", "depth"))
    assert (few["parameters"]["least"], short["parameters"]["least"]) == ("links", "depth")
    assert few["link_crossings"] <= short["link_crossings"]
    assert few["hops"] >= short["hops"]
    assert (few["link_crossings"], few["hops"]) != (short["link_crossings"], short["hops"])


@pytest.mark.parametrize("guard", ["A", "B", "C"])
def test_tables_carry_the_number_of_the_group(guard: str) -> None:
    base = ("--topology", "testbed", "--members", "0,3,5", "--scheme", "table")
    group = answer(*base, "--guard", guard, "--group", 260)
    assert group["parameters"]["group"] == 260
    assert {entry["group"] for entry in group["entries"]} == {260}
    assert run(*base, "--group", 255).exit_code == 2


@pytest.mark.parametrize("scheme", routing.schemes())
def test_a_plan_is_a_request_for_itself(tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "group.json"
    group = answer("--topology", "torus:4", "--members", "1,5,9,12", "--source", 9, "--scheme", scheme)
    file.write_text(json.dumps(group))
    assert answer("--topology", "torus:4", "--request", file) == group


@pytest.mark.parametrize("scheme", routing.schemes())
def test_a_group_of_one_needs_nothing(tmp_path: Path, scheme: str) -> None:
    picture = tmp_path / "group.svg"
    group = answer(
        "--topology", "torus:4", "--members", "9", "--scheme", scheme, "--metrics", "--draw", picture
    )
    assert group["steps"] == 0
    assert group.get("edges", []) == []
    ElementTree.parse(picture)
    assert "0 steps" in group_table(group)


@pytest.mark.parametrize("scheme", ["switch", "broadcast"])
def test_a_worm_that_passes_a_switch_twice_is_drawn(tmp_path: Path, scheme: str) -> None:
    """Up to the root and down again."""
    picture = tmp_path / "group.svg"
    group = answer(
        "--topology",
        "torus:4:2",
        "--members",
        "18,19,6",
        "--source",
        18,
        "--scheme",
        scheme,
        "--guard",
        "B",
        "--draw",
        picture,
    )
    texts = [element.text for element in ElementTree.parse(picture).iter() if element.tag.endswith("text")]
    assert texts.count("s9") == 2
    assert {"6", "19"} <= set(texts)
    assert group["hops"] > 1


def test_separate_is_repeat() -> None:
    base = ("--topology", "torus:4", "--members", "1,5,9")
    assert answer(*base, "--scheme", "separate") == answer(*base, "--scheme", "repeat")


def test_lambda_and_r_shape_the_structure() -> None:
    base = ("--topology", "torus:4", "--members", ",".join(map(str, range(13))), "--source", 0)
    steps = {n: answer(*base, "--scheme", "postal", "--lambda", n)["steps"] for n in (1, 2, 3)}
    # F is 1 2 4 8 16, 1 1 2 3 5 8 13, 1 1 1 2 3 4 6 9 13.
    assert steps == {1: 4, 2: 6, 3: 8}
    chains = answer(*base, "--scheme", "mu-torus", "--r", 5, "--metrics")
    assert [edge["from"] for edge in chains["edges"]].count(0) == 3
    assert chains["metrics"]["intermediate_hosts"] == 4
    assert answer(*base, "--scheme", "mu-torus")["parameters"]["r"] == 4


def test_bytes_are_counted_in_packets() -> None:
    base = ("--topology", "torus:4", "--members", "0,1,2,3", "--scheme", "s-torus")
    assert answer(*base, "--bytes", 0)["parameters"]["packets"] == 1
    assert answer(*base, "--bytes", 1444)["parameters"]["packets"] == 1
    assert answer(*base, "--bytes", 1445)["parameters"] == {
        "packets": 2,
        "bytes": 1445,
        "payload": 1444,
        "order": "hamiltonian",
        "discipline": "fpfs",
        "routing": "osud",
    }
    assert answer(*base, "--bytes", 1000, "--payload", 100)["steps"] == 3 + 9
    assert answer(*base, "--bytes", 512, "--metrics")["metrics"]["latency"]["bytes"] == 512


def test_fcfs_holds_packets_longer() -> None:
    members = ",".join(map(str, range(16)))
    base = ("--topology", "torus:4", "--members", members, "--scheme", "u-torus", "--packets", 8, "--metrics")
    by_packet, by_child = answer(*base), answer(*base, "--discipline", "fcfs")
    assert by_child["parameters"]["discipline"] == "fcfs"
    assert by_child["steps"] == by_child["metrics"]["fcfs"]["steps"]
    # The first child of the source has three children and eight packets: under FCFS the
    # first packet waits for the copies of all eight to two of them.
    assert by_packet["metrics"]["fpfs"]["held_steps_max"] == 3
    assert by_packet["metrics"]["fcfs"]["held_steps_max"] == 1 + 2 * 8
    assert by_packet["metrics"]["fcfs"]["packets_held_max"] == 8


def test_orders() -> None:
    base = ("--topology", "torus:8", "--members", MEMBERS, "--scheme", "u-torus")
    one, same, other = (answer(*base, "--order", "random", "--seed", seed) for seed in (4, 4, 5))
    assert one == same
    assert one["order"] != other["order"]
    assert answer(*base, "--order", "hamiltonian")["order"] == routing.order(
        routing.make("torus:8"), [1, 5, 9, 20, 33, 40, 50, 63], kind="hamiltonian"
    )
    by_id = answer("--topology", "testbed", "--members", "0,3,5", "--scheme", "u-torus", "--order", "id")
    assert by_id["order"] == [0, 3, 5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--scheme", "flood"],
            'there is no scheme "flood"; choices are auto, repeat, circuit, tree, k-binomial',
        ),
        (["--scheme", "u-torus"], "scheme u-torus goes by coordinates, and this topology has none"),
        (["--scheme", "md-torus", "--order", "id"], "it needs a torus or mesh"),
        (["--scheme", "postal", "--lambda", 0], "parameters.lambda: 0 is not an integer from 1 to 1024"),
        (["--scheme", "mu-torus", "--r", 0, "--order", "id"], "parameters.r: 0 is not an integer from 1"),
        (["--order", "dimension"], "needs a torus or mesh"),
        (["--discipline", "lifo"], 'there is no discipline "lifo"; choices are fpfs, fcfs'),
        (["--routing", "xy"], 'there is no routing "xy"; choices are osud, tree-only'),
        (["--routing", "dimension-order"], "dimension-order paths need a torus or mesh"),
        (["--packets", 2, "--bytes", 10], "parameters.packets: 2, but a message of 10 bytes has 1"),
        (["--packets", 0], "parameters.packets: 0 is not an integer from 1 to 1048576"),
        (["--bytes", -1], "parameters.bytes: -1 is not an integer from 0"),
        (["--payload", 0, "--bytes", 4], "parameters.payload: 0 is not an integer from 1 to 65535"),
        (["--seed", -1, "--order", "random"], "parameters.seed: -1 is not an integer from 0"),
        (["--scheme", "repeat", "--packets", 1048576, "--metrics"], "are 7340032 to replay"),
    ],
)
def test_refused(arguments: list[object], message: str) -> None:
    result = run("--topology", "testbed", "--members", "0,1,2,3,4,5,6,7", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_switches_do_not_replicate_one_way() -> None:
    result = run("--topology", "unidirectional-torus:4", "--members", "1,2", "--scheme", "switch")
    assert result.exit_code == 2
    assert "this topology is unidirectional" in result.stderr


@pytest.mark.parametrize("scheme", [*EDGES, "switch"])
def test_pictures_and_tables_show_every_member(tmp_path: Path, scheme: str) -> None:
    picture = tmp_path / "group.svg"
    group = answer(
        "--topology", "torus:8", "--members", MEMBERS, "--source", 20, "--scheme", scheme, "--draw", picture
    )
    drawn = ElementTree.parse(picture).getroot()
    labels = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    table = group_table(group)
    for member in set(group["members"]) - {20}:
        assert str(member) in labels
        assert f"─ {member}  (step" in table or f"host {member}" in table
    assert f"{group['steps']} steps" in table.splitlines()[0]


@pytest.mark.parametrize("variant", ["omit-last", "return", "ordered"])
def test_circuits_are_drawn_round(variant: str) -> None:
    request = {"scheme": "circuit", "source": 5, "members": [1, 5, 7], "parameters": {"variant": variant}}
    group = routing.group(routing.make("testbed"), request)
    lines = ElementTree.fromstring(pictures.group_svg(group)).iter("{http://www.w3.org/2000/svg}path")
    assert len(list(lines)) == len(group["edges"])
    assert sum("(step" in line for line in group_table(group).splitlines()) == len(group["edges"])
