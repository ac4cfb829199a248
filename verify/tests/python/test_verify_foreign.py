"""`wormcast verify` of paths and tables that others made: the command, its drawings, and the second program."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from wormcast import routing, verify
from wormcast.cli.main import main
from wormcast.verify.ring import NODES_MAX, Hop, draw_ring

SEEDS = range(12)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


def ring(nodes: int) -> str:
    """A CSV file of paths that each take two links of a ring."""
    rows = [
        " ".join(f"s{(start + step) % nodes}" + (f":{start + step}" if step < 2 else "") for step in range(3))
        for start in range(nodes)
    ]
    return "path\n" + "\n".join(rows).replace(f":{nodes}", ":0") + "\n"


def test_paths_of_any_router(tmp_path: Path) -> None:
    file = tmp_path / "paths.csv"
    # Columns in any order, others beside them, names with spaces, either sign.
    file.write_text(
        "weight,DST,src,path\r\n"
        '1,h c,h a,"leaf 1:1 -> leaf 2:2 -> leaf 3:9"\r\n'
        '1,h a,h b,"leaf 2:2; leaf 3:3; leaf 1:9"\r\n'
        "1,h b,h c,leaf 3:3→leaf 1:1→leaf 2:9\r\n"
    )
    result = run("--paths", file, "--json")
    assert result.exit_code == 1, result.output
    cycle = json.loads(result.stdout)["cycle"]
    assert [wait["channel"]["from"] for wait in cycle] == [
        {"node": f"leaf {n}", "port": str(n)} for n in (1, 2, 3)
    ]
    assert [wait["held_by"]["line"] for wait in cycle] == [2, 3, 4]
    assert cycle[0]["held_by"]["src"] == "h a"


def test_a_topology_knows_the_links(tmp_path: Path) -> None:
    topology = routing.make("irregular:8:1")
    topology["switches"][3]["name"] = "of:0003"
    net, file = tmp_path / "net.json", tmp_path / "paths.csv"
    net.write_text(json.dumps(topology))
    link = next(link for link in topology["links"] if 3 in (link["a"], link["b"]))
    other, port = (link["b"], link["a_port"]) if link["a"] == 3 else (link["a"], link["b_port"])
    for called in ("of:0003", f"of:0003:{port}", f"s3:{port}", "s3"):
        file.write_text(f"path\n{called} s{other}\n")
        found = run("--paths", file, "--topology", net, "--json")
        assert found.exit_code == 0, found.output
        channels = [c for c in json.loads(found.stdout)["order"] if c["from"]["node"] == "of:0003"]
        assert [c["from"]["port"] for c in channels] == [str(port)]
    file.write_text(f"path\nof:0003:{port + 90} s{other}\n")
    refused = run("--paths", file, "--topology", net, "--json")
    assert refused.exit_code == 2
    error = json.loads(refused.stderr)["error"]
    assert (error["code"], error["line"], error["column"]) == ("syntax", 2, 1)
    assert error["message"].startswith(f"paths {file}: line 2, column 1: port {port + 90} of of:0003")


# By a sign of a line: which ways it leads on, as (row, column).
UP, DOWN, LEFT, RIGHT = (-1, 0), (1, 0), (0, -1), (0, 1)
STARTS = {"├": RIGHT, "┬": DOWN, "┤": LEFT, "┴": UP}
HEADS = {"▶": RIGHT, "▼": DOWN, "◀": LEFT, "▲": UP}


def trace(lines: list[str]) -> dict[str, tuple[str, str]]:
    """Follows every line of a drawing: from the name of a box to the name of another, and the label on the way."""

    def sign(row: int, column: int) -> str:
        return lines[row][column] if row < len(lines) and column < len(lines[row]) else " "

    def box_at(row: int, column: int, way: tuple[int, int]) -> str:
        """The name in the box that a line enters or leaves here, on the line of its name."""
        row += {UP: -1, DOWN: 1}.get(way, 0)
        if way in (UP, DOWN):
            row += way[0] if sign(row, column) in "─┬┴" else 0
        else:
            column += way[1] * (2 if sign(row, column + way[1]) == "│" else 1)
        while sign(row, column) not in "│├┤▶":
            column -= 1
        cell = lines[row][column + 1 :].lstrip().split(" ", 1)[0]
        return cell or lines[row - 1][column + 1 :].split()[0]

    found = {}
    for row, line in enumerate(lines):
        for column, letter in enumerate(line):
            if letter not in STARTS:
                continue
            way, label = STARTS[letter], ""
            back = (-way[0], -way[1])
            start, at = box_at(row, column, back), (row + way[0], column + way[1])
            while (here := sign(*at)) not in HEADS:
                if here == "└":
                    way = UP
                elif here in "[]0123456789":
                    row_of = lines[at[0]]
                    label = row_of[row_of.rindex("[", 0, at[1] + 2) : row_of.index("]", at[1] - 1) + 1]
                at = (at[0] + way[0], at[1] + way[1])
            assert HEADS[here] == way
            found[start] = (box_at(*at, way), label)
    return found


@pytest.mark.parametrize("nodes", [*range(3, 12), NODES_MAX])
def test_rings_are_drawn_so_that_one_can_follow_the_lines(nodes: int, tmp_path: Path) -> None:
    hops = [Hop(f"n{n:02}" + "x" * (n % 3), f"p{n:02}o", f"p{n:02}i") for n in range(nodes)]
    lines = draw_ring(hops)
    around = {
        hop.name: (hops[(number + 1) % nodes].name, f"[{number + 1}]") for number, hop in enumerate(hops)
    }
    assert trace(lines) == around
    text = "\n".join(lines)
    assert all(text.count(port) == 1 for hop in hops for port in (hop.port_out, hop.port_in))
    assert max(map(len, lines)) < 60
    file, picture = tmp_path / "paths.csv", tmp_path / "cycle.png"
    file.write_text(ring(nodes))
    result = run("--paths", file, "--json", "--draw", picture)
    assert result.exit_code == 1, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"deadlock: {nodes} waits in a circle" in verify.explain(json.loads(result.stdout))


def test_a_ring_of_two() -> None:
    assert draw_ring([Hop("a", "1", "2"), Hop("b", "3", "4")]) == [
        "┌─────┐ 1          2 ┌─────┐",
        "│  a  ├─────[1]─────▶│  b  │",
        "│     │◀─────[2]─────┤     │",
        "└─────┘ 4          3 └─────┘",
    ]


def test_large_rings_are_listed() -> None:
    assert draw_ring([Hop(str(n), "", "") for n in range(NODES_MAX + 1)]) == []
    told = verify.explain(verify.verify_paths(ring(NODES_MAX + 1))).splitlines()
    assert told[1].startswith("[1] s0:0 → s1     held by s0 → s2, line 2, which waits for [2]")


def random_paths(chance: random.Random, topology: dict[str, Any]) -> str:
    """Paths of osud, some of them on virtual channel 1, some with a detour."""
    rows = ["src,dst,path,vc"]
    routes = routing.routes(topology, "osud")["routes"]
    others = routing.routes(topology, "osud", topology["switches"][-1]["id"])["routes"]
    for ours, theirs in zip(routes, others, strict=True):
        row = theirs if chance.random() < 0.1 else ours
        hops = " ".join(f"s{s}:{p}" for s, p in zip(row["switches"], row["ports"], strict=True))
        vc = 1 if row is theirs and chance.random() < 0.8 else ""
        rows.append(f"h{row['src']},h{row['dst']},{hops},{vc}")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("has_topology", [True, False])
def test_the_second_program_accepts_orders_of_paths(seed: int, has_topology: bool) -> None:
    chance = random.Random(seed)
    topology = routing.make(f"irregular:8:{seed + 1}:2:3")
    network = verify.CheckedNetwork(topology) if has_topology else None
    text = random_paths(chance, topology)
    verdict = verify.verify_paths(text, json.dumps(topology) if has_topology else None)
    if not verdict["deadlock_free"]:
        with pytest.raises(ValueError, match="this file shows a deadlock"):
            verify.check_paths(text, verdict, network)
        return
    assert verify.check_paths(text, verdict, network)["worms"] == verdict["checked"]["paths"]
    order = verdict["order"]
    taken = [entry for entry in order if "port" in entry["from"] and "port" in entry["to"]] or order
    dropped = {**verdict, "order": [entry for entry in order if entry is not chance.choice(taken)]}
    dropped["order"] = dropped["order"][: len(order) // 2]
    with pytest.raises(verify.Violation, match="is not in the order"):
        verify.check_paths(text, dropped, network)
    with pytest.raises(verify.Violation, match="other way round"):
        verify.check_paths(text, {**verdict, "order": order[::-1]}, network)
    with pytest.raises(verify.Violation, match="is there twice"):
        verify.check_paths(text, {**verdict, "order": [*order, order[0]]}, network)


def random_tables(chance: random.Random, topology: dict[str, Any], wrong: float) -> dict[str, Any]:
    """Tables of tree-only, by prefixes: host n has 256 addresses, some of them with another way."""
    found = routing.forwarding(topology, "tree-only")
    rows = []
    for switch in found.switches:
        entries = [{"key": "0/0", "ports": []}]
        for host, port in found.row(switch).items():
            entries.append({"key": f"10.0.{host}.0/24", "ports": [port]})
            if chance.random() < wrong:
                ports = chance.sample(range(6), chance.randrange(3))
                entries.append({"key": f"{hex((10 << 24) + (host << 8) + 16)}/28", "ports": ports})
        rows.append({"switch": f"s{switch}", "entries": entries})
    return {"tables": [{"name": "routes", "bits": 32, "switches": rows}]}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_second_program_accepts_orders_of_tables(seed: int) -> None:
    chance = random.Random(seed)
    topology = routing.make(f"irregular:8:{seed + 1}:2:3")
    free = deadlocks = 0
    for wrong in (0.0, 0.01, 0.3):
        text = json.dumps(random_tables(chance, topology, wrong))
        network = verify.CheckedNetwork(topology)
        for ends in ("hosts", "all"):
            verdict = verify.verify_tables(json.dumps(topology), [text], ends)
            if not verdict["deadlock_free"]:
                deadlocks += 1
                continue
            free += 1
            assert verify.check_tables(network, [text], verdict, ends)["steps"] > 100
            order = verdict["order"]
            with pytest.raises(verify.Violation):
                verify.check_tables(network, [text], {**verdict, "order": order[::-1]}, ends)
            with pytest.raises(verify.Violation, match="is not in the order"):
                verify.check_tables(network, [text], {**verdict, "order": order[: len(order) // 2]}, ends)
    assert free >= 2
    assert deadlocks >= 1


def test_destinations_are_named_as_people_write_them() -> None:
    topology = routing.make("ring:3")
    ports = {(link["a"], link["b"]): link["a_port"] for link in topology["links"]}
    ports |= {(link["b"], link["a"]): link["b_port"] for link in topology["links"]}
    for key, bits, name in [
        ("10.1.0.0/16", 32, "t 10.1.0.0/16"),
        ("0x0a010203", 32, "t 10.1.2.3"),
        ("7", 12, "t 0x007"),
        ("0/0", 128, "t 0x" + "0" * 32 + "/0"),
    ]:
        rows = [{"switch": n, "entries": [{"key": key, "ports": [ports[n, (n + 1) % 3]]}]} for n in range(3)]
        text = json.dumps({"tables": [{"name": "t", "bits": bits, "switches": rows}]})
        verdict = verify.verify_tables(json.dumps(topology), [text])
        assert {wait["held_by"]["to"] for wait in verdict["cycle"]} == {name}
        assert verdict["lost"][0]["kind"] == "loop"


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    paths = tmp_path / "paths.csv"
    paths.write_text(ring(3))
    for arguments, words in [
        (["--paths", paths, "--tables", paths], ["--tables and --paths do not go together"]),
        (["--paths", paths, "--root", "1"], ["--root has no effect with --paths"]),
        (["--paths", paths, "--buffers", "spill"], ["--buffers has no effect with --paths"]),
        (["--paths", paths, "--api", "unix:/x"], ["--api has no effect with --paths"]),
        (["--paths", paths, "--ends", "all"], ["--ends has no effect without --tables or --p4runtime"]),
        (["--topology", "ring:3", "--tables", paths, "--ends", "some"], ["'some'", "hosts, all"]),
        (["--paths", paths, "--path-records", paths], ["--path-records has no effect without --tables"]),
        (["--topology", "ring:3", "--table", "t"], ["--table has no effect without --p4runtime"]),
        (["--topology", "ring:3", "--p4runtime", "a:1", "--key", "k"], ["--key", "--table"]),
        (["--topology", "ring:3", "--p4runtime", tmp_path / "none.json"], ["none.json", "No such file"]),
        (["--topology", "ring:3", "--p4runtime", "a:1"], ["1 address for 3 switches"]),
        (["--topology", "ring:3", "--draw", "x.pdf"], ["SVG or PNG"]),
        (["--paths", paths, "--check", paths], ["certificate"]),
    ]:
        refused = run(*arguments, "--json")
        assert refused.exit_code == 2, (arguments, refused.output)
        message = json.loads(refused.stderr)["error"]["message"]
        assert all(word in message for word in words), message


def test_certificates_of_one_kind_are_none_of_another(tmp_path: Path) -> None:
    paths, ours = tmp_path / "paths.csv", tmp_path / "ours.json"
    paths.write_text("path\na b\n")
    assert run("--topology", "ring:3", "--json", "--output", ours).exit_code == 0
    refused = run("--paths", paths, "--check", ours)
    assert refused.exit_code == 2
    assert "it is of routes in our own files, not of those that --paths names" in refused.stderr
    theirs = tmp_path / "theirs.json"
    assert run("--paths", paths, "--output", theirs).exit_code == 0
    refused = run("--topology", "ring:3", "--check", theirs)
    assert refused.exit_code == 2
    assert 'field "model" is missing' in refused.stderr


def test_pairs_of_a_path_follow_each_other() -> None:
    """A long path: every channel of it waits for the next, and for no other."""
    nodes = [f"n{n}" for n in range(50)]
    verdict = verify.verify_paths("path\n" + " ".join(nodes) + "\n")
    assert [(c["from"]["node"], c["to"]["node"]) for c in verdict["order"]] == list(itertools.pairwise(nodes))
