"""What comes from outside is bounded at the door: a bad message ends its own stream and nothing else."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from controller_lab.agents import TestAgent, attached
from controller_lab.announcing import encode_announcement
from controller_lab.running import running, take_for_up, until
from controller_lab.small import make_group
from wormcast.agentrpc import agent_pb2
from wormcast.decimal import read_decimal
from wormcast.directory.messages import TEXT_MAX
from wormcast.discovery.lldp import Announcement
from wormcast.network.ids import PortId, SwitchId
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.reconcile import supervise as supervise_module
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.planning import RETRY_FIRST_S
from wormcast.reconcile.supervise import supervise
from wormcast.store.database import EPOCH_REPORTED_MAX, Database, StoreError, SwitchSpec

GOOD = agent_pb2.Statistics(counters=[agent_pb2.Counter(name="heard", value=1)])


def with_agent(tmp_path: Path, test: Callable[[Controller, TestAgent, str], Awaitable[None]]) -> None:
    """Runs a test with a well-behaved agent attached, which must be served all the time."""

    async def main() -> None:
        address = f"unix:{tmp_path}/agents.sock"
        async with running(tmp_path / "state.db", (address,)) as controller:
            controller.put_switches([SwitchSpec(SwitchId(0), "127.0.0.1:40000", 0, 8)])
            take_for_up(controller, SwitchId(0))
            for port, name in enumerate(("good", "bad")):
                frame = encode_announcement(Announcement(name, b"\2\0\0\0\0\1", 100))
                controller.switch_events.packet_received(SwitchId(0), PortId(port), frame)
            async with attached(address, "good") as good:
                await until(lambda: good.plans)
                await test(controller, good, address)
                await good.send(statistics=GOOD)
                await until(
                    lambda: ("heard", 0) in controller.agents[controller.find_host("good").id].counters
                )
                group = make_group(controller.groups, "circuit", ("good",))
                await controller.announce_groups("group_created", [group], wait=True)
                await until(lambda: [g.id for g in good.plans[-1].groups] == [group.id])
                assert not good.ended.is_set()
                assert controller.task_failures == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("plan_epoch", (1 << 64) - 1),
        ("plan_epoch", (1 << 63) - 1),
        ("host_id", 65_535),
        ("host_id", (1 << 32) - 1),
        ("mac", b""),
        ("mac", b"x" * 1000),
        ("mtu", (1 << 32) - 1),
        ("version", "v" * 10_000),
        ("version", "1.0\x1b[2J"),
    ],
)
def test_a_registration_out_of_bounds_is_refused_and_nothing_else_happens(
    tmp_path: Path, field: str, value: object
) -> None:
    async def test(controller: Controller, _: TestAgent, address: str) -> None:
        epoch = controller.agent_plans.epoch
        for _again in range(3):
            async with attached(address, "bad", **{field: value}) as bad:
                await asyncio.wait_for(bad.ended.wait(), 600.0)
                assert bad.refusal is not None
                assert "possible:" in bad.refusal
        assert controller.directory.refused == 3
        assert controller.agent_plans.epoch == epoch
        assert [r.name for r in controller.hosts.records()] == ["good"]

    with_agent(tmp_path, test)
    assert Database(tmp_path / "state.db").agent_plan()[0] < time.time() + 1000


@pytest.mark.parametrize(
    "body",
    [
        {"register": agent_pb2.Register(name="bad", mac=b"\2\0\0\0\0\1")},
        {"plan_applied": agent_pb2.PlanApplied(epoch=(1 << 64) - 1)},
        {"member_report": agent_pb2.MemberReport(group=65_536, host=1)},
        {"member_report": agent_pb2.MemberReport(group=1, host=65_535)},
        {"member_report": agent_pb2.MemberReport(group=1, origin=(1 << 32) - 1)},
    ],
    ids=lambda body: next(iter(body)),
)
def test_a_message_that_no_agent_sends_ends_its_own_stream(
    tmp_path: Path, body: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def test(controller: Controller, _: TestAgent, address: str) -> None:
        with caplog.at_level(logging.WARNING, logger="wormcast.directory"):
            for _again in range(2):
                async with attached(address, "bad") as bad:
                    await until(lambda: bad.host is not None)
                    await bad.send(**body)
                    await asyncio.wait_for(bad.ended.wait(), 600.0)
        assert controller.directory.bad_messages == 2
        assert len([r for r in caplog.records if "bad message" in r.getMessage()]) == 1, "logged once"
        assert len(controller.events.history()) < 100

    with_agent(tmp_path, test)


@pytest.mark.parametrize(
    "message",
    [
        b"\xff" * 50,
        agent_pb2.AgentMessage(
            member_report=agent_pb2.MemberReport(reason="x" * (2 << 20))
        ).SerializeToString(),
    ],
    ids=["nonsense", "too long"],
)
def test_bytes_that_are_no_message_end_their_own_stream(tmp_path: Path, message: bytes) -> None:
    async def test(controller: Controller, _: TestAgent, address: str) -> None:
        async with grpc.aio.insecure_channel(address) as channel:
            call = channel.stream_stream("/wormcast.agent.v1.AgentDirectory/Attach")()
            register = agent_pb2.Register(name="bad", mac=b"\2\0\0\0\0\1", mtu=1500)
            await call.write(agent_pb2.AgentMessage(register=register).SerializeToString())
            await until(lambda: "bad" in [r.name for r in controller.hosts.records()])
            await call.write(message)
            await until(lambda: not controller.find_host("bad").attached)

    with_agent(tmp_path, test)


def test_long_texts_are_cut_and_odd_counters_dropped(tmp_path: Path) -> None:
    async def test(controller: Controller, good: TestAgent, _: str) -> None:
        await good.send(plan_applied=agent_pb2.PlanApplied(epoch=1, error="e" * 100_000))
        counters = [agent_pb2.Counter(name="c" * 1000), agent_pb2.Counter(name="c", group=1 << 31)]
        await good.send(statistics=agent_pb2.Statistics(counters=counters))
        status = controller.agents[controller.find_host("good").id]
        await until(lambda: status.counters_dropped == 2)
        assert len(status.error) == TEXT_MAX + 1
        refused = [e for e in controller.events.history() if e.kind == "plan_refused"]
        assert len(refused[-1].data["error"]) == TEXT_MAX + 1

    with_agent(tmp_path, test)


@pytest.mark.parametrize("epoch", [(1 << 63) - 1, (1 << 63) - 2, -5, "many"])
def test_a_stored_epoch_that_is_of_no_use_is_replaced(tmp_path: Path, epoch: object) -> None:
    path = tmp_path / "state.db"
    Database(path).close()
    with sqlite3.connect(path) as sql:
        sql.execute("UPDATE agent_plan SET epoch=?", (epoch,))
    sql.close()

    async def test(_: Controller, good: TestAgent, __: str) -> None:
        assert good.plans[-1].epoch < EPOCH_REPORTED_MAX

    with_agent(tmp_path, test)


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("INSERT INTO switches VALUES (1, 'a:1', 0, 1000000000000, 0)", "row 1 of table switches: ports is"),
        ("INSERT INTO switches VALUES (-1, 'a:1', 0, 8, 0)", "row -1 of table switches: id is -1"),
        ("INSERT INTO switches VALUES (1, x'ff', 0, 8, 0)", "address is b"),
        ("INSERT INTO links VALUES (0, 'x', 1, 2)", "a_port is 'x'; possible: 0 to 253"),
        (
            "INSERT INTO hosts VALUES (70000,'h',x'',0,'',1,0,NULL,NULL,1,'')",
            "id is 70000; possible: 0 to 65534",
        ),
        ("INSERT INTO hosts VALUES (1,'a b',x'',0,'',1,0,NULL,NULL,1,'')", "host name 'a b' is not valid"),
        ("INSERT INTO groups VALUES (1,'g','flood','[1]','{}',NULL,0)", "unknown scheme 'flood'"),
        ("INSERT INTO groups VALUES (1,'g','tree','[1','{}',NULL,0)", "row 1 of table groups"),
        ("INSERT INTO groups VALUES (1,'g','tree','[99999]','{}',NULL,0)", "a member is 99999"),
        ("INSERT INTO groups VALUES (1,'g','tree','[1]','{\"fan_out\": 99}',NULL,0)", "fan_out is 99"),
        ("INSERT INTO groups VALUES (1,'g','switch','[1]','{}',NULL,7)", "gather is 7; possible: 0 to 1"),
        ("INSERT INTO groups VALUES (1,'g','tree','[1]','{}',NULL,1)", "no messages that switches copy"),
        ("INSERT INTO settings VALUES ('gather_epochs', '99999999999')", "gather_epochs is 99999999999"),
        ("INSERT INTO class_d VALUES ('nowhere', 1)", "row nowhere of table class_d"),
        (
            "INSERT OR REPLACE INTO settings VALUES ('class_d', 'broad')",
            "no class D mode 'broad'; there are narrow, wide",
        ),
    ],
)
def test_a_state_file_that_says_what_cannot_be_is_refused_by_row(
    tmp_path: Path, statement: str, names: str
) -> None:
    path = tmp_path / "state.db"
    Database(path).close()
    with sqlite3.connect(path) as sql:
        sql.execute(statement)
    sql.close()
    with pytest.raises(StoreError) as refused:
        Controller(Database(path), find_artifacts())
    assert str(path) in str(refused.value)
    assert names in str(refused.value)


def test_a_task_that_fails_is_told_once_and_begins_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervise_module, "PAUSE_FIRST_S", 0.001)
    failures: list[str] = []
    runs = 0

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs < 4:
            raise OverflowError("too large")
        await asyncio.sleep(3600)

    async def main() -> None:
        task = asyncio.create_task(
            supervise("work", work, lambda name, error: failures.append(f"{name}: {error}"))
        )
        await until(lambda: runs == 4)
        task.cancel()

    asyncio.run(main())
    assert failures == ["work: too large"] * 3
    assert len([r for r in caplog.records if "task work failed" in r.getMessage()]) == 1


def test_a_plan_that_fails_is_told_once_and_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[float] = []

    async def test(controller: Controller, good: TestAgent, _: str) -> None:
        real = controller.planning._planner

        def fail(*_: Any, **__: Any) -> Any:
            tries.append(time.monotonic())
            raise ValueError("switch 0 has no place for group 7")

        monkeypatch.setattr(
            controller.planning,
            "_planner",
            SimpleNamespace(
                plan=fail,
                set_routing=real.set_routing,
                set_costs=real.set_costs,
                set_mtu_limits=real.set_mtu_limits,
                set_down=real.set_down,
                set_guard=real.set_guard,
                set_switching=real.set_switching,
            ),
        )
        group = make_group(controller.groups, "circuit", ("good",), id=7)
        await controller.announce_groups("group_created", [group], wait=True)
        # Ticks come four times a second; attempts after pauses that double.
        await until(lambda: len(tries) == 3)
        assert tries[1] - tries[0] > 0.99 * RETRY_FIRST_S
        assert tries[2] - tries[1] > 0.99 * 2 * RETRY_FIRST_S
        told = [e.data["error"] for e in controller.events.history() if e.kind == "plan_failed"]
        assert told == [
            "planning failed, the plan before stays in force: ValueError: switch 0 has no place for group 7"
        ]
        assert "group 7" in controller.planning.figures.last_error
        monkeypatch.setattr(controller.planning, "_planner", real)
        await until(lambda: [g.id for g in good.plans[-1].groups] == [7])
        assert controller.planning.figures.last_error == ""
        await controller.announce_groups("group_deleted", [controller.groups.delete(7)], wait=True)

    with_agent(tmp_path, test)
    assert len([r for r in caplog.records if "planning failed" in r.getMessage()]) == 1


@pytest.mark.parametrize("text", ["²", "٣", "1²", "", "-1", "+1", "1_0", " 1", "1" * 21, "1" * 5000])
def test_only_ascii_digits_make_a_number(text: str) -> None:
    assert read_decimal(text) is None


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("65535", 65535), (b"12", 12)])
def test_ascii_digits_make_a_number(text: str | bytes, number: int) -> None:
    assert read_decimal(text) == number
