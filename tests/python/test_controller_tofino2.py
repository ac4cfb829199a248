"""Wormhole mode on Tofino 2: what the controller refuses there, what switches get, and what agents are told."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from controller_lab.agents import TestAgent, attached
from controller_lab.chip_server import ChipServer, serving_chip
from controller_lab.running import rest, until
from test_controller_directory import announce
from wormcast.agentrpc import agent_pb2
from wormcast.cli.main import main as wormcast
from wormcast.network.ids import PortId, SwitchId
from wormcast.network.topology import Link
from wormcast.p4rt.artifacts import INSTALLED, ArtifactError, Artifacts, find_artifacts
from wormcast.p4rt.programs import PROGRAMS, TOFINO, TOFINO2, V1MODEL
from wormcast.reconcile.chip_ports import check_one_pipe
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError
from wormcast.store.database import Database, SwitchSpec
from wormcast.wire import (
    DEVICE_PORTS_SIZE,
    MGID_HOLD,
    MGID_TREE_ALL,
    RECIRCULATE_PORT,
    TRAIN_CELLS,
    WORMHOLE_PLAIN,
)
from wormcast.wormhole.switching import FLUSH, INTERRUPT, PLAIN, WORMHOLE, Switching
from wormcast_planner import TABLES_WITH_DEFAULT

WAITS, YIELDS = Switching(WORMHOLE, PLAIN), Switching(WORMHOLE, FLUSH)
DEVICES = {0: 136, 1: 140, 2: 200, 3: 255, 254: 134, 510: 0}
"""All in pipe 1, but for that of the CPU."""
SPEC = SwitchSpec(SwitchId(0), "127.0.0.1:1", 0, 4, device_ports=tuple(DEVICES.items()))


def moved(**to: int) -> SwitchSpec:
    """The same switch with other device ports: p3=1 puts port 3 to 1."""
    ports = DEVICES | {int(port[1:]): device for port, device in to.items()}
    return replace(SPEC, device_ports=tuple(ports.items()))


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    """The program for Tofino 2, as its user has it: the compiler's output in a directory of theirs."""
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "tofino2.pb.bin").write_bytes(b"for the chip")
    return find_artifacts(tmp_path / "built", TOFINO2)


# -- which program ----------------------------------------------------------


def test_programs_are_chosen_by_name(tmp_path: Path, artifacts: Artifacts) -> None:
    assert find_artifacts().p4info.name == "wormcast.p4info.txtpb"
    assert (artifacts.p4info.parent, artifacts.p4info.name) == (INSTALLED, "tofino2.p4info.txtpb")
    assert artifacts.schema.p4blob == b"for the chip"
    # One of the user's own goes before that of the installation.
    own = tmp_path / "built" / "tofino2.p4info.txtpb"
    own.write_text(artifacts.p4info.read_text())
    assert find_artifacts(own.parent, TOFINO2).p4info == own
    (tmp_path / "built" / "tofino.pb.bin").write_bytes(b"for the first")
    can = {
        program: (found.has_device_ports, found.has_wormhole, found.holds_unicast_alone)
        for program, found in {
            V1MODEL: find_artifacts(),
            **{chip: find_artifacts(own.parent, chip) for chip in (TOFINO, TOFINO2)},
        }.items()
    }
    assert can == {
        V1MODEL: (False, True, False),
        TOFINO: (True, False, False),
        TOFINO2: (True, True, True),
    }


def test_tofino_2_has_every_table_whose_default_the_controller_reads(artifacts: Artifacts) -> None:
    """With the parameters that plans give."""
    ours, others = artifacts.schema, find_artifacts().schema
    for table in TABLES_WITH_DEFAULT:
        assert ours.tables[table].id == others.tables[table].id
    action = "ingress.wormhole_mode"
    bits = [{p.name: p.bitwidth for p in schema.actions[action].params} for schema in (ours, others)]
    assert bits[0] == bits[1]
    assert {"scheme", "held_max", "silent_us"} < bits[0].keys()
    assert ours.counters["trains"].size == TRAIN_CELLS


def test_what_a_chip_loads_must_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in (TOFINO, TOFINO2):
        with pytest.raises(ArtifactError, match=rf"no {program}\.pb\.bin in {tmp_path}: .*--pipeline"):
            find_artifacts(tmp_path, program)
        with pytest.raises(ArtifactError, match=rf"no {program}\.pb\.bin in {INSTALLED}"):
            find_artifacts(program=program)
        (tmp_path / f"{program}.pb.bin").write_bytes(b"x")
        monkeypatch.setenv("WORMCAST_PIPELINE", str(tmp_path))
        assert find_artifacts(program=program).blob == tmp_path / f"{program}.pb.bin"
        monkeypatch.delenv("WORMCAST_PIPELINE")


def test_the_command_names_the_programs_there_are(tmp_path: Path) -> None:
    def run(*options: str) -> str:
        done = CliRunner().invoke(wormcast, ["controller", "run", "--state", ":memory:", *options])
        assert done.exit_code in (2, 78), done.output
        return done.output

    refused = run("--program", "tofino3")
    assert all(repr(program) in refused for program in PROGRAMS), refused
    assert f"no tofino2.pb.bin in {tmp_path}" in run("--program", "tofino2", "--pipeline", str(tmp_path))
    (tmp_path / "tofino.pb.bin").write_bytes(b"x")
    refused = run("--program", "tofino", "--pipeline", str(tmp_path), "--switching", "wormhole")
    assert "tofino.p4info.txtpb, has no table ingress.wormhole: no wormhole mode; there are packet" in refused


# -- what is refused --------------------------------------------------------


@pytest.mark.parametrize("scheme", [FLUSH, INTERRUPT])
def test_schemes_of_multicasts_are_refused_with_the_reason(artifacts: Artifacts, scheme: str) -> None:
    says = f"wormhole:{scheme}: the program of the switches, {artifacts.p4info}, holds channels for UNICAST"
    with pytest.raises(ArtifactError, match=r"there are packet, wormhole$") as error:
        Controller(Database(None), artifacts, switching=Switching(WORMHOLE, scheme))
    assert str(error.value).startswith(says)

    async def main() -> None:
        controller = Controller(Database(None), artifacts)
        async with rest(controller) as client:
            answer = await client.put("switching", json={"mode": "wormhole", "scheme": scheme})
            told = answer.json()["error"]
            assert answer.status_code == 409
            assert told["message"].startswith(says)
            assert (told["value"], told["choices"]) == (f"wormhole:{scheme}", ["packet", "wormhole"])
            assert controller.switching.switching == Switching()
            await client.put("switching", json={"mode": "wormhole", "scheme": "plain"})
            assert controller.switching.switching == WAITS

    asyncio.run(main())


def test_other_targets_take_all_schemes() -> None:
    for scheme in (PLAIN, FLUSH, INTERRUPT):
        Controller(Database(None), find_artifacts(), switching=Switching(WORMHOLE, scheme))


def test_ports_of_a_switch_are_in_the_pipe_where_frames_wait() -> None:
    check_one_pipe(SPEC)
    check_one_pipe(moved(p0=128, p1=129, p3=130))
    for port, device, pipe in [(0, 127, 0), (3, 256, 2), (2, DEVICE_PORTS_SIZE - 1, 3)]:
        with pytest.raises(RequestError) as refused:
            check_one_pipe(moved(**{f"p{port}": device}))
        assert str(refused.value) == (
            f"device port {device} of port {port} of switch 0 is in pipe {pipe}, and 134 of port 254 is in pipe 1; in "
            "wormhole mode all are in one, since each pipe knows its own channels alone; possible: 128 to 255, or packet "
            "mode"
        )
        assert refused.value.value == device
    with pytest.raises(
        RequestError, match="of port 0 of switch 0 is in pipe 1, and 6 of port 254 is in pipe 0"
    ):
        check_one_pipe(moved(p254=6))


def test_a_switch_in_several_pipes_is_refused_in_wormhole_mode_alone(artifacts: Artifacts) -> None:
    async def main() -> None:
        controller = Controller(Database(None), artifacts)
        apart = moved(p3=8)
        controller.put_switches([apart])
        async with rest(controller) as client:
            answer = await client.put("switching", json={"mode": "wormhole"})
            assert answer.status_code == 409
            assert "device port 8 of port 3 of switch 0 is in pipe 0" in answer.json()["error"]["message"]
            assert controller.switching.switching == Switching()
            await client.delete("switches/0")
            controller.switching.set(WAITS)
            with pytest.raises(RequestError, match="device port 8 of port 3 of switch 0 is in pipe 0"):
                controller.put_switches([apart])
            assert not controller.sessions
            # Also while agents have not stopped sending trains yet.
            assert controller.switching.done(WAITS, False)
            controller.switching.set(Switching())
            with pytest.raises(RequestError, match="is in pipe 0"):
                controller.put_switches([apart])
            assert controller.switching.done(WAITS, False)
            controller.put_switches([apart])

    asyncio.run(main())


def test_a_state_file_of_another_program_is_not_followed_blindly(
    tmp_path: Path, artifacts: Artifacts
) -> None:
    state = tmp_path / "state"
    database = Database(state)
    database.put_switching(YIELDS)
    database.put_trains(YIELDS)
    with pytest.raises(ArtifactError, match=r"^wormhole:flush is kept in the state file, --switching sets"):
        Controller(database, artifacts)
    controller = Controller(database, artifacts, switching=WAITS)
    assert controller.switching.planned == (WAITS, False), "agents follow another program's plan no more"
    database.put_switches([moved(p1=1)])
    with pytest.raises(ArtifactError, match="device port 1 of port 1 of switch 0 is in pipe 0"):
        Controller(database, artifacts)
    Controller(database, artifacts, switching=Switching())
    database.close()


# -- what switches get and agents are told ----------------------------------


@contextlib.asynccontextmanager
async def fabric(
    tmp_path: Path, artifacts: Artifacts
) -> AsyncIterator[tuple[Controller, list[ChipServer], list[TestAgent], list[str]]]:
    """A controller, two chips that it has loaded the program into, an agent at each, and the chips' addresses."""
    agents_at = f"unix:{tmp_path}/agents.sock"
    controller = Controller(Database(None), artifacts, probe_interval_s=3600.0)
    async with contextlib.AsyncExitStack() as stack:
        await controller.start([agents_at])
        stack.push_async_callback(controller.stop)
        chips, agents, addresses = [], [], []
        for n in range(2):
            chip, address = await stack.enter_async_context(serving_chip(artifacts.p4info))
            controller.put_switches([replace(SPEC, id=SwitchId(n), address=address)])
            chips.append(chip)
            addresses.append(address)
        await until(lambda: all(session.connected for session in controller.sessions.values()))
        controller.monitor.restore_link(Link(SwitchId(0), PortId(3), SwitchId(1), PortId(3)))
        for switch in controller.sessions:
            controller.monitor.suspend(switch)  # these chips forward no probes, so none may be missed
        for n in range(2):
            announce(controller, f"a{n}", n, 0)
            agents.append(await stack.enter_async_context(attached(agents_at, f"a{n}", revision=1)))
            await until(lambda: agents[-1].host is not None)
        await controller.reconciler.settle()
        await until(lambda: all(agent.plans and agent.plans[-1].routes for agent in agents))
        await confirm(agents)
        yield controller, chips, agents, addresses


async def confirm(agents: list[TestAgent]) -> None:
    for agent in agents:
        await agent.send(plan_applied=agent_pb2.PlanApplied(epoch=agent.plans[-1].epoch))


def trains(agents: list[TestAgent]) -> set[tuple[int, int]]:
    """Frames of trains of any kind, and of UNICAST."""
    return {(agent.plans[-1].train_frames, agent.plans[-1].unicast_train_frames) for agent in agents}


def test_chips_come_into_wormhole_mode_and_agents_send_unicast_trains_alone(
    tmp_path: Path, artifacts: Artifacts
) -> None:
    def modes(chips: list[ChipServer]) -> set[str]:
        return {found[0] if (found := chip.default_of("ingress.wormhole")) else "" for chip in chips}

    async def main() -> None:
        async with fabric(tmp_path, artifacts) as (controller, chips, agents, _), rest(controller) as client:
            assert [chip.blob for chip in chips] == [b"for the chip"] * 2
            await until(lambda: all(MGID_TREE_ALL in chip.groups() for chip in chips))
            assert trains(agents) == {(0, 0)}
            assert modes(chips) <= {"", "ingress.packet_mode"}
            groups = [chip.groups() for chip in chips]

            await client.put("switching", json={"mode": "wormhole"})
            await until(lambda: trains(agents) == {(0, 8)})
            assert modes(chips) == {"ingress.wormhole_mode"}
            for chip, before in zip(chips, groups, strict=True):
                found = chip.default_of("ingress.wormhole")
                assert found is not None
                assert found[1]["scheme"] == WORMHOLE_PLAIN
                assert found[1]["held_max"] > 0
                assert found[1]["silent_us"] > 1 << 14, "longer than the slots in which the chip counts time"
                assert chip.groups() == before, "nobody is told STOP"
                assert not any(MGID_HOLD <= group < MGID_HOLD + 256 for group in before)
                assert not any(DEVICES[RECIRCULATE_PORT] in ports for ports in before.values())
            shown = (await client.get("switching")).json()
            assert (shown["settled"], shown["train_frames"], shown["tree_train_frames"]) == (True, 8, 1)
            assert "UNICAST worms alone" in shown["warnings"][0]
            assert "STOP" in shown["warnings"][1]
            assert "switch_refused" not in {event.kind for event in controller.events.history()}

            await confirm(agents)
            asking = asyncio.create_task(client.put("switching", json={"mode": "packet"}))
            await until(lambda: trains(agents) == {(0, 0)})
            assert modes(chips) == {"ingress.wormhole_mode"}, "trains may be on their way"
            await confirm(agents)
            assert (await asking).json()["settled"]
            assert modes(chips) == {"ingress.packet_mode"}

    asyncio.run(main())


def test_the_command_line_says_which_trains() -> None:
    from wormcast.wormhole import command

    value = {"settled": True, "train_frames": 8, "tree_train_frames": 1}
    assert command._sent(WAITS, value) == "worms of one frame and UNICAST trains of up to 8 frames"
    value["tree_train_frames"] = 8
    assert command._sent(WAITS, value) == "worms of one frame and trains of up to 8 frames"


def test_worms_says_that_it_cannot_read_a_chip(tmp_path: Path, artifacts: Artifacts) -> None:
    def run(addresses: list[str]) -> str:
        done = CliRunner().invoke(
            wormcast, ["worms", "--topology", "line:2", "--p4runtime", ",".join(addresses), "--json"]
        )
        assert done.exit_code > 1, done.output
        return str(json.loads(done.stderr)["error"]["message"])

    async def main() -> None:
        async with fabric(tmp_path, artifacts) as (_, _, _, addresses):
            said = await asyncio.to_thread(run, addresses)
            assert said == (
                f"switch s0 at {addresses[0]}: it runs the program for Tofino, whose registers are others; those of "
                "wormcast-switch and BMv2 can be read"
            )

    asyncio.run(main())
