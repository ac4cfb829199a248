"""The guard as the controller keeps it: asked for over REST, stored, and brought out in a safe order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from controller_lab.model import FakeSwitch
from controller_lab.plans import decoded
from controller_lab.running import rest, running, until
from controller_lab.serving import serving
from controller_lab.small import add_fabric, with_rest
from finsy.p4entity import decode_entity, encode_updates
from wormcast.cli.main import main as wormcast
from wormcast.guard.state import RATE_MAX_BPS, RATE_MIN_BPS, Guard
from wormcast.network.ids import Epoch, GroupId, HostId, PortId, SwitchId
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.p4rt.convert import decode_into, encode_update
from wormcast.p4rt.tables import Stage, SwitchTables, split_batches
from wormcast.reconcile import route_steps
from wormcast.reconcile.controller import Controller
from wormcast.store.database import Database, StoreError
from wormcast_planner import PortRate, SwitchState, TableDefault, TableEntry, difference

INGRESS = "standard_metadata.ingress_port"
CLASS_D = {"members": [0, 1], "class_d": "239.1.1.7"}


def test_the_guard_is_asked_for_over_rest_and_kept(tmp_path: Path) -> None:
    state = tmp_path / "controller.db"

    async def ask() -> None:
        async with running(state) as controller:
            add_fabric(controller)
            async with rest(controller) as client:
                off = {"on": False, "closed": [], "rates": []}
                assert (await client.get("guard")).json() == off
                group = (await client.post("groups", json=CLASS_D)).json()["id"]
                answer = await client.put("guard", json={"on": True, "closed": [group]})
                assert answer.json() == {"on": True, "closed": [group], "rates": []}
                # What is absent stays.
                assert (await client.put("guard", json={"on": False})).json()["closed"] == [group]
                assert (await client.put("guard", json={"on": True})).json()["closed"] == [group]
                shown = (await client.put("hosts/h1/rate", json={"bps": 5_000_000})).json()
                assert (shown["id"], shown["rate_bps"]) == (1, 5_000_000)
                told = [event.data for event in controller.events.history() if event.kind == "guard_changed"]
                assert told[-1] == {"on": True, "closed": [group], "limited": [1]}

    asyncio.run(ask())
    kept = Database(state)
    assert kept.guard() == Guard(True, frozenset({GroupId(7)}), {HostId(1): 5_000_000})
    told = Guard(ports={(SwitchId(1), PortId(3)): "host"})
    kept.put_guard(told)
    assert kept.guard() == told
    kept.put_guard(Guard(True, frozenset({GroupId(7)}), {HostId(1): 5_000_000}))
    # Agents have their secrets there.
    assert state.stat().st_mode & 0o777 == 0o600
    kept.close()

    async def again() -> None:
        async with running(state) as controller, rest(controller) as client:
            assert (await client.get("guard")).json()["on"]
            # Who is gone leaves nothing behind: another of the number begins anew.
            assert (await client.delete("groups/7")).status_code == 204
            assert (await client.delete("hosts/1")).status_code == 204
            assert (await client.get("guard")).json() == {"on": True, "closed": [], "rates": []}

    asyncio.run(again())


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("guard", {"on": 1}, 422, "bool"),
        ("guard", {"open": []}, 422, "open"),
        ("guard", {"closed": [9]}, 404, "group 9"),
        ("guard", {"closed": ["plain"]}, 422, "no IP multicast address"),
        ("hosts/7/rate", {"bps": 5_000_000}, 404, "7"),
        ("hosts/0/rate", {}, 422, "bps"),
        ("hosts/0/rate", {"bps": RATE_MIN_BPS - 1}, 422, f"{RATE_MIN_BPS} to {RATE_MAX_BPS}"),
        ("hosts/0/rate", {"bps": RATE_MAX_BPS + 1}, 422, f"{RATE_MIN_BPS} to {RATE_MAX_BPS}"),
        ("hosts/0/rate", {"bps": 1.5e6}, 422, "integer"),
    ],
)
def test_what_cannot_be_is_refused(path: str, body: dict[str, Any], status: int, says: str) -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        await client.post("groups", json={"name": "plain", "members": [0, 1]})
        answer = await client.put(path, json=body)
        assert answer.status_code == status
        assert says in json.dumps(answer.json())
        assert controller.guard.guard == Guard()

    with_rest(test)


@pytest.mark.parametrize(
    "value",
    [
        "{}",
        '{"on": true, "closed": [], "rates": [{"host": 1, "bps": 5}]}',
        '{"on": true, "closed": 4, "rates": []}',
    ],
)
def test_a_state_file_that_says_nonsense_is_named(tmp_path: Path, value: str) -> None:
    path = tmp_path / "controller.db"
    database = Database(path)
    database._put("INSERT OR REPLACE INTO settings VALUES ('guard', ?)", (value,))
    with pytest.raises(StoreError, match=f"{path}: row .* of table settings"):
        database.guard()
    database.close()


def test_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str, fails: bool = False) -> str:
        result = CliRunner().invoke(wormcast, [*arguments, "--api", f"unix:{tmp_path}/rest"])
        assert (result.exit_code != 0) == fails, result.output
        return result.output

    async def main() -> None:
        async with running() as controller, serving(controller, tmp_path / "rest"):
            add_fabric(controller)
            async with rest(controller) as client:
                await client.post("groups", json={**CLASS_D, "name": "video"})

            async def command(*arguments: str, fails: bool = False) -> str:
                return await asyncio.to_thread(run, *arguments, fails=fails)

            assert "guard: off" in await command("guard", "show")
            assert "closed groups: 7" in await command("guard", "set", "on", "--close", "video")
            assert controller.guard.guard == Guard(True, frozenset({GroupId(7)}))
            assert "those of scheme table alone" in await command("guard", "set", "--open", "7")
            assert controller.guard.guard == Guard(True)
            limit = ("host", "limit", "h2", "2.5")
            switch_alone = "it has no agent that keeps to a rate, and its switch drops what is above"
            assert f"may send 2.5 Mb/s: {switch_alone}" in await command(*limit)
            assert json.loads(await command("guard", "show", "--json")) == {
                "on": True,
                "closed": [],
                "rates": [{"host": 2, "bps": 2_500_000}],
            }
            # With the guard off it says so, and who is left to keep to it.
            assert "agents keep to their rates, and no switch drops" in await command("guard", "set", "off")
            off = "no switch drops what is above while the guard is off (wormcast guard set on)"
            assert (
                f"nothing holds it to that. It has no agent that keeps to a rate, and {off}"
                in await command(*limit)
            )
            controller.agent_events.agent_registered(
                "h2", None, b"\2\0\0\0\0\1", 1500, "old", Epoch(0), revision=2
            )
            assert "nothing holds it to that" in await command(*limit)
            controller.agent_events.agent_registered(
                "h2", None, b"\2\0\0\0\0\1", 1500, "new", Epoch(0), revision=3
            )
            assert f"its agent paces what it sends; {off}" in await command(*limit)
            listed = await command("host", "list")
            assert f"host 2 may send 2.5 Mb/s: its agent paces what it sends; {off}" in " ".join(
                listed.split()
            )
            assert "limited" in listed
            await command("guard", "set", "on")
            assert "its agent paces what it sends, and its switch drops what is above" in await command(
                *limit
            )
            shown = json.loads(await command("host", "list", "--json"))["hosts"]
            assert [host["rate_kept_by"] for host in shown] == [[], [], ["agent", "switch"]]
            assert "at any rate" in await command("host", "limit", "2", "any")
            for wrong in ("fast", "nan", "inf"):
                assert "no rate in Mb/s" in await command("host", "limit", "2", wrong, fails=True)
            assert "no group" in await command("guard", "set", "--open", "radio", fails=True)
            assert "port 3 of switch 1 leads to a link" in await command("guard", "port", "1:3", "link")
            assert controller.guard.guard == Guard(True, ports={(SwitchId(1), PortId(3)): "link"})
            assert "port 3 of switch 1: leads to a link" in await command("guard", "show")
            assert "what is found there" in await command("guard", "port", "1:3", "any")
            assert "give SWITCH:PORT" in await command("guard", "port", "13", "link", fails=True)
            assert "no switch 77" in await command("guard", "port", "77:0", "host", fails=True)
            assert "has no port 99" in await command("guard", "port", "1:99", "host", fails=True)
            assert controller.guard.guard == Guard(True)

    asyncio.run(main())


def admit(port: int, kinds: int) -> TableEntry:
    parameters = [("host", 5), ("kinds", kinds), ("route_max", 8), ("transit", 0), ("tree_max", 5)]
    return TableEntry("ingress.guard", [(INGRESS, port)], "ingress.admit_host", parameters)


def guarded(*entries: TableEntry) -> SwitchState:
    state = SwitchState()
    state.put_default(TableDefault("ingress.guard", "ingress.refuse_port"))
    for entry in entries:
        state.put_entry(entry)
    return state


def test_entries_are_read_back_as_they_were_written() -> None:
    """Else a switch that the controller meets again loses them: they count as not there, and as not wanted."""
    schema, wanted = find_artifacts().schema, guarded(admit(0, 0b0101))
    members = [(INGRESS, 1), ("group", 7)]
    wanted.put_entry(TableEntry("ingress.group_senders", members, "ingress.sender_known"))
    wanted.put_entry(TableEntry("ingress.sources", [("source", (8, 0xFFF8))], "ingress.source_known", [], 1))
    updates = [u for u in difference(wanted, SwitchState()) if isinstance(u.entity, TableEntry)]
    assert len({u.entity.table for u in updates}) == 3
    read = guarded()
    for message in encode_updates([encode_update(u) for u in updates], schema):
        decode_into(read, decode_entity(message.entity, schema), schema)
    assert difference(wanted, read) == []


def write(tables: SwitchTables, stage: Stage) -> None:
    for batch in split_batches(tables.due(stage)):
        tables.executed(batch)
    if stage >= Stage.RETIRE:
        tables.settle()


def test_what_is_new_is_let_in_first_and_what_is_old_to_the_end() -> None:
    tables = SwitchTables()
    tables.found(guarded(admit(0, 0b0011)))
    tables.desire(guarded(admit(0, 0b0101)), None)
    assert tables.permits_more
    write(tables, Stage.PERMIT)
    assert tables.actual.entries() == [admit(0, 0b0111)]
    assert not tables.permits_more
    assert not tables.in_step
    assert not tables.revocable, "the other stages come before"
    write(tables, Stage.RETIRE)
    assert tables.actual.entries() == [admit(0, 0b0111)]
    assert tables.in_step, "what is left waits for the agents"
    assert tables.revocable
    write(tables, Stage.REVOKE)
    assert tables.actual == guarded(admit(0, 0b0101))
    assert not tables.revocable


def test_a_refused_revocation_is_named_and_waits() -> None:
    tables = SwitchTables()
    tables.found(guarded(admit(0, 1), admit(1, 1)))
    tables.desire(guarded(admit(1, 1)), None)
    write(tables, Stage.RETIRE)
    (update,) = tables.due(Stage.REVOKE)
    assert str(tables.refuse(update, "no")) == "delete of an entry of ingress.guard: no"
    assert not tables.revocable
    assert tables.in_step


def test_rates_are_set_and_taken_away() -> None:
    tables, wanted = SwitchTables(), guarded()
    wanted.put_rate(PortRate(3, 1000))
    tables.found(guarded())
    tables.desire(wanted, None)
    assert tables.due(Stage.RETIRE) == [], "agents keep to it first"
    (update,) = tables.due(Stage.REVOKE)
    assert update.entity == PortRate(3, 1000)
    assert str(tables.refuse(update, "no meter")) == "rate of port 3: no meter"
    tables.found(wanted.copy())
    tables.desire(guarded(), None)
    (update,) = tables.due(Stage.PERMIT)
    assert update.entity == PortRate(3, None)
    tables.executed([update])
    assert tables.actual.rates() == {}


class Session:
    """The tables of a real session over a fake switch; what it writes goes into a log."""

    def __init__(self, spec: Any, log: list[str]) -> None:
        self.spec = spec
        self.connected = True
        self.fake = FakeSwitch()
        self.tables = SwitchTables()
        self.tables.found(SwitchState())
        self._log = log

    @property
    def in_step(self) -> bool:
        return self.tables.in_step

    def desire(self, state: SwitchState, touched: Any = None) -> None:
        self.tables.desire(state, touched)

    def advance(self, stage: Stage) -> asyncio.Task[None]:
        return asyncio.create_task(self._write(stage))

    async def revoke(self, wanted: SwitchState) -> None:
        assert self.tables.desired is wanted
        await self._write(Stage.REVOKE)

    async def _write(self, stage: Stage) -> None:
        for batch in split_batches(self.tables.due(stage)):
            for update in batch:
                self.fake.write(update)
            self.tables.executed(batch)
            self._log.append(Stage(batch[0].stage).name)
        if stage >= Stage.RETIRE:
            self.tables.settle()

    def send(self, port: int, frame: bytes) -> None:
        pass

    async def stop(self) -> None:
        pass

    def admitted(self) -> dict[int, str]:
        """What is let in by each port."""
        entries = [entry for entry in self.fake.state.entries() if entry.table == "ingress.guard"]
        return {entry.match[0][1]: entry.action for entry in entries}  # type: ignore[misc]


def follow(controller: Controller, hosts: Iterable[int]) -> None:
    """Agents confirm what they were told."""
    for host in hosts:
        told = controller.agent_plans.issued.get(HostId(host))
        assert told is not None
        controller.agent_plans.answered(HostId(host), told.epoch)


def test_switches_let_in_before_agents_are_told_and_revoke_when_all_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(route_steps, "LEFT_BEHIND_AFTER_S", 60.0)

    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            add_fabric(controller)
            log: list[str] = []
            for switch, session in list(controller.sessions.items()):
                controller.sessions[switch] = Session(session.spec, log)  # type: ignore[assignment]
            for n in range(3):
                controller.agent_events.agent_registered(
                    f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0)
                )
            publish = controller.directory.publish

            def logged(plans: Any) -> None:
                log.append("tell") if plans else None
                publish(plans)

            monkeypatch.setattr(controller.directory, "publish", logged)
            await controller.reconciler.settle()
            await client.put("guard", json={"on": True})
            first: Any = controller.sessions[SwitchId(0)]
            assert first.admitted() == dict.fromkeys((0, 1, 3), "ingress.trust_port"), "nobody has confirmed"
            follow(controller, range(3))
            hosts = dict.fromkeys((0, 1), "ingress.admit_host")
            await until(lambda: first.admitted() == {**hosts, 3: "ingress.link_port"})
            await until(lambda: first.tables.actual == first.tables.desired)

            log.clear()
            body = {"scheme": "table", "members": [0, 1, 2]}
            await client.post("groups", json=body)
            assert log.index("PERMIT") < log.index("GROW") < log.index("tell")

            def senders() -> int:
                return [entry.table for entry in first.fake.state.entries()].count("ingress.group_senders")

            assert senders() == 2
            follow(controller, range(3))
            log.clear()
            await client.delete("groups/0")
            assert "RETIRE" in log
            assert "PERMIT" not in log
            follow(controller, range(2))
            await asyncio.sleep(0.3)
            assert senders() == 2, "one agent may send by its plan before"
            follow(controller, [2])
            await until(lambda: senders() == 0)
            assert log[-1] == "REVOKE"

    asyncio.run(main())


def test_an_agent_that_does_not_confirm_holds_nothing_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_steps, "LEFT_BEHIND_AFTER_S", 0.2)

    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            add_fabric(controller)
            for switch, session in list(controller.sessions.items()):
                controller.sessions[switch] = Session(session.spec, [])  # type: ignore[assignment]
            controller.agent_events.agent_registered("h0", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
            await client.put("guard", json={"on": True})
            session: Any = controller.sessions[SwitchId(0)]
            await until(lambda: session.admitted().get(0) == "ingress.admit_host")

    asyncio.run(main())


def test_agents_are_told_their_rate_before_switches_police_it_and_after_they_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also with the guard off, where they alone keep to it. No route goes through a host with a rate."""
    monkeypatch.setattr(route_steps, "LEFT_BEHIND_AFTER_S", 60.0)
    bps, rate = 5_000_000, 625_000

    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            add_fabric(controller)
            for switch, session in list(controller.sessions.items()):
                controller.sessions[switch] = Session(session.spec, [])  # type: ignore[assignment]
            for n in range(3):
                controller.agent_events.agent_registered(
                    f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0), revision=3
                )
            await controller.reconciler.settle()

            def told() -> list[int | None]:
                plans = [controller.agent_plans.issued.get(HostId(host)) for host in range(3)]
                return [decoded(plan.plan).rate_bytes or None for plan in plans if plan is not None]

            def policed() -> list[int | None]:
                states = [controller.sessions[switch].fake.state for switch in sorted(controller.sessions)]
                return [rate for state in states for rate in state.rates().values()]

            shown = (await client.put("hosts/1/rate", json={"bps": bps})).json()
            assert (shown["rate_bps"], shown["rate_kept_by"]) == (bps, ["agent"])
            assert (shown["transit"], shown["re_injects"]) == (True, False)
            assert (told(), policed()) == ([None, rate, None], [])
            follow(controller, range(3))
            await client.put("guard", json={"on": True})
            assert policed() == [], "nobody has confirmed"
            follow(controller, range(3))
            await until(lambda: policed() == [rate])
            await client.put("hosts/1/rate", json={"bps": 4 * bps})
            assert (told()[1], policed()) == (4 * rate, [4 * rate]), "more is let in first"
            follow(controller, range(3))
            await client.put("hosts/1/rate", json={"bps": bps})
            assert (told()[1], policed()) == (rate, [4 * rate])
            follow(controller, range(3))
            await until(lambda: policed() == [rate])
            shown = (await client.put("hosts/1/rate", json={"bps": None})).json()
            assert (shown["rate_kept_by"], shown["re_injects"]) == ([], shown["state"] == "up")
            assert (told(), policed()) == ([None, None, None], [])

    asyncio.run(main())
