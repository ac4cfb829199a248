"""Groups whose ACKs switches gather: over REST, in the state file, and epochs that never come twice."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from controller_lab.plans import decoded
from controller_lab.small import all_take_part, with_rest
from test_planner_binding import EVERYONE, NETWORK, group, plan
from wormcast.cli import group as group_commands
from wormcast.gather import AT_ONCE, GatherEpochs
from wormcast.network.groups import COPIED, SCHEMES, Group, GroupError
from wormcast.network.ids import Epoch, HostId
from wormcast.reconcile.controller import Controller
from wormcast.store.database import GATHER_EPOCHS_END, Database, StoreError
from wormcast_planner import ClassDNumbers, Planner

GATHERED = replace(group(7, "switch", 0, 3, 17), gather=True)


def test_agents_are_told_and_switches_have_entries() -> None:
    state = plan(Planner("osud"), [GATHERED, group(8, "switch", 0, 3)])
    told = state.agents[HostId(3)].groups
    assert told[0].gathered is not None
    epoch, origins = told[0].gathered
    places = {host.id: host.switch for host in NETWORK.hosts}
    assert origins == [(host, 0xF000 + places[HostId(host)]) for host in (0, 3, 17)]
    assert told[1].gathered is None
    entries = [e for s in state.switches.values() for e in s.entries() if e.table == "ingress.gather"]
    assert {dict(e.parameters)["epoch"] for e in entries} == {epoch}
    assert {dict(e.match)["group"] for e in entries} == {7}
    assert {e.action for e in entries} == {"ingress.gather_branch"}
    assert (state.by_hosts_count, state.by_hosts_of(7)) == (0, {})
    gathers, plain = decoded(state.agents[HostId(3)]).groups
    assert gathers.gathered.epoch == epoch
    assert [(one.host, one.source) for one in gathers.gathered.origins] == origins
    assert not plain.HasField("gathered")


def test_whom_no_switch_gathers_for_is_named() -> None:
    planner = Planner("osud")
    planner.set_gather_epochs(5, 5)
    state = plan(planner, [GATHERED])
    assert state.by_hosts_of(7).keys() == {0, 3, 17}
    assert state.by_hosts_of(8) == {}
    assert "no number is left" in state.by_hosts_of(7)[HostId(3)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_hosts_that_copy_have_no_acks_to_gather(scheme: str) -> None:
    if scheme in COPIED:
        assert replace(group(7, scheme, 0, 3), gather=True).gather
        return
    with pytest.raises(GroupError) as refused:
        replace(group(7, scheme, 0, 3), gather=True)
    assert refused.value.choices == list(COPIED)


def test_a_group_that_gathers_is_made_shown_changed_and_kept() -> None:
    async def test(client: httpx.AsyncClient, controller: Controller) -> None:
        for n in range(3):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        plain = (await client.post("groups", json={"scheme": "switch", "members": [0, 1]})).json()
        assert (plain["gather"], plain["gathered"]) == (False, None)
        body = {"name": "gathers", "scheme": "switch", "members": [0, 1], "gather": True}
        made = (await client.post("groups", json=body)).json()
        assert made["gather"] is True
        await all_take_part(client, made["id"])
        first = (await client.get("groups/gathers")).json()["gathered"]
        assert first["origins"] == [0, 1]
        assert first["by_hosts"] == []
        await client.post("groups/gathers/members", json={"members": [2]})
        await all_take_part(client, made["id"])
        second = (await client.get("groups/gathers")).json()["gathered"]
        assert second["origins"] == [0, 1, 2]
        assert second["epoch"] > first["epoch"]
        assert [one.gather for one in controller._database.groups()] == [False, True]
        assert second["epoch"] < controller._database.gather_epochs()
        metrics = (await client.get("metrics")).text
        assert "gather_shortfalls 0" in metrics
        wrong = await client.post("groups", json={"scheme": "circuit", "members": [0], "gather": True})
        assert wrong.status_code == 422
        assert wrong.json()["error"]["choices"] == list(COPIED)
        wrong = await client.post("groups", json={"members": [0], "gather": "perhaps"})
        assert wrong.status_code == 422
        assert "gather" in wrong.text

    with_rest(test)


def test_the_command_tells_how_many_origins_are_gathered(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "switch 4 would gather 17 branches; at most 16"
    group_commands._show_gathered(
        {"epoch": 3, "origins": [0, 1, 2], "by_hosts": [{"host": 9, "reason": reason}]}
    )
    shown = capsys.readouterr().out
    assert "switches gather the ACKs for 3 of 4 origins" in shown
    assert reason in shown
    help_text = CliRunner().invoke(group_commands.create, ["--help"]).output
    assert "--gather" in help_text


def test_state_files_of_older_schemas_are_taken_over(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    database = Database(state)
    database.change_groups([group(7, "switch", 0, 3)], [], None)
    database.close()
    with contextlib.closing(sqlite3.connect(state)) as sql:
        sql.executescript("ALTER TABLE groups DROP COLUMN gather; PRAGMA user_version=2;")
    database = Database(state)
    assert [one.gather for one in database.groups()] == [False]
    database.change_groups([GATHERED], [], None)
    database.close()
    database = Database(state)
    assert [one.gather for one in database.groups()] == [True]
    assert database.gather_epochs() == 0
    database.close()


class Lives:
    """A controller that starts again and again, with the epochs that its plans take."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.taken: list[int] = []

    def live(self, plans: Iterable[Group], epoch: int = 1000) -> None:
        """One life with these plans of the group."""
        database = Database(self.state)
        planner = Planner("osud")
        epochs = GatherEpochs(database, planner, Epoch(epoch))
        for wanted in plans:
            epochs.allow()
            told = plan(planner, [wanted]).agents[HostId(0)].groups[0].gathered
            assert told is not None
            self.taken.append(told[0])
        database.close()


def test_no_epoch_comes_twice_in_all_lives_of_a_controller(tmp_path: Path) -> None:
    lives = Lives(tmp_path / "state.db")
    others = replace(GATHERED, members=tuple(map(HostId, (0, 3))))
    for _ in range(3):
        lives.live([GATHERED, others] * AT_ONCE)
    assert lives.taken == sorted(set(lives.taken))
    assert lives.taken[0] == 1000
    # What an earlier life left over is not used: nobody knows whether it was.
    assert lives.taken[2 * AT_ONCE] == 1000 + 2 * AT_ONCE
    lives.live([GATHERED])
    assert lives.taken[-1] == lives.taken[-2] + 1


def test_an_epoch_that_cannot_be_kept_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    database, planner = Database(None), Planner("osud")
    epochs = GatherEpochs(database, planner, Epoch(1000))
    put = Database.put_gather_epochs

    def fail(self: Database, end: int) -> None:
        raise StoreError(f"{self}: no room for {end}")

    monkeypatch.setattr(Database, "put_gather_epochs", fail)
    epochs.allow()
    state = plan(planner, [GATHERED])
    assert state.agents[HostId(0)].groups[0].gathered is None
    assert state.by_hosts_count == 3
    monkeypatch.setattr(Database, "put_gather_epochs", put)
    epochs.allow()
    state = plan(planner, [GATHERED])
    assert state.agents[HostId(0)].groups[0].gathered is not None
    assert state.by_hosts_count == 0


def test_after_a_lost_state_file_epochs_go_on_well_beyond_those_of_agents() -> None:
    database, planner = Database(None), Planner("osud")
    epochs = GatherEpochs(database, planner, Epoch(1000))
    for epoch, least in ((Epoch(1000), 1000), (Epoch(5000), 5000 + (1 << 16))):
        if epoch > 1000:
            epochs.supersede(epoch)
        epochs.allow()
        told = plan(planner, [GATHERED]).agents[HostId(0)].groups[0].gathered
        assert told is not None
        assert told[0] == least
    # One that no honest controller can have reached changes nothing.
    epochs.supersede(Epoch(1 << 40))
    epochs.allow()
    assert planner.next_gather_epoch < GATHER_EPOCHS_END


def test_the_last_epoch_is_the_last() -> None:
    database, planner = Database(None), Planner("osud")
    epochs = GatherEpochs(database, planner, Epoch(GATHER_EPOCHS_END - 1))
    others = replace(GATHERED, members=tuple(map(HostId, (0, 3))))
    found = []
    for wanted in (GATHERED, others):
        epochs.allow()
        state = planner.plan(NETWORK, NETWORK, [wanted], EVERYONE, EVERYONE, {}, ClassDNumbers())
        found.append(state.agents[HostId(0)].groups[0].gathered)
    assert found[0] is not None
    assert found[0][0] == GATHER_EPOCHS_END - 1
    assert found[1] is None
