"""The deadlock check from Python and the command line: groups, models, certificates."""

import itertools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from wormcast import routing, verify
from wormcast.cli.main import main

SCHEMA = json.loads((Path(routing.__file__).parent / "schemas" / "verify.schema.json").read_text())
MEMBERS = [0, 5, 9, 17, 20, 30]
BRANCHINGS = ["independent", "coupled", "interrupted", "flushed"]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


@pytest.fixture(scope="module")
def fabric() -> dict[str, Any]:
    return routing.make("irregular:8:2")


@pytest.fixture(scope="module")
def unicast(fabric: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: routing.routes(fabric, name) for name in ("osud", "tree-only")}


def groups_of(fabric: dict[str, Any], schemes: list[str], sources: list[int]) -> list[dict[str, Any]]:
    return [
        routing.group(fabric, {"scheme": scheme, "source": source, "members": MEMBERS})
        for scheme in schemes
        for source in sources
    ]


def broadcast(fabric: dict[str, Any], source: int) -> dict[str, Any]:
    """A broadcast plan: up the spanning tree to the root."""
    parents = {b: (a, b_port) for a, _, b, b_port in routing.spanning_tree(fabric)["links"]}
    at = next(host["switch"] for host in fabric["hosts"] if host["id"] == source)
    ports = b""
    while at in parents:
        at, port = parents[at]
        ports += bytes([port])
    return {"scheme": "switch", "source": source, "to_root": ports.hex()}


@pytest.mark.parametrize("branching", BRANCHINGS)
@pytest.mark.parametrize("buffers", ["spill", "classes", "shared"])
@pytest.mark.parametrize("forwarding", ["store", "cut-through"])
def test_what_is_said_to_be_free_holds(
    fabric: dict[str, Any], unicast: dict[str, Any], branching: str, buffers: str, forwarding: str
) -> None:
    groups = [*groups_of(fabric, ["circuit", "repeat"], [5, 20]), broadcast(fabric, 9)]
    for name, routes in unicast.items():
        verdict = verify.verify(
            fabric, routes, groups=groups, branching=branching, buffers=buffers, forwarding=forwarding
        )
        jsonschema.validate(verdict, SCHEMA)
        free = (
            (buffers == "spill" or (buffers == "classes" and forwarding == "store"))
            # Scheme A needs unicast to keep to the tree.
            and (branching != "coupled" or name == "tree-only")
        )
        assert verdict["deadlock_free"] == free
        assert verdict["model"] == {
            "branching": branching,
            "buffers": buffers,
            "forwarding": forwarding,
            "root": None,
        }
        if free:
            counted = verify.check_certificate(fabric, routes, groups, verdict)
            assert counted["worms"] > 32 * 31
            kinds = {kind for entry in verdict["order"] for kind in entry}
            assert ("buffer" in kinds) == (buffers != "spill")
            assert ("turn" in kinds) == (branching == "interrupted")
        else:
            assert "waits for" in verify.explain(verdict)


def test_a_spoilt_order_is_caught(fabric: dict[str, Any], unicast: dict[str, Any]) -> None:
    groups = [*groups_of(fabric, ["circuit"], [5]), broadcast(fabric, 9)]
    routes = unicast["osud"]
    verdict = verify.verify(fabric, routes, groups=groups, branching="interrupted", buffers="classes")
    assert verify.check_certificate(fabric, routes, groups, verdict)
    order = verdict["order"]
    kinds = [next(iter(entry)) for entry in order]
    swaps = 0
    for place in [0, kinds.index("buffer"), kinds.index("turn"), *range(1, len(order), 9)]:
        dropped = {**verdict, "order": order[:place] + order[place + 1 :]}
        if "turn" in order[place]:
            with pytest.raises(verify.Violation, match="before it has one"):
                verify.check_certificate(fabric, routes, groups, dropped)
        else:
            with pytest.raises(verify.Violation, match="is not in the order"):
                verify.check_certificate(fabric, routes, groups, dropped)
        with pytest.raises(verify.Violation, match="is there twice"):
            verify.check_certificate(fabric, routes, groups, {**verdict, "order": [*order, order[place]]})
    # Every channel that some worm holds while it needs the other.
    ends = {
        (end["switch"], end["port"]): n for n, e in enumerate(order) if "switch" in (end := e.get("from", {}))
    }
    for route in routes["routes"][::40]:
        taken = [ends[step] for step in zip(route["switches"], route["ports"], strict=True)]
        for held, needed in itertools.pairwise(taken):
            swapped = list(order)
            swapped[held], swapped[needed] = order[needed], order[held]
            with pytest.raises(verify.Violation, match="the other way"):
                verify.check_certificate(fabric, routes, groups, {**verdict, "order": swapped})
            swaps += 1
    assert swaps > 20


def test_branches_that_wait_for_each_other_are_caught_though_no_order_shows_it(
    fabric: dict[str, Any], unicast: dict[str, Any]
) -> None:
    # WORM Fig. 3, and two multicasts with common members: free if branches go on by
    # themselves; the same order is no certificate if they do not.
    one, two = (groups_of(fabric, ["switch"], sources) for sources in ([5], [5, 20]))
    for groups, routes, branching, free in [
        (one, "tree-only", "coupled", True),
        (one, "osud", "coupled", False),
        (one, "osud", "flushed", True),
        (two, "tree-only", "coupled", False),
        (two, "tree-only", "flushed", False),
    ]:
        verdict = verify.verify(fabric, unicast[routes], groups=groups, branching=branching)
        assert verdict["deadlock_free"] == free, (routes, branching)
        certificate = verify.verify(fabric, unicast[routes], groups=groups)
        certificate["model"]["branching"] = branching
        if free:
            verify.check_certificate(fabric, unicast[routes], groups, certificate)
        else:
            with pytest.raises(verify.Violation, match="others that hold it wait for this worm"):
                verify.check_certificate(fabric, unicast[routes], groups, certificate)


def test_from_file_to_file(tmp_path: Path, fabric: dict[str, Any], unicast: dict[str, Any]) -> None:
    topology = write(tmp_path / "topology.json", fabric)
    routes = write(tmp_path / "routes.json", unicast["osud"])
    circuits = groups_of(fabric, ["circuit"], MEMBERS)
    files = [
        write(tmp_path / "list.json", circuits),
        write(tmp_path / "groups.json", {"groups": circuits}),
        write(tmp_path / "routing.json", circuits[0]),
    ]
    certificate = tmp_path / "certificate.json"
    for groups in files:
        given = ["verify", "--topology", topology, "--routes", routes, "--groups", groups]
        made = run(*given, "--buffers", "classes", "--json", "--output", certificate)
        assert (made.exit_code, made.output) == (0, "")
        checked = run(*given, "--check", certificate, "--json")
        assert checked.exit_code == 0
        jsonschema.validate(json.loads(checked.stdout), SCHEMA)
    shared = run(
        *["verify", "--topology", topology, "--routes", routes, "--groups", files[0]],
        *["--buffers", "shared", "--json"],
    )
    assert shared.exit_code == 1
    cycle = json.loads(shared.stdout)["cycle"]
    assert all(wait["channel"]["buffer"]["class"] is None for wait in cycle)
    assert {wait["held_by"]["kind"] for wait in cycle} == {"forwarded"}
    # The order of the circuits says nothing about broadcasts, which take turns.
    other = write(tmp_path / "other.json", {"groups": [broadcast(fabric, 9)]})
    value = json.loads(certificate.read_text())
    value["model"]["branching"] = "interrupted"
    write(certificate, value)
    checked = run(
        *["verify", "--topology", topology, "--routes", routes, "--groups", other],
        *["--check", certificate, "--json"],
    )
    assert checked.exit_code == 1
    answer = json.loads(checked.stdout)
    jsonschema.validate(answer, SCHEMA)
    assert answer["holds"] is False
    assert answer["worm"] == "multicast of 9"


def test_refusals(tmp_path: Path, fabric: dict[str, Any]) -> None:
    topology = write(tmp_path / "topology.json", fabric)
    groups = write(tmp_path / "groups.json", groups_of(fabric, ["circuit"], [5, 9]))
    strange = json.loads(groups.read_text())
    strange[1]["edges"][0]["to"] = 99
    elsewhere = write(tmp_path / "elsewhere.json", strange)
    deadlock = write(tmp_path / "deadlock.json", {"deadlock_free": False})
    text = tmp_path / "text.json"
    text.write_text("{")
    for arguments, message in [
        (["--groups", elsewhere], "groups[1]: there is no host 99"),
        (["--groups", text], "is not JSON of plans"),
        (["--groups", tmp_path / "none.json"], "No such file"),
        (["--group", write(tmp_path / "both.json", {"groups": []})], "give it with --groups"),
        (["--buffers", "large"], 'buffers cannot be "large"; choices are spill, classes, shared'),
        (["--forwarding", "fast"], 'forwarding cannot be "fast"; choices are store, cut-through'),
        (["--branching", "D"], "choices are independent, coupled (A), interrupted (B), flushed (C)"),
        (["--check", deadlock], "this file shows a deadlock"),
        (["--check", topology], "the files do not fit together"),
        (
            ["--group", write(tmp_path / "empty.json", {"source": 1})],
            "has no edges, entries, to_root or routes",
        ),
    ]:
        result = run("verify", "--topology", topology, *arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert message in result.stderr


def test_letters_of_the_schemes_are_names_too(fabric: dict[str, Any]) -> None:
    for letter, name in zip("ABC", BRANCHINGS[1:], strict=True):
        verdict = verify.verify(fabric, algorithm="osud", branching=letter)
        assert verdict["model"]["branching"] == name
        assert verdict["deadlock_free"]


def test_people_are_told_who_waits_for_whom() -> None:
    ring = routing.make("ring:4")
    ports = {(link["a"], link["b"]): link["a_port"] for link in ring["links"]}
    ports |= {(link["b"], link["a"]): link["b_port"] for link in ring["links"]}
    routes = []
    for start in range(4):
        way = [(start + step) % 4 for step in range(3)]
        out = [ports[step] for step in itertools.pairwise(way)]
        routes.append({"src": way[0], "dst": way[-1], "switches": way, "ports": [*out, 0], "in_transit": []})
    told = verify.explain(verify.verify(ring, {"routes": routes})).splitlines()
    assert told[0] == "deadlock: 4 waits in a circle"
    box = "┌──────────┐"
    assert told[2].strip() == f"{box} {ports[0, 1]}          {ports[1, 0]} {box}"
    assert told[3].strip() == "│ switch 0 ├─────[1]─────▶│ switch 1 │"
    assert told[9].strip() == "│ switch 3 │◀─────[3]─────┤ switch 2 │"
    waits = [line for line in told if "held by unicast" in line]
    assert [line[:3] for line in waits] == ["[1]", "[2]", "[3]", "[4]"]
    assert [line[-3:] for line in waits] == ["[2]", "[3]", "[4]", "[1]"]
    free = verify.explain(verify.verify(ring, {"routes": routes[:3]}))
    assert free.startswith("free of deadlock: every worm takes 16 channels in one order")
