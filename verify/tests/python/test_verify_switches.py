"""`wormcast verify --p4runtime`: what running switches have in their tables."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import finsy
import finsy.p4client
import jsonschema
import pytest
from click.testing import CliRunner, Result
from rig.targets import targets
from wormcast import routing
from wormcast.cli.main import main
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.p4rt.channels import allow_unix_sockets
from wormcast.routing import schemas

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "switch/tests/programs"
RING = 4
START_SECONDS_MAX = 600.0
# Its own 10 seconds for a request are too few where a machine is slow.
finsy.p4client._DEFAULT_RPC_TIMEOUT = START_SECONDS_MAX
allow_unix_sockets()

pytestmark = [
    pytest.mark.skipif(targets()[0].binary is None, reason=targets()[0].missing),
]


@dataclass
class Fabric:
    """Four switches in a ring without frames, and the file of a controller."""

    topology: dict[str, Any]
    folder: Path

    @property
    def network(self) -> Path:
        return self.folder / "net.json"

    @property
    def switches(self) -> Path:
        return self.folder / "switches.json"

    def address(self, switch: int) -> str:
        return f"unix:{self.folder}/s{switch}.sock"

    def onward(self, switch: int) -> int:
        """The port towards the next switch of the ring."""
        following = (switch + 1) % RING
        for link in self.topology["links"]:
            if {link["a"], link["b"]} == {switch, following}:
                return int(link["a_port"] if link["a"] == switch else link["b_port"])
        raise AssertionError("no ring")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """Running switches, without a program."""
    folder = tmp_path_factory.mktemp("ring")
    found = Fabric(routing.make(f"ring:{RING}"), folder)
    found.network.write_text(json.dumps(found.topology))
    rows = [{"id": n, "address": found.address(n), "device_id": n, "ports": 8} for n in range(RING)]
    found.switches.write_text(json.dumps({"switches": rows}))
    binary = targets()[0].binary
    processes = []
    try:
        for number in range(RING):
            argv = [binary, "--no-p4", "--device-id", str(number), "--", "--grpc-server-addr"]
            with (folder / f"s{number}.log").open("wb") as log:
                argv += [found.address(number), "--cpu-port", "510", "--drop-port", "511"]
                processes.append(subprocess.Popen(list(map(str, argv)), stdout=log, stderr=log))
        until(lambda: all((folder / f"s{n}.sock").exists() for n in range(RING)))
        yield found
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "the switches did not start"
        time.sleep(0.02)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


def load(fabric: Fabric, p4info: Path, blob: Path, entities: Callable[[int], Sequence[Any]]) -> None:
    """Sets a program on every switch, and writes entities, by switch."""

    async def one(number: int) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def write(switch: Any) -> None:
            try:
                await switch.delete_all()
                await switch.write([+entity for entity in entities(number)])
                done.set_result(None)
            except Exception as error:
                done.set_exception(error)

        schema = finsy.P4Schema(p4info, blob)
        options = finsy.SwitchOptions(
            p4info=schema.p4info, p4blob=schema.p4blob, device_id=number, ready_handler=write
        )
        async with (
            asyncio.timeout(START_SECONDS_MAX),
            finsy.Switch(f"s{number}", fabric.address(number), options),
        ):
            await done

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(RING)))

    asyncio.run(all_of_them())


def mac(host: int) -> int:
    return 0x020000000000 + host


def forward(destination: int, port: int) -> Any:
    action = finsy.Action("forward", port=port)
    return finsy.P4TableEntry(
        "addresses", match=finsy.Match({"hdr.ethernet.dst": mac(destination)}), action=action
    )


def load_ring(fabric: Fabric, ways: Mapping[tuple[int, int], int]) -> None:
    """The program of others, with a port for each switch and destination."""
    p4info, blob = PROGRAMS / "objects.p4info.txtpb", PROGRAMS / "objects.json"
    load(
        fabric,
        p4info,
        blob,
        lambda at: [forward(to, port) for (switch, to), port in ways.items() if switch == at],
    )


def test_tables_of_another_program(fabric: Fabric, tmp_path: Path) -> None:
    # Each host's packets go two switches round: a deadlock. Hosts are on port 0.
    home = {host["switch"]: (host["id"], host["port"]) for host in fabric.topology["hosts"]}
    ways = {(n, home[n][0]): home[n][1] for n in range(RING)}
    for number in range(RING):
        for before in (1, 2):
            at = (number - before) % RING
            ways[at, home[number][0]] = fabric.onward(at)
    load_ring(fabric, ways)
    given = ["--topology", fabric.network, "--p4runtime", fabric.switches, "--table", "addresses"]
    saved, picture = tmp_path / "tables.json", tmp_path / "cycle.svg"
    deadlock = run(*given, "--json", "--save-tables", saved, "--draw", picture)
    assert deadlock.exit_code == 1, deadlock.output
    answer = json.loads(deadlock.stdout)
    jsonschema.validate(answer, schemas.load("verify"))
    assert [wait["channel"]["from"]["node"] for wait in answer["cycle"]] == ["s0", "s1", "s2", "s3"]
    assert all(wait["held_by"]["to"].startswith("addresses 0x02000000000") for wait in answer["cycle"])
    assert ">s2</text>" in picture.read_text()
    # The file says the same without switches.
    jsonschema.validate(json.loads(saved.read_text()), schemas.load("tables"))
    again = run("--topology", fabric.network, "--tables", saved, "--json")
    assert json.loads(again.stdout) == answer

    # One step the other way for one pair breaks the circle.
    ways[0, home[2][0]] = next(
        (link["a_port"] if link["a"] == 0 else link["b_port"])
        for link in fabric.topology["links"]
        if {link["a"], link["b"]} == {0, 3}
    )
    ways[3, home[2][0]] = next(
        (link["a_port"] if link["a"] == 3 else link["b_port"])
        for link in fabric.topology["links"]
        if {link["a"], link["b"]} == {2, 3}
    )
    load_ring(fabric, ways)
    # An entry that is not there is a black hole.
    lost = dict(ways)
    del lost[1, home[2][0]]
    lost[0, home[2][0]] = fabric.onward(0)
    load_ring(fabric, lost)
    hole = run(*given, "--json")
    assert hole.exit_code == 1
    packet = {"kind": "packet", "src": f"h{home[0][0]}", "to": f"addresses {mac(home[2][0]):#014x}"}
    assert json.loads(hole.stdout)["lost"] == [{"kind": "no-entry", "switch": "s1", "packet": packet}]
    load_ring(fabric, ways)
    certificate = tmp_path / "certificate.json"
    addresses = ",".join(fabric.address(number) for number in range(RING))
    given[3] = addresses
    assert run(*given, "--output", certificate).exit_code == 0
    held = run(*given, "--check", certificate, "--json")
    assert held.exit_code == 0, held.output
    assert json.loads(held.stdout)["holds"] is True
    # The order is not one for the routes from before.
    other = run("--topology", fabric.network, "--tables", saved, "--check", certificate, "--json")
    assert other.exit_code == 1
    assert json.loads(other.stdout)["holds"] is False


def test_what_is_read_of_a_table_is_sound_or_refused(fabric: Fabric) -> None:
    load_ring(fabric, {(0, 0): 0})
    given = ["--topology", fabric.network, "--p4runtime", fabric.switches]
    for more, words in [
        ([], ["no table 'ingress.groups'", "ingress.addresses", "--table"]),
        (["--table", "routes"], ["no table 'routes'", "ingress.spread"]),
        (["--table", "addresses", "--key", "vlan"], ["no match field 'vlan'", "hdr.ethernet.dst"]),
        (["--table", "addresses", "--port-parameter", "out"], ["no parameter 'out'", "it has port"]),
        (["--table", "types"], ["does not forward by one destination", "hdr.ethernet.src"]),
        (["--table", "sizes"], ["neither exact, lpm nor ternary"]),
    ]:
        refused = run(*given, *more, "--json")
        assert refused.exit_code == 2, refused.output
        message = json.loads(refused.stderr)["error"]["message"]
        assert all(word in message for word in words), message
    entry = finsy.P4TableEntry(
        "addresses", match=finsy.Match({"hdr.ethernet.dst": 5}), action=finsy.Action("flood", group=9)
    )
    p4info, blob = PROGRAMS / "objects.p4info.txtpb", PROGRAMS / "objects.json"
    load(fabric, p4info, blob, lambda at: [entry] if at == 1 else [])
    refused = run(*given, "--table", "addresses")
    assert refused.exit_code == 2
    assert (
        "switch s1: action ingress.flood of table ingress.addresses has no parameter 'port'" in refused.stderr
    )


def test_members_of_an_action_profile_are_all_followed(fabric: Fabric) -> None:
    p4info, blob = PROGRAMS / "objects.p4info.txtpb", PROGRAMS / "objects.json"

    def entities(at: int) -> list[Any]:
        members = [
            finsy.P4ActionProfileMember(
                "choice", member_id=port + 1, action=finsy.Action("forward_on", port=port)
            )
            for port in (0, fabric.onward(at))
        ]
        numbers = [member.member_id for member in members]
        group = finsy.P4ActionProfileGroup(
            "choice", group_id=1, max_size=4, members=[finsy.P4Member(number, weight=1) for number in numbers]
        )
        entry = finsy.P4TableEntry(
            "spread",
            match=finsy.Match({"hdr.ethernet.type": 0x800}),
            action=finsy.P4IndirectAction(group_id=1),
        )
        return [*members, group, entry]

    load(fabric, p4info, blob, entities)
    found = run("--topology", fabric.network, "--p4runtime", fabric.switches, "--table", "spread", "--json")
    assert found.exit_code == 1, found.output
    answer = json.loads(found.stdout)
    # Some packets leave at each switch, some go on for ever.
    assert len(answer["cycle"]) == RING
    assert [entry["kind"] for entry in answer["lost"]] == ["loop"]
    assert len(answer["lost"][0]["path"]) == RING


def test_groups_of_our_own_program(fabric: Fabric) -> None:
    artifacts = find_artifacts()
    closed = [False]

    def entities(at: int) -> list[Any]:
        ports = [0, fabric.onward(at), next(p for p in range(8) if p not in (0, fabric.onward(at)))]
        # A tree has no edge between the last switch and the first.
        if not closed[0] and at == RING - 1:
            ports.remove(fabric.onward(at))
        if not closed[0] and at == 0:
            ports = [0, fabric.onward(at)]
        return [
            finsy.P4MulticastGroupEntry(0x4000, replicas=[(port, 1) for port in ports]),
            finsy.P4TableEntry(
                "ingress.groups",
                match=finsy.Match({"group": 7}),
                action=finsy.Action("ingress.replicate", mgid=0x4000),
            ),
        ]

    given = ["--topology", fabric.network, "--p4runtime", fabric.switches, "--json"]
    load(fabric, artifacts.p4info, artifacts.blob, entities)
    tree = run(*given)
    assert tree.exit_code == 0, tree.output
    assert json.loads(tree.stdout)["checked"]["destinations"] == 2
    closed[0] = True
    load(fabric, artifacts.p4info, artifacts.blob, entities)
    ring = run(*given)
    assert ring.exit_code == 1, ring.output
    assert {wait["held_by"]["to"] for wait in json.loads(ring.stdout)["cycle"]} == {"group 0x0007"}


def test_switches_that_do_not_answer_are_named(fabric: Fabric, tmp_path: Path) -> None:
    nobody = ",".join(f"unix:{tmp_path}/none{number}" for number in range(RING))
    refused = run("--topology", fabric.network, "--p4runtime", nobody, "--json")
    assert refused.exit_code == 69
    assert "switch s0 at unix:" in json.loads(refused.stderr)["error"]["message"]
    few = run("--topology", fabric.network, "--p4runtime", "127.0.0.1:1,127.0.0.1:2")
    assert few.exit_code == 2
    assert "2 addresses for 4 switches" in few.stderr
    wrong = run("--topology", "torus:2", "--p4runtime", "a b:c")
    assert wrong.exit_code == 2
