"""Topology files in every format, as the commands read, write and refuse them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from wormcast import routing, verify
from wormcast.cli.main import main

FIXTURES = Path(__file__).parent.parent / "data"


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)


def text(*arguments: object, stdin: str | None = None) -> str:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def links(topology: dict[str, Any]) -> set[tuple[tuple[int, int], ...]]:
    return {
        tuple(sorted([(link["a"], link["a_port"]), (link["b"], link["b_port"])]))
        for link in topology["links"]
    }


@pytest.mark.parametrize("to", routing.topology_formats())
def test_every_format_is_read_back_and_taken_by_every_command(to: str, tmp_path: Path) -> None:
    wanted = routing.make("torus:3x4:2")
    file = tmp_path / "topology"
    assert run("topo", "make", "torus", "--k", "3x4", "--hosts", 2, "--format", to, "-o", file).exit_code == 0
    found = json.loads(text("topo", "convert", file, "--to", "json"))
    assert (found["switches"], found["hosts"]) == (wanted["switches"], wanted["hosts"])
    assert links(found) == links(wanted)
    if not to.startswith("ib"):
        assert found == wanted
    assert json.loads(text("topo", "convert", file, "--from", to, "--to", "json")) == found
    routes = json.loads(text("route", "--topology", file, "--json"))
    assert len(routes["routes"]) == 24 * 23
    members = ["group", "plan", "--topology", file, 1, 5, 9]
    assert json.loads(text(*members, "--json"))["members"] == [1, 5, 9]
    assert json.loads(text("verify", "--topology", file, "--json"))["deadlock_free"]
    assert "<svg" in text("topo", "draw", file)


def test_what_ibnetdiscover_printed(tmp_path: Path) -> None:
    found = json.loads(text("topo", "convert", FIXTURES / "irregular-named.ibnetdiscover", "--to", "json"))
    assert links(found) == links(routing.make("irregular:12:3"))
    assert found["hosts"][5]["name"] == "node05 HCA-1"
    # Names stay when something fails.
    left = routing.damage(found, switches=[0])
    assert left["switches"][0] == {"id": 1, "ports": 8, "name": "rack 1 (top)"}
    file = tmp_path / "named.graphml"
    file.write_text(text("topo", "convert", "-", "--to", "graphml", stdin=json.dumps(found)))
    assert json.loads(text("topo", "convert", file, "--to", "json")) == found


def test_hosts_are_added_where_a_file_knows_none() -> None:
    graph = "a b\nb c\nc a\n"
    found = json.loads(text("topo", "convert", "-", "--hosts-per-switch", 2, "--to", "json", stdin=graph))
    assert [switch["name"] for switch in found["switches"]] == ["a", "b", "c"]
    assert [(host["switch"], host["port"]) for host in found["hosts"]] == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "code", "line", "message"),
    [
        ("{", "syntax", 1, "is not JSON"),
        ("switch 0 4\nswitch 0 4\n", "duplicate-switch", 2, "switch 0 is given twice"),
        ("host 1 a\nhost 1 b\na b\n", "duplicate-host", 2, "host 1 is given twice"),
        ("a:1 b\na:1 c\nb c\n", "port-used-twice", 2, "port 1 of switch 0 is used twice"),
        ("switch 0\nhost 0 1\n", "unknown-switch", 2, "there is no switch 1"),
        ('Switch 4 "S"\n[1] "H"[1]\n', "unknown-host", 2, 'there is no adapter "H"'),
        ("a:300 b\n", "outside-bounds", 1, "300 is outside 0 to 253"),
        ("<graphml><graph><node/></graph></graphml>", "missing-field", 1, "<node> has no id"),
        ("hello world, you\n", "syntax", 1, "is not of the form NODE[:PORT] NODE[:PORT]"),
    ],
)
def test_refusals_name_the_place(content: str, code: str, line: int, message: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong"
    file.write_text(content)
    plain = run("topo", "draw", file)
    assert plain.exit_code == 2
    assert f"topology {file}: line {line}, column " in plain.stderr
    assert message in plain.stderr
    as_json = run("route", "--topology", file, "--json")
    assert as_json.exit_code == 2
    assert as_json.stdout == ""
    error = json.loads(as_json.stderr)["error"]
    assert (error["code"], error["line"]) == (code, line)
    assert error["column"] >= 1
    assert message in error["message"]
    with pytest.raises(routing.RoutingError) as raised:
        routing.read(content)
    assert raised.value.code == code  # type: ignore[attr-defined]


def test_errors_without_a_place() -> None:
    refused = run("topo", "make", "ring", "--switches", 2, "--json")
    error = json.loads(refused.stderr)["error"]
    assert error == {
        "code": "parameter",
        "message": "ring: 2 switches make no ring; it needs 3 or more",
        "line": None,
        "column": None,
    }
    with pytest.raises(routing.RoutingError) as raised:
        routing.read("switch a\nswitch b\n")
    assert raised.value.code == "not-connected"  # type: ignore[attr-defined]
    assert routing.read("switch a\nswitch b\n", allow_split=True)["links"] == []
    with pytest.raises(routing.RoutingError, match="there is no format"):
        routing.write(routing.make("testbed"), "dot")


def test_damaged_files_are_refused_not_worse(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(b"\xff\xfe\x00switch")
    refused = run("topo", "convert", file, "--to", "json")
    assert refused.exit_code == 2
    assert "is not text" in refused.stderr
    whole = text("topo", "make", "testbed", "--format", "ibnetdiscover")
    for cut in range(0, len(whole), 37):
        result = run("topo", "convert", "-", "--to", "json", stdin=whole[:cut])
        assert result.exit_code in (0, 2), result.exception


@pytest.mark.parametrize(
    ("arguments", "spec"),
    [
        (["dragonfly", "--h", 2], "dragonfly:4:2:2"),
        (["dragonfly", "--a", 4, "--p", 1, "--h", 2, "--groups", 5], "dragonfly:4:1:2:5"),
        (["dragonfly", "--h", 1, "--arrangement", "consecutive"], "dragonfly:2:1:1:3:consecutive"),
        (["clos2", "--leaves", 6, "--spines", 3, "--hosts", 8], "clos2:6:3:8"),
        (["clos3", "--pods", 2, "--leaves", 4, "--spines", 2, "--cores", 4], "clos3:2:4:2:4"),
        (["torus:4", "--seed", 9], "torus:4"),
        (["line", "--switches", 3, "--seed", 3], "line:3"),
        (["irregular:8:5", "--seed", 7], "irregular:8:5"),
    ],
)
def test_make_with_options(arguments: list[object], spec: str) -> None:
    made = json.loads(text("topo", "make", *arguments))
    assert made == routing.make(spec)
    assert made["kind"] == spec


def verdict_of_a_loop(net: str) -> dict[str, Any]:
    """Of tables that send everything by the first link of each switch."""
    first: dict[int, int] = {}
    for link in json.loads(net)["links"]:
        first.setdefault(link["a"], link["a_port"])
        first.setdefault(link["b"], link["b_port"])
    rows = [
        {"switch": switch, "entries": [{"key": "0/0", "ports": [port]}]} for switch, port in first.items()
    ]
    return verify.verify_tables(net, [json.dumps({"tables": [{"name": "t", "bits": 1, "switches": rows}]})])


def test_examples_of_the_help_texts_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line `wormcast topo make …` or `… draw …` of a help text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.json").write_text(text("topo", "make", "irregular:16:7"))
    (tmp_path / "group.json").write_text(text("group", "plan", "--topology", "net.json", 0, 5, 9, "--json"))
    (tmp_path / "fabric.json").write_text(text("topo", "make", "testbed"))
    (tmp_path / "zoo.graphml").write_text(text("topo", "make", "ring:3:0", "--format", "graphml"))
    (tmp_path / "verdict.json").write_text(json.dumps(verdict_of_a_loop((tmp_path / "net.json").read_text())))
    ran = 0
    for command in ("make", "convert", "fabric", "draw"):
        for line in text("topo", command, "--help").splitlines():
            words = line.split(" > ")[0].split("  (")[0].split()
            if line.strip().startswith("wormcast topo"):
                text(*words[1:])
                ran += 1
    assert ran >= 9


def test_kinds_are_completed() -> None:
    environment = {
        "COMP_WORDS": "wormcast topo make dr",
        "COMP_CWORD": "3",
        "_WORMCAST_COMPLETE": "bash_complete",
    }
    result = CliRunner().invoke(main, [], prog_name="wormcast", env=environment)
    assert result.stdout.split() == ["plain,dragonfly"]


def test_a_fabric_has_every_link_once_and_an_interface_for_each_host(tmp_path: Path) -> None:
    topology = routing.make("torus:3x4:2")
    file = tmp_path / "topology"
    file.write_text(routing.to_text(topology))
    value = json.loads(text("topo", "fabric", file, "--program", "p.json", "--cpu-port", 255))
    assert (value["program"], value["cpu_port"]) == ("p.json", 255)
    ids = [switch["id"] for switch in topology["switches"]]
    assert value["switches"] == [{"name": f"s{number}", "device_id": number} for number in ids]

    def port(end: str) -> tuple[int, int]:
        switch, number = end.removeprefix("s").split(":")
        return int(switch), int(number)

    ends = [tuple(sorted(port(end) for end in link["ends"])) for link in value["links"]]
    assert len(ends) == len(topology["links"])
    assert set(ends) == links(topology)
    hosts = [(host["switch"], host["port"]) for host in topology["hosts"]]
    assert [port(edge["port"]) for edge in value["edges"]] == hosts
    assert [edge["interface"] for edge in value["edges"]] == [f"s{s}-p{p}" for s, p in hosts]
    used = [end for pair in ends for end in pair] + hosts
    assert len(used) == len(set(used))


def test_a_fabric_says_what_it_calls_nodes_that_have_names(tmp_path: Path) -> None:
    from wormcast.mininet.topologies import load_topology

    file = tmp_path / "net.edges"
    file.write_text('switch 0 4 "North"\nswitch 1 4\nhost 7 1 "printer"\n0 1\n')
    told: list[str] = []
    assert load_topology(str(file), warn=told.append)["hosts"][0]["id"] == 7
    names = "h7 is printer, s0 is North"
    assert told == [f"topology {file}: nodes are called by their ids here, not as in the file: {names}"]
    file.write_text("0 1\n1 2\n")
    told.clear()
    assert len(load_topology(str(file), warn=told.append)["hosts"]) == 3
    assert [text for text in told if "every switch was given one" in text] == told
    assert len(told) == 1
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"net\.edges"):
        load_topology(str(file))
