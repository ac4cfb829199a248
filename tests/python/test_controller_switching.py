"""Packet mode and wormhole mode as the controller keeps them: asked for over REST, stored, and brought to switches."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import finsy
import httpx
import pytest
from click.testing import CliRunner
from controller_lab.running import rest, running
from controller_lab.serving import serving
from controller_lab.small import add_fabric, with_rest
from wormcast.cli.main import main as wormcast
from wormcast.network.ids import SwitchId
from wormcast.network.routing import Routing
from wormcast.p4rt.artifacts import ArtifactError, Artifacts, find_artifacts
from wormcast.p4rt.convert import decode_into, encode_update
from wormcast.p4rt.tables import Stage, SwitchTables
from wormcast.reconcile.controller import Controller
from wormcast.store.database import Database, StoreError
from wormcast.wire import (
    MGID_HOLD,
    MGID_INTERRUPT,
    RECIRCULATE_PORT,
    WORMHOLE_FLUSH,
    WORMHOLE_INTERRUPT,
    WORMHOLE_INTERRUPT_ROOT,
    WORMHOLE_PLAIN,
)
from wormcast.wormhole.switching import FLUSH, INTERRUPT, PLAIN, SWITCHINGS, WORMHOLE, Switching
from wormcast_planner import SwitchState

PACKET = {"mode": "packet", "scheme": None}
ROOT = Path(__file__).resolve().parents[2]


def default_of(controller: Controller) -> tuple[str, dict[str, int]]:
    """What a switch is to do with worms: the action and its parameters."""
    state = controller.planning.state.switches[SwitchId(0)]
    tables = SwitchTables()
    tables.desire(state, None)
    (found,) = [u.entity for u in tables.due(Stage.REVOKE) if is_wormhole(u.entity)]
    return found.action, dict(found.parameters)


def is_wormhole(entity: Any) -> bool:
    return getattr(entity, "table", "") == "ingress.wormhole"


def holds(controller: Controller) -> dict[int, list[int]]:
    """Ports of the groups by which STOP and GO leave."""
    groups = controller.planning.state.switches[SwitchId(0)].multicast()
    return {
        group.mgid - MGID_HOLD: [port for port, _, _ in group.replicas]
        for group in groups
        if MGID_HOLD <= group.mgid < MGID_HOLD + 256
    }


def test_the_mode_is_asked_for_over_rest_and_kept(tmp_path: Path) -> None:
    state = tmp_path / "controller.db"

    async def ask() -> None:
        async with running(state) as controller, rest(controller) as client:
            add_fabric(controller)
            packet = {**PACKET, "warnings": [], "train_frames": 1, "tree_train_frames": 1, "settled": True}
            assert (await client.get("switching")).json() == packet
            plain = (await client.put("switching", json={"mode": "wormhole"})).json()
            assert (plain["mode"], plain["scheme"], plain["settled"]) == ("wormhole", "plain", True)
            action, parameters = default_of(controller)
            assert (action, parameters["scheme"]) == ("ingress.wormhole_mode", WORMHOLE_PLAIN)
            assert parameters["go_frames"] < parameters["stop_frames"] < parameters["held_max"]
            assert holds(controller) == {port: [port, RECIRCULATE_PORT] for port in range(4)}
            await client.put("switching", json={"mode": "wormhole", "scheme": "flush"})
            assert default_of(controller)[1]["scheme"] == WORMHOLE_FLUSH
            await client.put("switching", json={"mode": "wormhole", "scheme": "flush"})
            told = [e.data for e in controller.events.history() if e.kind == "switching_changed"]
            assert [data["scheme"] for data in told] == ["plain", "flush"]

    asyncio.run(ask())
    kept = Database(state)
    assert kept.switching() == Switching(WORMHOLE, FLUSH)
    kept.close()

    async def again() -> None:
        async with running(state) as controller, rest(controller) as client:
            assert (await client.get("switching")).json()["scheme"] == "flush"
            await client.put("switching", json={"mode": "packet"})
            assert default_of(controller) == ("ingress.packet_mode", {})
            assert holds(controller) == {}

    asyncio.run(again())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "mode"),
        ({"mode": "wormhole", "scheme": "tree"}, "'plain', 'flush' or 'interrupt'"),
        ({"mode": "cell"}, "'packet' or 'wormhole'"),
        ({"mode": "packet", "scheme": "plain"}, "scheme 'plain' in mode packet"),
        ({"mode": "packet", "speed": 1}, "speed"),
    ],
)
def test_what_cannot_be_is_refused(body: dict[str, Any], says: str) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        answer = await client.put("switching", json=body)
        assert answer.status_code == 422
        assert says in json.dumps(answer.json(), ensure_ascii=False)
        assert controller.switching.switching == Switching()

    with_rest(test)


def test_what_can_deadlock_is_said_and_not_refused() -> None:
    plain, flush = Switching(WORMHOLE, PLAIN), Switching(WORMHOLE, FLUSH)
    assert "Fig. 3" in plain.warnings("osud")[0]
    for switching, algorithm in [(plain, "tree-only"), (flush, "osud"), (flush, "tree-only")]:
        first, *_ = switching.warnings(algorithm)
        assert first.startswith("two multicasts")
    assert all("wormcast worms" in " ".join(s.warnings("osud")) for s in (plain, flush))
    assert all("--recirculations 0" in " ".join(s.warnings("osud")) for s in (plain, flush))


def test_interrupted_multicasts_wait_for_nobody_for_ever() -> None:
    for algorithm in ("osud", "tree-only"):
        (said,) = Switching(WORMHOLE, INTERRUPT).warnings(algorithm)
        assert "--recirculations 0" in said
        assert "set_queue_depth 4096 254 and set_queue_rate 4000 254" in said


def test_interrupted_multicasts_have_a_root() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        add_fabric(controller)
        answer = await client.put("switching", json={"mode": "wormhole", "scheme": "interrupt"})
        assert answer.json()["scheme"] == "interrupt"
        state = controller.planning.state
        schemes = {}
        for switch, planned in state.switches.items():
            tables = SwitchTables()
            tables.desire(planned, None)
            (found,) = [u.entity for u in tables.due(Stage.REVOKE) if is_wormhole(u.entity)]
            schemes[switch] = dict(found.parameters)["scheme"]
            assert MGID_INTERRUPT in [group.mgid for group in planned.multicast()]
        root = WORMHOLE_INTERRUPT_ROOT
        assert schemes == {s: root if s in state.roots else WORMHOLE_INTERRUPT for s in state.switches}
        assert root in schemes.values()

    with_rest(test)


def test_the_warning_goes_by_the_routes_wanted() -> None:
    async def test(client: httpx.AsyncClient, _: Controller) -> None:
        async def first() -> str:
            return str((await client.get("switching")).json()["warnings"][0])

        await client.put("switching", json={"mode": "wormhole"})
        assert "tree-only" in await first()
        await client.put("routing", json=Routing("tree-only").to_json())
        assert "tree-only" not in await first()

    with_rest(test)


@pytest.mark.parametrize("text", SWITCHINGS)
def test_texts_are_read_again(text: str) -> None:
    assert Switching.parse(text).text == text


@pytest.mark.parametrize(
    "text", ["", "cell", "packet:plain", "wormhole:", "wormhole:tree", "wormhole:flush:1"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="possible"):
        Switching.parse(text)


@pytest.mark.parametrize(
    "value", ["{}", '{"mode": "wormhole", "scheme": null}', '{"mode": 1, "scheme": null}']
)
def test_a_state_file_that_says_nonsense_is_named(tmp_path: Path, value: str) -> None:
    path = tmp_path / "controller.db"
    database = Database(path)
    database._put("INSERT OR REPLACE INTO settings VALUES ('switching', ?)", (value,))
    with pytest.raises(StoreError, match=f"{path}: row .* of table settings"):
        database.switching()
    database.close()


def test_a_program_without_the_table_is_named(tmp_path: Path) -> None:
    """As that for Tofino."""
    info = (ROOT / "p4src/compiled/tofino.p4info.txtpb").read_text()
    (tmp_path / "wormcast.p4info.txtpb").write_text(info)
    (tmp_path / "wormcast.json").write_text("{}")
    artifacts = Artifacts(tmp_path / "wormcast.p4info.txtpb", tmp_path / "wormcast.json")
    with pytest.raises(ArtifactError, match=r"has no table ingress\.wormhole"):
        Controller(Database(None), artifacts, switching=Switching(WORMHOLE, PLAIN))

    async def main() -> None:
        controller = Controller(Database(None), artifacts)
        async with rest(controller) as client:
            answer = await client.put("switching", json={"mode": "wormhole"})
            assert answer.status_code == 409
            assert "ingress.wormhole" in answer.json()["error"]["message"]
            assert controller.switching.switching == Switching()

    asyncio.run(main())


def test_what_is_written_is_read_back() -> None:
    """The port 254 of replicas, too."""

    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            add_fabric(controller)
            await client.put("switching", json={"mode": "wormhole", "scheme": "flush"})
            desired = controller.planning.state.switches[SwitchId(0)]
            tables, schema = SwitchTables(), find_artifacts().schema
            tables.desire(desired, None)
            read = SwitchState()
            for update in tables.due(Stage.REVOKE):
                message = encode_update(update)
                message = message.encode_update(schema) if hasattr(message, "encode_update") else message
                if message.entity.WhichOneof("entity") == "packet_replication_engine_entry":
                    decode_into(read, finsy.P4MulticastGroupEntry.decode(message.entity, schema), schema)
            assert read.multicast() == desired.multicast()

    asyncio.run(main())


def test_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str, fails: bool = False) -> str:
        result = CliRunner().invoke(wormcast, ["switching", *arguments, "--api", f"unix:{tmp_path}/rest"])
        assert (result.exit_code != 0) == fails, result.output
        return result.output

    async def main() -> None:
        async with running() as controller, serving(controller, tmp_path / "rest"):
            add_fabric(controller)

            async def command(*arguments: str, fails: bool = False) -> str:
                return await asyncio.to_thread(run, *arguments, fails=fails)

            assert await command("show") == "switching: packet\nagents send: worms of one frame\n"
            shown = await command("set", "wormhole")
            assert shown.startswith("switching: wormhole\n")
            assert "Fig. 3" in shown
            assert controller.switching.switching == Switching(WORMHOLE, PLAIN)
            assert "switching: wormhole:flush" in await command("set", "wormhole:flush")
            value = json.loads(await command("show", "--json"))
            assert (value["mode"], value["scheme"]) == ("wormhole", "flush")
            shown = await command("set", "wormhole:interrupt")
            assert shown.startswith("switching: wormhole:interrupt\n")
            assert "'wormhole:flush'" in await command("set", "cell", fails=True)
            shown = await command("set", "packet")
            assert shown == "switching: packet\nagents send: worms of one frame\n"

    asyncio.run(main())
