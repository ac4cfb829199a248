"""Stages on their way to switches: who is waited for, who is not, and who is named."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from controller_lab.model import FakeSwitch
from controller_lab.running import until
from wormcast.network.ids import HostId, Mgid, SwitchId
from wormcast.p4rt import session as session_module
from wormcast.p4rt.artifacts import Artifacts, find_artifacts
from wormcast.p4rt.session import SwitchSession
from wormcast.p4rt.tables import Stage, Strayed, SwitchTables, split_batches
from wormcast.reconcile import bring_out
from wormcast.reconcile.bring_out import BringOut, Part, Waits
from wormcast.store.database import SwitchSpec
from wormcast_planner import MulticastGroup, Place, SwitchState, TableDefault, TableEntry, Update


class Spec:
    """A switch's id, as a session has it."""

    def __init__(self, switch: int) -> None:
        self.id = SwitchId(switch)


class Session:
    """The tables of a real session over a fake switch, which may stand still."""

    def __init__(self, switch: int, old: int, new: int) -> None:
        self.spec = Spec(switch)
        self.fake = FakeSwitch(tree(old))
        self.tables = SwitchTables()
        self.tables.found(self.fake.state.copy())
        self.tables.desire(tree(new), None)
        self.moving = asyncio.Event()
        self.moving.set()
        self.log: list[Stage] = []

    @property
    def in_step(self) -> bool:
        return self.tables.in_step

    def advance(self, stage: Stage) -> asyncio.Task[None]:
        return asyncio.create_task(self._write(stage))

    async def _write(self, stage: Stage) -> None:
        await self.moving.wait()
        for batch in split_batches(self.tables.due(stage)):
            for update in batch:
                self.fake.write(update)
            self.tables.executed(batch)
        if stage is Stage.RETIRE:
            self.tables.settle()
        self.log.append(stage)


def tree(port: int) -> SwitchState:
    """Group 1 leaves by two ports, one of which is the tree's."""
    state = SwitchState()
    state.put_group(MulticastGroup(0x4001, [(0, 1, []), (port, 1, [])]))
    state.put_entry(TableEntry("ingress.groups", [("group", 1)], "ingress.replicate", [("mgid", 0x4001)]))
    return state


def ports(session: Session) -> set[int]:
    (group,) = (group for group in session.fake.state.multicast() if group.mgid == Mgid(0x4001))
    return set(group.ports)


def with_parts(
    parts: list[list[int]],
    test: Callable[[dict[SwitchId, Session], BringOut, list[HostId], list[int]], Awaitable[None]],
) -> None:
    """Switch n has host n; trees change from port 1 to port 2."""

    async def main() -> None:
        sessions = {SwitchId(n): Session(n, 1, 2) for part in parts for n in part}
        told: list[HostId] = []
        slow: list[int] = []

        def publish(hosts: Iterable[HostId]) -> None:
            told.extend(sorted(hosts))

        bringing = BringOut(
            sessions,  # type: ignore[arg-type]
            [Part(frozenset(map(SwitchId, part)), frozenset(map(HostId, part))) for part in parts],
            publish,
            [HostId(n) for part in parts for n in part] + [HostId(99)],
            Waits(lambda switch, _: slow.append(switch)),
        )
        await test(sessions, bringing, told, slow)

    asyncio.run(main())


def test_no_switch_grows_before_all_of_its_part_have_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bring_out, "SLOW_AFTER_S", 0.05)

    async def test(
        sessions: dict[SwitchId, Session], bringing: BringOut, told: list[HostId], slow: list[int]
    ) -> None:
        still = sessions[SwitchId(1)]
        still.moving.clear()
        running = asyncio.create_task(bringing.run())
        await until(lambda: slow == [1])
        await asyncio.sleep(0.3)
        assert [ports(s) for s in sessions.values()] == [{0}, {0, 1}, {0}], "it waits, however long it takes"
        assert slow == [1], "named once"
        assert not set(told) & {0, 1, 2}
        still.moving.set()
        await asyncio.wait_for(running, 600.0)
        assert [ports(s) for s in sessions.values()] == [{0, 2}] * 3
        assert sorted(told) == [0, 1, 2, 99]

    with_parts([[0, 1, 2]], test)


def test_a_switch_that_stands_still_holds_up_its_own_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bring_out, "OTHERS_WAIT_S", 0.05)

    async def test(
        sessions: dict[SwitchId, Session], bringing: BringOut, told: list[HostId], _: list[int]
    ) -> None:
        sessions[SwitchId(2)].moving.clear()
        running = asyncio.create_task(bringing.run())
        await until(lambda: sorted(told) == [0, 1, 99])
        assert [ports(s) for s in sessions.values()] == [{0, 2}, {0, 2}, {0, 1}]
        running.cancel()
        await asyncio.wait({running})
        # The next plan has it in a part with the others: now they wait for it.
        sessions[SwitchId(2)].moving.set()
        await until(lambda: sessions[SwitchId(2)].log)

    with_parts([[0, 1], [2]], test)


def test_a_refused_update_is_held_back_and_named_with_its_group() -> None:
    tables = SwitchTables()
    tables.found(SwitchState())
    tables.desire(tree(1), None)
    group, entry = tables.due(Stage.RETIRE)
    assert isinstance(group.entity, MulticastGroup)
    refusal = tables.refuse(group, "no memory")
    assert str(refusal) == "insert of replication group 16385 of group 1: no memory"
    assert not tables.is_possible(entry), "its replication group is not there"
    assert tables.due(Stage.RETIRE) == []
    tables.settle()
    assert tables.in_step, "until it is time to try again"
    tables.found(SwitchState())
    assert [u.operation for u in tables.due(Stage.RETIRE)] == ["insert"] * 2


def test_what_was_refused_may_be_written_again_when_it_changes() -> None:
    tables = SwitchTables()
    tables.found(SwitchState())
    tables.desire(tree(1), None)
    update: Update = tables.due(Stage.GROW)[0]
    tables.refuse(update, "no memory")
    tables.desire(tree(2), [Place.group(0x4001)])
    assert tables.due(Stage.GROW)[0].place == Place.group(0x4001)


class Picky:
    """A switch that takes everything but one replication group."""

    p4info = None

    def __init__(self) -> None:
        self.tries: list[float] = []

    async def write(self, updates: list[Any]) -> None:
        for update in updates:
            if getattr(update, "multicast_group_id", None) == 0x4001:
                self.tries.append(time.monotonic())
                raise ValueError("no such group here")

    async def read(self, _: object) -> AsyncIterator[Any]:
        for entity in ():
            yield entity


class Watcher:
    """Hears what a session tells."""

    def __init__(self) -> None:
        self.refused: list[tuple[str, int | None]] = []
        self.again = asyncio.Event()

    def switch_refused(self, _: SwitchId, reason: str, group: int | None) -> None:
        self.refused.append((reason, group))

    def switch_strayed(self, switch: SwitchId, part: str, strayed: Strayed) -> None:
        raise AssertionError((switch, part, strayed))

    def switch_out_of_step(self, _: SwitchId) -> None:
        self.again.set()

    def switch_disconnected(self, _: SwitchId, __: str) -> None:
        pass


def test_what_a_switch_refuses_is_told_once_and_tried_again_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_module, "encode_update", _named)

    async def main() -> None:
        watcher, switch = Watcher(), Picky()
        spec = SwitchSpec(SwitchId(3), "127.0.0.1:1", 0, 8)
        session = SwitchSession(spec, find_artifacts(), 1, watcher)  # type: ignore[arg-type]
        session._switch, session.connected = switch, True
        session._refused_pause_s = 0.02
        wanted = tree(1)
        wanted.put_group(MulticastGroup(0x4002, [(0, 1, [])]))
        session.desire(wanted)
        for _ in range(4):
            watcher.again.clear()
            for stage in Stage:
                await session.advance(stage)
            held = [group.mgid for group in session.tables.actual.multicast()]
            assert held == [0x4002], "the others are written"
            await asyncio.wait_for(watcher.again.wait(), 600.0)
            # A pause that ends before the last stage does has all tried once more there: then the next one counts.
            while session.in_step:
                await asyncio.sleep(0.01)
        assert watcher.refused == [
            ("insert of replication group 16385 of group 1: ValueError: no such group here", 1)
        ]
        assert session._refused_pause_s >= 0.02 * 2**4
        await session.stop()

    asyncio.run(main())


def test_a_program_without_wormhole_mode_is_not_asked_for_it_and_not_told() -> None:
    """As that for Tofino."""

    async def main() -> None:
        asked: list[str] = []

        class Switch(Picky):
            async def read(self, wanted: Any) -> AsyncIterator[Any]:
                asked.extend(getattr(entity, "table_id", "") for entity in wanted)
                for entity in ():
                    yield entity

        found = find_artifacts()
        tofino = Artifacts(found.p4info.with_name("tofino.p4info.txtpb"), found.blob)
        spec = SwitchSpec(SwitchId(3), "127.0.0.1:1", 0, 8)
        session = SwitchSession(spec, tofino, 1, Watcher())  # type: ignore[arg-type]
        session._switch, session.connected = Switch(), True
        wanted = SwitchState()
        wanted.put_default(TableDefault("ingress.wormhole", "ingress.packet_mode", []))
        session.desire(wanted)
        await session._read_state()
        assert "ingress.tree_sets" in asked
        assert "ingress.wormhole" not in asked
        assert session.tables.due(Stage.REVOKE) == []
        await session.stop()

    asyncio.run(main())


def _named(update: Update) -> Any:
    mgid = update.entity.mgid if isinstance(update.entity, MulticastGroup) else None
    return SimpleNamespace(multicast_group_id=mgid)
