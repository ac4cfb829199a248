"""`wormcast verify` on what OpenSM and infiniband-diags wrote of fabrics on ibsim: recorded once,
and made anew for more networks where these are installed.

Record again with `python verify/tests/python/test_opensm_tables.py`.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from wormcast import routing, verify
from wormcast.cli.main import main
from wormcast.routing import schemas

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench/routing"))
import lengths  # noqa: E402 - after the path is set
import opensm  # noqa: E402

RECORDED = Path(__file__).parent / "recorded/opensm"
CASES = {"deadlock": ("irregular:14:17:1:4", 0), "free": ("irregular:4:1:2:2", 1)}
"""Networks, and the LMC of their hosts; all routed by updn."""
FRESH = (
    *(("updn", f"irregular:14:{seed}:1:4", 0) for seed in (17, 18, 19)),
    *(("updn", f"irregular:32:{seed}", 0) for seed in (4, 5)),
    ("minhop", "ring:6", 0),
    ("minhop", "torus:4x4:2", 0),
    ("dor", "mesh:4x3", 0),
    ("minhop", "fat-tree:4", 0),
    ("updn", "irregular:8:3:2:3", 2),
)


DRAWN = """\
deadlock: 4 waits in a circle

  ┌─────┐ 3          4 ┌─────┐
  │ S0  ├─────[1]─────▶│ S8  │
  └─────┘              └──┬──┘
     ▲ 4                  │ 3
    [4]                  [2]
     │ 5                  ▼ 2
  ┌──┴──┐              ┌─────┐
  │ S9  │◀─────[3]─────┤ S3  │
  └─────┘ 3          4 └─────┘

"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


def dumps(case: str) -> list[Path]:
    found = sorted(path for path in (RECORDED / case).iterdir() if path.name != "ibnetdiscover")
    assert found
    return found


def ask(case: str, *tables: Path, more: tuple[object, ...] = ()) -> Result:
    given = [item for path in tables for item in ("--tables", path)]
    return run("--topology", RECORDED / case / "ibnetdiscover", *given, *more)


def entries(text: str) -> dict[str, dict[int, int]]:
    """Ports by name of the switch and LID, from what dump_lfts prints."""
    found: dict[str, dict[int, int]] = {}
    for line in text.splitlines():
        if match := re.match(r"Unicast lids .* guid 0x\w+ \((\w+)\):", line):
            row = found.setdefault(match[1], {})
        elif match := re.match(r"0x(\w+) (\d+) :", line):
            row[int(match[1], 16)] = int(match[2])
    return found


def test_the_deadlock_of_updn_is_found_in_its_own_tables(tmp_path: Path) -> None:
    dump = RECORDED / "deadlock/dump_lfts"
    result = ask("deadlock", dump, more=("--json", "--draw", tmp_path / "cycle.svg"))
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    jsonschema.validate(answer, schemas.load("verify"))
    # Each switch has a host, and sends what is for each of them by one port.
    assert answer["checked"] == {"switches": 14, "hosts": 14, "destinations": 14, "hops": 14 * 14}
    assert answer["lost"] == []
    # By hand: each packet of the cycle leaves its switch, and the next one, by these ports.
    ports = entries(dump.read_text())
    cycle = answer["cycle"]
    assert len(cycle) >= 3
    for wait, following in itertools.pairwise([*cycle, cycle[0]]):
        lid = int(wait["held_by"]["to"].removeprefix("LID "))
        for channel in (wait["channel"], following["channel"]):
            assert ports[channel["from"]["node"]][lid] == int(channel["from"]["port"])
        assert wait["channel"]["to"]["node"] == following["channel"]["from"]["node"]
    assert verify.explain(answer).splitlines()[:12] == DRAWN.splitlines()
    alone = (tmp_path / "cycle.svg").read_text()
    assert all(f">{wait['channel']['from']['node']}</text>" in alone for wait in cycle)
    picture = tmp_path / "over.svg"
    verdict = tmp_path / "verdict.json"
    verdict.write_text(result.stdout)
    drawn = CliRunner().invoke(
        main,
        [
            "topo",
            "draw",
            str(RECORDED / "deadlock/ibnetdiscover"),
            "--cycle",
            str(verdict),
            "-o",
            str(picture),
        ],
    )
    assert drawn.exit_code == 0, drawn.output
    # A head on every arrow.
    assert picture.read_text().count("<polygon") == len(cycle)


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_dump_says_the_same(case: str) -> None:
    answers = []
    for dump in dumps(case):
        result = ask(case, dump, more=("--json",))
        assert result.exit_code == (1 if case == "deadlock" else 0), (dump, result.output)
        answers.append(json.loads(result.stdout))
    assert all(answer == answers[0] for answer in answers)


def test_the_order_holds_for_every_kind_of_dump(tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    first, *others = dumps("free")
    assert ask("free", first, more=("--output", certificate)).exit_code == 0
    for dump in (first, *others):
        held = ask("free", dump, more=("--check", certificate, "--json"))
        assert held.exit_code == 0, held.output
        jsonschema.validate(json.loads(held.stdout), schemas.load("verify"))
    counted = json.loads(held.stdout)
    assert counted["worms"] == 16, "two LIDs for each of eight hosts"
    spoilt = json.loads(certificate.read_text())
    spoilt["order"].reverse()
    certificate.write_text(json.dumps(spoilt))
    wrong = ask("free", first, more=("--check", certificate, "--json"))
    assert wrong.exit_code == 1
    assert json.loads(wrong.stdout)["reason"] == "the order has them the other way round"


def test_what_is_lost_is_named(tmp_path: Path) -> None:
    text = (RECORDED / "free/dump_lfts").read_text()
    changed = tmp_path / "changed"

    def lost(old: str, new: str) -> list[dict[str, Any]]:
        """After one entry of the first switch has changed."""
        assert old in text
        changed.write_text(text.replace(old, new, 1))
        result = ask("free", changed, more=("--json",))
        assert result.exit_code == 1
        answer = json.loads(result.stdout)
        jsonschema.validate(answer, schemas.load("verify"))
        assert answer["lost_count"] == len(answer["lost"])
        found: list[dict[str, Any]] = answer["lost"]
        return found

    # S3 is the first; H0 has the LIDs 2 and 3.
    head, entry = text.splitlines()[0], text.splitlines()[3]
    assert "(S3)" in head
    assert entry == "0x0002 003 : (Channel Adapter portguid 0x0000000000100001: 'H0')"
    packet = {"kind": "packet", "src": "H6", "dst": "H0", "to": "LID 2"}
    assert lost(entry + "\n", "") == [{"kind": "no-entry", "switch": "S3", "packet": packet}]
    for port, kind in [(8, "no-link"), (0, "kept-by-switch"), (1, "wrong-host")]:
        found = lost(entry, f"0x0002 {port:03} :")
        assert found == [{"kind": kind, "switch": "S3", "port": str(port), "packet": packet}]
    # S1, where it goes by port 3, sends it back.
    there = text.index("(S1)")
    back = text[:there] + text[there:].replace("0x0002 004", "0x0002 003", 1)
    changed.write_text(back)
    result = ask("free", changed, more=("--json",))
    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [wait["held_by"]["to"] for wait in answer["cycle"]] == ["LID 2", "LID 2"]
    path = answer["lost"][0]["path"]
    assert {(step["node"], step["port"]) for step in path} == {("S3", "3"), ("S1", "3")}
    told = verify.explain(answer)
    assert "LID 2 (H0) goes round for ever: " in told


def test_a_lid_that_the_dump_leaves_out_is_explained(tmp_path: Path) -> None:
    net = (RECORDED / "deadlock/ibnetdiscover").read_text()
    tables = (RECORDED / "deadlock/dump_lfts").read_text()
    gone = re.sub(r"(?m)^0x001c .*\n", "", tables)
    assert gone != tables
    for lid, is_explained in ((28, False), (64, True)):
        moved, dump = tmp_path / "net", tmp_path / "dump"
        moved.write_text(re.sub(r"lid 28\b", f"lid {lid}", net))
        dump.write_text(gone)
        told = verify.explain(json.loads(run("--topology", moved, "--tables", dump, "--json").stdout))
        assert f"13 times a destination is not reached:\n  S0 has no entry for LID {lid} (H13)" in told
        assert ("as 64 is; OpenSM's opensm-lfts.dump has it" in told) == is_explained


@pytest.mark.skipif(
    bool(opensm.missing(*opensm.DUMPERS)),
    reason="needs OpenSM, ibsim and infiniband-diags (opensm, ibsim-utils)",
)
def test_fresh_dumps_leave_out_the_last_lid_of_64() -> None:
    """32 switches and 32 hosts: what infiniband-diags prints lacks LID 64, what OpenSM writes has it."""
    made = opensm.dump(routing.make("irregular:32:9:1:4"), "updn", 0)
    for name, text in made.tables.items():
        lost = verify.verify_tables(made.ibnetdiscover, [text])["lost"]
        assert len(lost) == (0 if name.startswith("opensm") else 31), name
        assert {entry["packet"]["to"] for entry in lost} <= {"LID 64"}


def hold_together(net: str, tables: str) -> dict[str, Any]:
    """The answer, whose order the second program accepts."""
    answer = verify.verify_tables(net, [tables])
    assert answer["deadlock_free"]
    assert answer["lost"] == []
    network = verify.CheckedNetwork(routing.read(net), net)
    assert verify.check_tables(network, [tables], answer)["worms"] == 16
    return answer


def test_nodes_that_share_a_description_go_by_their_guids() -> None:
    tables = (RECORDED / "free/dump_lfts").read_text()
    net = (RECORDED / "free/ibnetdiscover").read_text()
    shared = re.sub(
        r'"S[0-3]"', '"Quantum Mellanox Technologies"', re.sub(r'"H[3-7]"', '"MT4119 ConnectX5"', net)
    )
    assert shared.count("Quantum") > 8
    answer = hold_together(shared, tables)
    names = {entry["from"]["node"] for entry in answer["order"]}
    assert {"S-0000000000200003", "H-000000000010000c", "H0"} <= names


def test_an_adapter_with_two_ports_is_two_hosts() -> None:
    tables = (RECORDED / "free/dump_lfts").read_text()
    net = (RECORDED / "free/ibnetdiscover").read_text()
    blocks = net.split("\n\n")
    (first,) = (block for block in blocks if 'Ca\t1 "H-000000000010000c"' in block)
    (second,) = (block for block in blocks if 'Ca\t1 "H-000000000010000e"' in block)
    port = second.strip().splitlines()[-1].replace("[1](10000f)", "[2](10000f)")
    both = first.replace("Ca\t1", "Ca\t2").rstrip("\n") + "\n" + port
    joined = net.replace(second, "").replace(first, both)
    joined = joined.replace('"H-000000000010000e"[1]', '"H-000000000010000c"[2]')
    names = {entry["from"]["node"] for entry in hold_together(joined, tables)["order"]}
    assert {"H6/1", "H6/2", "H5"} <= names


def test_tables_need_the_fabric_they_are_of() -> None:
    other = run("--topology", RECORDED / "free/ibnetdiscover", "--tables", RECORDED / "deadlock/dump_lfts")
    assert other.exit_code == 2
    assert "no switch of the topology has the GUID" in other.stderr
    plain = run("--topology", "ring:4", "--tables", RECORDED / "free/dump_lfts", "--json")
    assert json.loads(plain.stderr)["error"]["code"] == "no-addresses"


def test_with_path_records_packets_use_the_lane_of_their_service_level(tmp_path: Path) -> None:
    net, tables, records = (RECORDED / "lanes" / name for name in ("ibnetdiscover", "dump_lfts", "saquery"))
    # LASH on a ring: on one lane its tables deadlock, on its two lanes they do not.
    given = ["--topology", net, "--tables", tables]
    assert run(*given).exit_code == 1
    certificate = tmp_path / "certificate.json"
    assert run(*given, "--path-records", records, "--output", certificate).exit_code == 0
    answer = json.loads(certificate.read_text())
    jsonschema.validate(answer, schemas.load("verify"))
    assert {entry["vc"] for entry in answer["order"]} == {"0", "1"}
    held = run(*given, "--path-records", records, "--check", certificate)
    assert held.exit_code == 0, held.output
    assert run(*given, "--check", certificate).exit_code == 1
    # With every packet on the second lane it is the deadlock again, there.
    changed = tmp_path / "records"
    changed.write_text(re.sub(r"(\bsl\.+)0x0", r"\g<1>0x1", records.read_text()))
    deadlock = run(*given, "--path-records", changed, "--json")
    assert deadlock.exit_code == 1
    assert {wait["channel"]["vc"] for wait in json.loads(deadlock.stdout)["cycle"]} == {"1"}
    missing = tmp_path / "missing"
    missing.write_text(
        "".join(records.read_text().partition("PathRecord dump:")[2].partition("PathRecord dump:")[1:])
    )
    refused = run(*given, "--path-records", missing, "--json")
    assert refused.exit_code == 2
    error = json.loads(refused.stderr)["error"]
    assert error["code"] == "missing-record"
    assert error["message"].startswith(f"path records {missing}: there is no path record from H")


@pytest.mark.skipif(
    bool(opensm.missing(*opensm.DUMPERS)),
    reason="needs OpenSM, ibsim and infiniband-diags (opensm, ibsim-utils)",
)
@pytest.mark.parametrize(("engine", "free"), [("lash", True), ("dfsssp", True), ("minhop", False)])
def test_fresh_path_records(engine: str, free: bool) -> None:
    topology = routing.make("ring:6")
    made = opensm.dump(topology, engine, records=True, timeout=600)
    assert made.engine == engine
    tables = [made.tables["dump_lfts"]]
    assert not verify.verify_tables(made.ibnetdiscover, tables)["deadlock_free"]
    answer = verify.verify_tables(made.ibnetdiscover, tables, records=made.records)
    assert answer["deadlock_free"] == free
    if free:
        network = verify.CheckedNetwork(routing.read(made.ibnetdiscover), made.ibnetdiscover)
        assert verify.check_tables(network, tables, answer, records=made.records)["worms"] == 6


@pytest.mark.skipif(
    bool(opensm.missing(*opensm.DUMPERS)),
    reason="needs OpenSM, ibsim and infiniband-diags (opensm, ibsim-utils)",
)
@pytest.mark.parametrize(("engine", "spec", "lmc"), FRESH)
def test_fresh_dumps_are_judged_as_their_routes(engine: str, spec: str, lmc: int, tmp_path: Path) -> None:
    """By a second way: the tables walked from host to host in Python, and the routes checked as ours are."""
    topology = routing.make(spec)
    made = opensm.dump(topology, engine, routing.spanning_tree(topology)["root"], lmc=lmc)
    assert made.engine == engine
    file = tmp_path / "opensm-lfts.dump"
    file.write_text(made.tables[file.name])
    walked = {
        "routes": lengths.walk(topology, opensm.read_ports(file), {h["id"]: h for h in topology["hosts"]})
    }
    expected = verify.verify(topology, walked)["deadlock_free"]
    for name, text in made.tables.items():
        answer = verify.verify_tables(made.ibnetdiscover, [text])
        assert answer["lost"] == [], name
        assert answer["checked"]["destinations"] == len(topology["hosts"]) << lmc
        if lmc == 0:
            assert answer["deadlock_free"] == expected, name
        if answer["deadlock_free"]:
            network = verify.CheckedNetwork(routing.read(made.ibnetdiscover), made.ibnetdiscover)
            assert verify.check_tables(network, [text], answer)["worms"] == answer["checked"]["destinations"]


def record() -> None:
    for case, (spec, lmc) in CASES.items():
        topology = routing.make(spec)
        made = opensm.dump(topology, "updn", routing.spanning_tree(topology)["root"], lmc=lmc)
        assert made.engine == "updn"
        folder = RECORDED / case
        folder.mkdir(parents=True, exist_ok=True)
        # The first lines say when, and change each time.
        (folder / "ibnetdiscover").write_text(re.sub(r"(?m)^#.*\n", "", made.ibnetdiscover))
        for name, text in made.tables.items():
            if case == "free" or name == "dump_lfts":
                (folder / name).write_text(text)
    made = opensm.dump(routing.make("ring:5"), "lash", records=True, timeout=600)
    folder = RECORDED / "lanes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ibnetdiscover").write_text(re.sub(r"(?m)^#.*\n", "", made.ibnetdiscover))
    (folder / "dump_lfts").write_text(made.tables["dump_lfts"])
    (folder / "saquery").write_text(made.records)


if __name__ == "__main__":
    record()
