"""What the commands that plan print is as its JSON Schema says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from wormcast import routing
from wormcast.cli.main import main
from wormcast.routing import schemas

# A topology of every kind; KINDS of the library says which there are.
TOPOLOGIES = {
    "testbed": "testbed",
    "line": "line:3:2",
    "ring": "ring:5",
    "star": "star:4",
    "full-mesh": "full-mesh:4",
    "torus": "torus:3x4:2",
    "unidirectional-torus": "unidirectional-torus:3",
    "mesh": "mesh:3x2x2",
    "fat-tree": "fat-tree:4",
    "clos2": "clos2:4:2:3",
    "clos3": "clos3:2:2:2:4:2",
    "dragonfly": "dragonfly:2:1:1",
    "shufflenet": "shufflenet:2:2",
    "irregular": "irregular:8:1",
}
MEMBERS = "0,2,5,7,11"
# Routes that go round the testbed's ring one way: a deadlock.
ROUND = {
    "routes": [
        {
            "src": 2 * s,
            "dst": 2 * ((s + 2) % 4),
            "switches": [s, (s + 1) % 4, (s + 2) % 4],
            "ports": [4, 4, 0],
        }
        for s in range(4)
    ]
}


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)


def check(kind: str, value: Any) -> None:
    schema = schemas.load(kind)
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)


def names(shapes: list[str]) -> list[str]:
    return [shape.split(":")[0] for shape in shapes]


def commands() -> dict[str, list[tuple[list[object], tuple[int, ...]]]]:
    """Commands that print each kind, and the exit codes they may end with."""
    found: dict[str, list[tuple[list[object], tuple[int, ...]]]] = {
        "topology": [(["topo", "make", spec], (0,)) for spec in TOPOLOGIES.values()],
        "routes": [
            (["route", "--topology", "irregular:8:1", "--algorithm", name], (0,))
            for name in routing.algorithms()
        ],
        "route-summary": [(["route", "--topology", "irregular:8:1", "--summary"], (0,))],
        "group": [],
        "verify": [
            (["verify", "--topology", "testbed", "--algorithm", name], (0, 1))
            for name in routing.algorithms()
        ],
        "certificate": [],
        "change": [(["change", "--topology", "testbed", "--fail-link", "0:4"], (0,))],
        "costs": [(["costs"], (0,))],
        "balance": [(["balance", "--topology", "irregular:8:1"], (0,))],
        "refusal": [],
        "routing-change": [],  # of a running fabric: test_routing_setting.py
        # Of running switches: verify/tests/python/test_verify_switches.py.
        "tables": [],
        # Of running switches: test_worms.py, tests/e2e/test_wormhole.py.
        "worms": [],
    }
    found["topology"] += [
        (["topo", "convert", spec, "--to", "json"], (0,)) for spec in ("testbed", "torus:3")
    ]
    for scheme in routing.schemes():
        # Schemes of unidirectional tori are refused elsewhere.
        found["group"] += [
            (["group", "plan", "--topology", name, "--members", MEMBERS, "--scheme", scheme], (0, 2))
            for name in ("fat-tree:4", "unidirectional-torus:4")
        ]
    return found


COMMANDS = commands()
CASES = [
    pytest.param(kind, arguments, codes, id=f"{kind}: {' '.join(map(str, arguments))}")
    for kind in schemas.kinds()
    for arguments, codes in COMMANDS.get(kind, [])
]


def test_every_schema_is_valid_and_has_commands() -> None:
    for kind in schemas.kinds():
        schema = schemas.load(kind)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["$schema"].endswith("2020-12/schema")
        assert schema["title"]
        assert kind in COMMANDS, f"list a command that prints {kind}"
    assert {"topology", "refusal"} <= set(schemas.kinds())
    assert sorted(TOPOLOGIES) == sorted(names(routing.kinds()))


@pytest.mark.parametrize(("kind", "arguments", "codes"), CASES)
def test_answers_are_as_their_schema_says(kind: str, arguments: list[object], codes: tuple[int, ...]) -> None:
    result = run(*arguments, "--json")
    assert result.exit_code in codes, result.output
    if result.exit_code == 2:
        check("refusal", json.loads(result.stderr))
    else:
        check(kind, json.loads(result.stdout))


@pytest.mark.skipif("group" not in schemas.kinds(), reason="groups have no schema")
def test_every_scheme_is_planned_somewhere() -> None:
    planned = set()
    for arguments, _ in COMMANDS["group"]:
        if run(*arguments).exit_code == 0:
            planned.add(arguments[-1])
    assert planned == set(routing.schemes())


def ring_tables(folder: Path) -> Path:
    """Every switch of a ring sends everything onward: it goes round, and host 9 has no port."""
    rows = [
        {"switch": n, "entries": [{"key": "0/0", "ports": [1]}, {"key": "9", "ports": [0, 7]}]}
        for n in range(3)
    ]
    file = folder / "tables.json"
    file.write_text(json.dumps({"tables": [{"name": "t", "bits": 8, "switches": rows}]}))
    check("tables", json.loads(file.read_text()))
    return file


@pytest.mark.skipif("verify" not in schemas.kinds(), reason="verdicts have no schema")
def test_both_verdicts_are_as_their_schema_says(tmp_path: Path) -> None:
    routes = tmp_path / "routes.json"
    routes.write_text(json.dumps(ROUND))
    deadlock = run("verify", "--topology", "testbed", "--routes", routes, "--json")
    assert deadlock.exit_code == 1
    check("verify", json.loads(deadlock.stdout))
    others = tmp_path / "paths.csv"
    others.write_text("src,path,vc\na,s0:1 s1:1 s2,0\nb,s1:1 s2:1 s0,0\nc,s2:1 s0:1 s1,0\n")
    for given, code in [
        (["--paths", others], 1),
        (["--topology", "ring:3", "--tables", ring_tables(tmp_path)], 1),
    ]:
        found = run("verify", *given, "--json")
        assert found.exit_code == code, found.output
        check("verify", json.loads(found.stdout))
    free = run("verify", "--topology", "testbed", "--json")
    assert free.exit_code == 0
    check("verify", json.loads(free.stdout))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["topo", "make", "ring:2"], "parameter"),
        (["topo", "make", "moebius"], "refused"),
        (["topo", "draw", "/nowhere/t.json"], "cannot-read"),
        (["route", "--topology", "-"], "port-used-twice"),
        (["group", "plan", "--topology", "testbed"], "refused"),
        (["verify", "--topology", "testbed", "--root", "12"], "refused"),
    ],
)
def test_refusals_are_as_their_schema_says(arguments: list[object], code: str) -> None:
    result = run(*arguments, "--json", stdin="0:1 1\n0:1 2\n1 2\n")
    assert result.exit_code == 2
    refusal = json.loads(result.stderr)
    check("refusal", refusal)
    assert refusal["error"]["code"] == code


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["switches", 0, "ports"], 255),
        (["switches", 0, "id"], -1),
        (["hosts", 0, "port"], 254),
        (["links", 0, "a"], "0"),
        (["links"], None),
        (["switches"], []),
        (["grid"], {}),
        (["hosts", 0, "name"], 7),
    ],
)
def test_the_schema_of_topologies_refuses_what_the_library_refuses(path: list[Any], value: Any) -> None:
    topology = routing.make("testbed")
    at: Any = topology
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(routing.RoutingError):
        routing.check(topology)
    with pytest.raises(jsonschema.ValidationError):
        check("topology", topology)


def test_the_schema_command_prints_them() -> None:
    listed = run("schema").stdout
    for kind in schemas.kinds():
        assert kind in names(listed.replace(" ", ":").splitlines())
        assert json.loads(run("schema", kind).stdout) == schemas.load(kind)
    missing = run("schema", "frog")
    assert missing.exit_code == 2
    assert "schemas are " in missing.stderr


def test_schemas_are_installed_with_the_package() -> None:
    text = (Path(__file__).parent.parent.parent / "pyproject.toml").read_text()
    assert '"routing/schemas/*.schema.json"' in text
