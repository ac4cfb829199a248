"""Records of files sent: what the controller makes of reports, REST and the command, with agents over real gRPC."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from controller_lab.agents import TestAgent, attached
from controller_lab.running import rest, running, until
from controller_lab.serving import serving
from controller_lab.small import add_fabric
from wormcast.agentrpc import agent_pb2
from wormcast.cli.main import main
from wormcast.directory.messages import BadMessage
from wormcast.network.ids import HostId
from wormcast.reconcile.events import FREQUENT_MAX, HISTORY_MAX, EventLog
from wormcast.transfers import registry
from wormcast.transfers.registry import TRANSFERS_MAX, TransferRegistry

Json = dict[str, Any]
SENDER = HostId(0)
LIFE = (1 << 64) - 1
STABLE, FAILED, CANCELLED = (
    agent_pb2.TRANSFER_STABLE,
    agent_pb2.TRANSFER_FAILED,
    agent_pb2.TRANSFER_CANCELLED,
)


def report(number: int, state: int = STABLE, **fields: Any) -> Any:
    """Of a file that host 0 sends to hosts 1 and 2."""
    given = {
        "life": LIFE,
        "origin": 0,
        "group": 3,
        "group_name": "news",
        "scheme": "switch",
        "message": number - 1,
        "name": f"{number}.bin",
        "bytes": 1000,
        "began_ms": 1_800_000_000_123,
        "lasted_us": 1_500_000,
        "retransmissions": 0,
    }
    if state == STABLE:
        given["delivered"] = [1, 2]
    return agent_pb2.TransferReport(number=number, state=state, **{**given, **fields})


def count(begun: int, *under_way: Any, life: int = LIFE, unnamed: int = 0) -> Any:
    return agent_pb2.TransferCount(
        life=life, begun=begun, under_way=len(under_way) + unnamed, first=list(under_way)
    )


def naming(number: int, **fields: Any) -> Any:
    return report(number, agent_pb2.TRANSFER_UNDER_WAY, **fields)


class Kept:
    """A registry, and what it told."""

    def __init__(self) -> None:
        self.events = EventLog()
        self.registry = TransferRegistry(
            self.events, lambda _: [SENDER, HostId(1), HostId(2)], lambda _: True
        )

    def report(self, *reports: Any) -> None:
        for one in reports:
            self.registry.transfer_reported(SENDER, one)

    def count(self, *given: Any, **fields: Any) -> None:
        self.registry.transfers_counted(SENDER, count(*given, **fields))

    def states(self) -> list[tuple[int, str]]:
        return [(record.number, record.state) for record in self.registry]

    def told(self) -> list[tuple[int, str]]:
        events = self.events.history()
        assert {event.kind for event in events} <= {"transfer"}
        return [(event.data["transfer"], event.data["state"]) for event in events]


# -- what is made of reports --------------------------------------------------------


def test_one_that_is_under_way_keeps_its_number_when_it_ends() -> None:
    kept = Kept()
    kept.count(1, naming(1, lasted_us=700_000))
    assert kept.states() == [(1, "under_way")]
    assert kept.told() == []
    kept.count(2, naming(1, lasted_us=1_700_000), naming(2))
    (first, _) = kept.registry
    assert first.lasted_us == 1_700_000
    kept.report(report(2, CANCELLED, reason="its program gave it up"), report(1))
    assert kept.states() == [(1, "stable"), (2, "cancelled")]
    assert kept.told() == [(2, "cancelled"), (1, "stable")]
    kept.count(2)
    assert kept.states() == [(1, "stable"), (2, "cancelled")]
    assert kept.registry.missing() == 0


def test_nobody_counts_as_having_what_is_under_way_or_broke_off() -> None:
    kept = Kept()
    kept.count(1, naming(1, delivered=[1]))
    (record,) = kept.registry
    assert record.members() == [{"host": host, "state": "unknown", "reason": None} for host in (1, 2)]
    kept.count(0, life=7)
    assert kept.states() == [(1, "agent_gone")]
    assert [member["state"] for member in record.members()] == ["unknown", "unknown"]
    assert record.outcome()["unknown"] == 2
    assert kept.told() == [(1, "agent_gone")]
    assert kept.registry.missing() == 0


def test_one_whose_end_was_not_reported_is_said_to_be_so() -> None:
    kept = Kept()
    kept.count(3, naming(1), naming(3))
    kept.count(3, naming(3))
    assert kept.states() == [(1, "unknown"), (2, "under_way")]
    assert kept.told() == [(1, "unknown")]
    assert kept.registry.missing() == 0


def test_what_ended_and_was_not_reported_is_counted() -> None:
    kept = Kept()
    # Those before this controller started are not its own.
    kept.report(report(41))
    kept.count(41)
    assert kept.registry.missing() == 0
    kept.report(report(44))
    kept.count(50, unnamed=2)
    assert kept.registry.missing() == 6
    kept.count(50)
    assert kept.registry.missing() == 8
    # Another life begins anew, and what was missing stays so.
    kept.count(2, life=7)
    assert kept.registry.missing() == 8
    kept.count(3, life=7)
    assert kept.registry.missing() == 9


def test_the_last_ones_are_kept_and_those_under_way_with_them() -> None:
    kept = Kept()
    kept.count(1, naming(1))
    for number in range(2, TRANSFERS_MAX + 12):
        kept.report(report(number))
    states = kept.states()
    assert len(states) == TRANSFERS_MAX
    assert states[0] == (1, "under_way")
    assert [number for number, _ in states[1:]] == list(range(13, TRANSFERS_MAX + 12))
    assert kept.registry.ended["stable"] == TRANSFERS_MAX + 10
    assert kept.registry.bytes == 1000 * (TRANSFERS_MAX + 10)


def test_where_all_are_under_way_others_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "TRANSFERS_MAX", 2)
    kept = Kept()
    kept.count(0)
    kept.count(3, naming(1), naming(2), naming(3))
    assert kept.states() == [(1, "under_way"), (2, "under_way")]
    kept.report(report(3))
    kept.count(3, naming(1), naming(2))
    assert kept.registry.missing() == 1
    kept.report(report(1))
    kept.count(3, naming(2))
    assert kept.states() == [(1, "stable"), (2, "under_way")]
    assert kept.registry.missing() == 1


def test_transfers_do_not_push_other_events_out() -> None:
    events = EventLog()
    events.add("link_down", 1.0)
    for number in range(2 * HISTORY_MAX):
        events.add("transfer", 2.0, transfer=number)
    events.add("link_up", 3.0)
    kept = events.history()
    assert [kept[0].kind, kept[-1].kind] == ["link_down", "link_up"]
    assert len(kept) == FREQUENT_MAX + 2
    assert [event.number for event in kept] == sorted(event.number for event in kept)
    assert len(events.history(kept[-2].number)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        report(1, origin=1),
        report(1, group=65_536),
        report(1, delivered=[65_535]),
        report(1, delivered=[1] * 2049),
        report(1, missed=[agent_pb2.Missed(reason="x", hosts=[1 << 31])]),
        report(1, missed=[agent_pb2.Missed(reason="x")] * 2049),
    ],
)
def test_what_no_agent_reports_ends_its_stream(wrong: Any) -> None:
    kept = Kept()
    with pytest.raises(BadMessage):
        kept.report(wrong)
    wrong.state = agent_pb2.TRANSFER_UNDER_WAY
    with pytest.raises(BadMessage):
        kept.count(1, wrong)
    with pytest.raises(BadMessage, match="2 of 1 files"):
        kept.count(1, unnamed=2)
    assert kept.states() == []


def test_texts_and_times_of_agents_are_fit_to_be_shown() -> None:
    kept = Kept()
    kept.report(report(1, name="a\n\x1b[31m" + "x" * 5000, began_ms=(1 << 64) - 1, reason="y" * 5000))
    (record,) = kept.registry
    shown = record.to_json(connected=True)
    assert shown["name"].startswith("a__[31mxxx")
    assert (len(shown["name"]), len(shown["reason"])) == (200, 1001)
    assert shown["began"] == "9999-12-31T23:59:59.999Z"


# -- REST and the command -----------------------------------------------------------


def with_agent(tmp_path: Path, test: Callable[[httpx.AsyncClient, Json, TestAgent], Awaitable[None]]) -> None:
    """A group of three hosts, of which the first has an agent."""

    async def run() -> None:
        address = f"unix:{tmp_path}/agents.sock"
        async with running(agents=(address,)) as controller, rest(controller) as client:
            add_fabric(controller)
            async with attached(address, "h0") as agent:
                await until(lambda: agent.host is not None)
                body = {"id": 3, "name": "news", "scheme": "switch", "members": [0, 1, 2]}
                group = (await client.post("groups?wait=false", json=body)).json()
                await test(client, group, agent)

    asyncio.run(run())


async def listed(client: httpx.AsyncClient, expected: list[int], query: str = "") -> list[Json]:
    """Transfers, once these are there: reports come when they come."""
    async with asyncio.timeout(600):
        while True:
            shown: list[Json] = (await client.get(f"transfers{query}")).json()["transfers"]
            if [one["number"] for one in shown] == expected:
                return shown
            await asyncio.sleep(0.02)


def test_rest_shows_what_agents_report(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, group: Json, agent: TestAgent) -> None:
        assert (await client.get("transfers")).json() == {"transfers": [], "not_recorded": 0}
        missed = [
            agent_pb2.Missed(reason="no space left on device", hosts=[1]),
            agent_pb2.Missed(reason="away since noon", left_out=True, hosts=[2]),
        ]
        await agent.send(transfer_report=report(1, FAILED, missed=missed, bytes=None, retransmissions=None))
        await agent.send(transfer_report=report(3, delivered=[2, 1], group=4, group_name=""))
        await agent.send(statistics=agent_pb2.Statistics(transfers=count(4, naming(4))))
        failed, stable, under_way = await listed(client, [1, 2, 3])
        assert failed == {
            "number": 1,
            "state": "failed",
            "origin": 0,
            "group": 3,
            "group_name": "news",
            "name": "1.bin",
            "bytes": None,
            "seconds": 1.5,
            "delivered": 0,
            "failed": 1,
            "left_out": 1,
            "unknown": 0,
            "reason": None,
            "message": 0,
            "scheme": "switch",
            "began": "2027-01-15T08:00:00.123Z",
            "retransmissions": None,
            "agent_connected": None,
        }
        assert (stable["state"], stable["delivered"], stable["failed"]) == ("stable", 2, 0)
        assert (under_way["state"], under_way["agent_connected"]) == ("under_way", True)
        assert under_way["unknown"] == len(group["members"]) - 1
        one = (await client.get("transfers/1")).json()
        assert one.pop("members") == [
            {"host": 1, "state": "failed", "reason": "no space left on device"},
            {"host": 2, "state": "left_out", "reason": "away since noon"},
        ]
        assert one == failed
        assert [m["host"] for m in (await client.get("transfers/2")).json()["members"]] == [1, 2]
        # File 2 has ended, and nothing came of it; the first word of an agent counts for what was before.
        await agent.send(statistics=agent_pb2.Statistics(transfers=count(6, naming(4))))
        async with asyncio.timeout(600):
            while (await client.get("transfers")).json()["not_recorded"] != 2:
                await asyncio.sleep(0.02)
        for query, expected in (
            ("?after=1", [2, 3]),
            ("?group=news", [1, 3]),
            ("?group=3&after=1", [3]),
            ("?group=4", [2]),
            ("?origin=h0", [1, 2, 3]),
            ("?origin=0&group=4", [2]),
            ("?origin=2", []),
        ):
            await listed(client, expected, query)
        kept = (await client.get("events?follow=false")).json()["events"]
        told = [event for event in kept if event["kind"] == "transfer"]
        assert [(e["transfer"], e["state"], e["delivered"]) for e in told] == [
            (1, "failed", 0),
            (2, "stable", 2),
        ]
        page = (await client.get("metrics")).text
        for line in (
            'wormcast_transfers_total{state="failed"} 1',
            'wormcast_transfers_total{state="stable"} 1',
            "wormcast_transfers_not_recorded 2",
            "wormcast_transfer_bytes_total 1000",
            "wormcast_transfer_failed_members_total 1",
        ):
            assert line in page.splitlines()

    with_agent(tmp_path, test)


def test_wrong_questions_name_what_there_is(tmp_path: Path) -> None:
    async def test(client: httpx.AsyncClient, _: Json, agent: TestAgent) -> None:
        await agent.send(transfer_report=report(1, group=9, group_name="old"))
        await listed(client, [1])
        for path, status, choices in (
            ("transfers/7", 404, [1]),
            ("transfers?group=nws", 404, ["news"]),
            ("transfers?group=12", 404, [3]),
            ("transfers?origin=h9", 404, ["h0", "h1", "h2"]),
        ):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["error"]["choices"]) == (status, choices)
        for path in ("transfers?after=-1", "transfers?after=x", "transfers/x", "transfers/-1"):
            assert (await client.get(path)).status_code == 422
        # A group that is gone is known by what was sent to it.
        assert len((await client.get("transfers?group=old")).json()["transfers"]) == 1

    with_agent(tmp_path, test)


def test_an_agent_that_is_away_is_said_to_be_and_one_that_starts_anew_ended_it(tmp_path: Path) -> None:
    async def run() -> None:
        address = f"unix:{tmp_path}/agents.sock"
        async with running(agents=(address,)) as controller, rest(controller) as client:
            add_fabric(controller)
            for life in (1, 2):
                async with attached(address, "h0") as agent:
                    await until(lambda agent=agent: agent.host is not None)
                    given = count(1, naming(1, life=1), life=1) if life == 1 else count(0, life=2)
                    await agent.send(statistics=agent_pb2.Statistics(transfers=given))
                    expected = ["under_way", "agent_gone"][life - 1]
                    await until(lambda state=expected: [r.state for r in controller.transfers] == [state])
                await until(lambda: not controller.directory.attached())
                (shown,) = await listed(client, [1])
                if life == 1:
                    assert shown["state"] == "under_way", "silence is no failure"
                    assert shown["agent_connected"] is False
            assert shown["reason"].startswith("the agent has started anew")

    asyncio.run(run())


def with_command(
    tmp_path: Path, test: Callable[[Callable[..., str], TestAgent, TransferRegistry], Awaitable[None]]
) -> None:
    """The command, against a controller that serves; it is run in threads of its own."""
    api = f"unix:{tmp_path}/rest.sock"

    def run(*words: str) -> str:
        done = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["transfers", *words, "--api", api])
        assert done.exit_code == 0, done.output
        return done.stdout

    async def begin() -> None:
        address = f"unix:{tmp_path}/agents.sock"
        async with running(agents=(address,)) as controller, serving(controller, tmp_path / "rest.sock"):
            add_fabric(controller)
            async with attached(address, "h0") as agent:
                await until(lambda: agent.host is not None)
                await test(run, agent, controller.transfers)

    asyncio.run(begin())


def test_the_command_lists_transfers_and_shows_one(tmp_path: Path) -> None:
    async def test(run: Callable[..., str], agent: TestAgent, kept: TransferRegistry) -> None:
        assert (await asyncio.to_thread(run)).startswith("0 transfers")
        missed = [agent_pb2.Missed(reason="no space left on device", hosts=[2])]
        await agent.send(transfer_report=report(1, delivered=[1], missed=missed, bytes=67_108_864))
        await agent.send(transfer_report=report(2, CANCELLED, reason="its program gave it up", group=4))
        await agent.send(statistics=agent_pb2.Statistics(transfers=count(4, naming(4))))
        await until(lambda: len(list(kept)) == 3)
        await agent.send(statistics=agent_pb2.Statistics(transfers=count(5, naming(4))))
        await until(lambda: kept.missing())
        text = await asyncio.to_thread(run)
        first, second, third = (line for line in text.splitlines() if ".bin" in line)
        for word in (
            "2027-01-15 08:00:00",
            "1.bin",
            "67,108,864",
            "news",
            "1.50",
            "1 of 2 have it, 1 failed",
        ):
            assert word in first
        assert "cancelled, nobody has it" in second
        assert "under way" in third
        assert text.splitlines()[-1] == "1 other file ended and not recorded"
        one = await asyncio.to_thread(run, "1")
        assert (
            "transfer 1: 1.bin (67,108,864 bytes) from host 0 to group 3 (news): 1 of 2 have it, 1 failed"
            in one
        )
        assert [line.split() for line in one.splitlines() if line.startswith("2")] == [
            ["2", "failed", "no", "space", "left", "on", "device"]
        ]
        assert "cancelled: its program gave it up" in await asyncio.to_thread(run, "2")
        shown = json.loads(await asyncio.to_thread(run, "--json", "--group", "4", "--origin", "h0"))
        assert [one["number"] for one in shown["transfers"]] == [2]
        assert json.loads(await asyncio.to_thread(run, "1", "--json"))["members"][0]["host"] == 1

    with_command(tmp_path, test)


@pytest.mark.parametrize("form", [["--json"], []], ids=["json", "text"])
def test_the_command_follows_those_that_are_asked_for(tmp_path: Path, form: list[str]) -> None:
    async def test(_: Callable[..., str], agent: TestAgent, kept: TransferRegistry) -> None:
        await agent.send(transfer_report=report(1))
        await until(lambda: len(list(kept)) == 1)
        words = ["--follow", "--group", "news", "--origin", "h0", *form]
        argv = [sys.executable, "-m", "wormcast.cli.main", "transfers", *words, "--api"]
        follower = await asyncio.create_subprocess_exec(
            *argv, f"unix:{tmp_path}/rest.sock", stdout=asyncio.subprocess.PIPE
        )
        assert follower.stdout is not None
        try:
            number, line = 1, b""
            reading = asyncio.create_task(follower.stdout.readline())
            # It begins to follow when it does.
            while not reading.done():
                number += 1
                await agent.send(transfer_report=report(number, group=3 + number % 2, group_name=""))
                await agent.send(transfer_report=report(10_000 + number))
                await asyncio.sleep(0.05)
            line = await reading
            if not form:
                expected = r"[\d:]{8} transfer \d+: \d+\.bin \(1,000 bytes\) from host 0 to group 3 \(news\): 2 of 2 have it, after 1\.50 s\n"
                assert re.fullmatch(expected, line.decode()), line
                return
            told = json.loads(line)
            assert (told["kind"], told["group"], told["group_name"]) == ("transfer", 3, "news")
            assert (told["state"], told["delivered"], told["transfer"] > 1) == ("stable", 2, True)
        finally:
            follower.kill()
            await follower.wait()

    with_command(tmp_path, test)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["0"], 2, "0"),
        (["1", "--follow"], 2, "NUMBER names one transfer"),
        (["1", "--group", "x"], 2, "NUMBER names one transfer"),
        (["--api", "unix:/nowhere"], 69, "no controller at unix:/nowhere"),
    ],
)
def test_wrong_use_of_the_command_is_refused(words: list[str], code: int, text: str) -> None:
    done = CliRunner().invoke(main, ["transfers", *words])
    assert text in done.stderr
    assert done.exit_code == code, done.stderr
