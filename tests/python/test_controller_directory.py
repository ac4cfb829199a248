"""Agents over real gRPC: ids, plans and their epochs, reports, refusals, restarts of the controller."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from controller_lab.agents import TestAgent, attached
from controller_lab.announcing import encode_announcement
from controller_lab.running import NEVER_S, running, take_for_up, until
from controller_lab.small import make_group
from wormcast.agentrpc import agent_pb2
from wormcast.api.plan_requests import group_request
from wormcast.directory import server
from wormcast.directory.server import AgentDirectory, DirectoryError
from wormcast.discovery.lldp import Announcement
from wormcast.network.ids import HostId, PortId, SwitchId
from wormcast.network.topology import Link
from wormcast.reconcile import agent_events
from wormcast.reconcile.controller import Controller
from wormcast.sockets import CannotListen, claim_path
from wormcast.store.database import Database, StoreError, SwitchSpec


def add_switches(controller: Controller, count: int = 2) -> None:
    """Switches in a row, taken for up; no server answers for them."""
    for n in range(count):
        controller.put_switches([SwitchSpec(SwitchId(n), f"127.0.0.1:{40000 + n}", 0, 8)])
        take_for_up(controller, SwitchId(n))
        if n:
            controller.monitor.restore_link(Link(SwitchId(n - 1), PortId(7), SwitchId(n), PortId(6)))


def announce(controller: Controller, name: str, switch: int, port: int, ttl_s: int = 100) -> None:
    """What the switch sends up when the agent's LLDP frame comes in."""
    frame = encode_announcement(Announcement(name, b"\2\0\0\0\0\1", ttl_s))
    controller.switch_events.packet_received(SwitchId(switch), PortId(port), frame)


def with_agents(
    tmp_path: Path,
    count: int,
    test: Callable[[Controller, list[TestAgent], str], Awaitable[None]],
    gone_after_s: float = NEVER_S,
) -> None:
    """Runs a test with agents a0, a1, … attached, one on each switch in turn."""

    async def main() -> None:
        address = f"unix:{tmp_path}/agents.sock"
        async with running(tmp_path / "state.db", (address,), gone_after_s) as controller:
            add_switches(controller)
            async with contextlib.AsyncExitStack() as stack:
                agents = []
                for n in range(count):
                    announce(controller, f"a{n}", n % 2, n // 2)
                    agents.append(await stack.enter_async_context(attached(address, f"a{n}")))
                    await until(lambda: agents[-1].host is not None)
                await controller.reconciler.settle()
                await until(
                    lambda: all(a.plans and a.plans[-1].epoch == controller.agent_plans.epoch for a in agents)
                )
                await test(controller, agents, address)

    asyncio.run(main())


def groups_of_plan(plan: Any) -> dict[int, list[int]]:
    return {g.id: list(g.members) for g in plan.groups}


def groups_of(agent: TestAgent) -> dict[int, list[int]]:
    return groups_of_plan(agent.plans[-1])


def test_agents_get_ids_and_plans_and_every_change_of_them(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], _: str) -> None:
        assert [agent.host for agent in agents] == [0, 1, 2]
        routes = {r.host: list(r.ports) for r in agents[0].plans[-1].routes}
        assert routes == {1: [7, 0], 2: [1]}
        before = agents[0].plans[-1].epoch
        group = make_group(controller.groups, "tree", ("a0", 1, 2), parameters={"fan_out": 1})
        await controller.announce_groups("group_created", [group], wait=True)
        await until(lambda: all(groups_of(a) == {group.id: [0, 1, 2]} for a in agents))
        assert {a.plans[-1].epoch for a in agents} == {before + 1}
        edges = [(e.parent, e.child) for e in agents[0].plans[-1].groups[0].structures[0].tree_edges]
        assert edges == [(0, 2), (2, 1)] or edges == [(0, 1), (1, 2)]
        await agents[1].send(plan_applied=agent_pb2.PlanApplied(epoch=before + 1))
        await until(lambda: controller.agents[1].epoch == before + 1)  # type: ignore[index]
        await controller.announce_groups("group_deleted", [controller.groups.delete(group.id)], wait=True)
        await until(lambda: all(groups_of(a) == {} for a in agents))
        assert agents[0].plans[-1].epoch == before + 2

    with_agents(tmp_path, 3, test)


def test_agents_are_told_which_circuits_return(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], _: str) -> None:
        for parameters, told in (({}, "omit-last"), ({"variant": "return"}, "return")):
            group = make_group(controller.groups, "circuit", (0, 1, 2), parameters=parameters)
            await controller.announce_groups("group_created", [group], wait=True)
            await until(lambda id=group.id: all(id in groups_of(a) for a in agents))
            groups = {one.id: one for agent in agents for one in agent.plans[-1].groups}
            assert [one.variant for one in groups[group.id].structures] == [told]
            planned = group_request(controller, group, HostId(0), group.members)
            assert planned["parameters"].get("variant", "omit-last") == told

    with_agents(tmp_path, 3, test)


def test_nothing_changed_means_no_new_epoch(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], _: str) -> None:
        epoch = controller.agent_plans.epoch
        await until(lambda: agents[0].plans[-1].epoch == epoch)
        count = len(agents[0].plans)
        for _again in range(3):
            announce(controller, "a0", 0, 0)
            await controller.reconciler.settle()
        controller.declare_host("plain", 0, 5, 50)
        await until(lambda: agents[0].plans[-1].epoch == epoch + 1)
        epoch, count = controller.agent_plans.epoch, count + 1
        group = make_group(controller.groups, "switch", ("plain",), class_d="239.0.0.1")
        await controller.announce_groups("group_created", [group], wait=True)
        assert controller.planning.state.switches[SwitchId(0)].multicast, "the switches know the group"
        await asyncio.sleep(0.1)
        assert controller.agent_plans.epoch == epoch
        assert len(agents[0].plans) == count

    with_agents(tmp_path, 2, test)


def test_an_agent_that_goes_is_left_out_until_it_is_back(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], address: str) -> None:
        group = make_group(controller.groups, "circuit", (0, 1))
        async with attached(address, "late", host_id=9) as late:
            announce(controller, "late", 1, 5)
            await until(lambda: late.host == 9)
            await controller.announce_groups(
                "group_changed", [controller.groups.add(group.id, [9])], wait=True
            )
            await until(lambda: groups_of(agents[0]) == {group.id: [0, 1, 9]})
        await until(lambda: controller.find_host(9).attached is False)
        await controller.reconciler.settle()
        assert groups_of(agents[0]) == {group.id: [0, 1, 9]}, "it may be back in a moment"
        await until(lambda: groups_of(agents[0]) == {group.id: [0, 1]})
        assert controller.groups.get(group.id).members == (0, 1, 9), "it stays a configured member"
        async with attached(address, "late") as late:
            await until(lambda: groups_of(agents[0]) == {group.id: [0, 1, 9]})
            assert late.host == 9, "it has the id it had"
            assert all(groups_of_plan(plan) == {group.id: [0, 1, 9]} for plan in late.plans), (
                "no plan took it out of the group that it is a member of"
            )

    with_agents(tmp_path, 2, test, gone_after_s=1.0)


def test_a_host_its_neighbour_reports_silent_stays_a_member_until_it_is_gone(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], _: str) -> None:
        group = make_group(controller.groups, "circuit", (0, 1, 2))
        await controller.announce_groups("group_created", [group], wait=True)
        await until(lambda: groups_of(agents[1]) == {group.id: [0, 1, 2]})
        report = agent_pb2.MemberReport(group=group.id, origin=0, host=1, reason="no space left on device")
        await agents[0].send(member_report=report)
        report = agent_pb2.MemberReport(group=99, origin=0, host=1, reason="silent", host_dead=True)
        await agents[0].send(member_report=report)
        report = agent_pb2.MemberReport(group=group.id, origin=0, host=2, reason="silent", host_dead=True)
        await agents[0].send(member_report=report)
        record = controller.find_host(2)
        await until(lambda: record.silent == "reported by host 0: silent")
        assert controller.find_host(1).silent == "", "its neighbour shares no group 99 with it"
        await controller.reconciler.settle()
        assert groups_of(agents[0]) == {group.id: [0, 1, 2]}, "silence is a suspicion"
        await until(lambda: groups_of(agents[0]) == {group.id: [0, 1]})
        assert groups_of(agents[2]) == {group.id: [0, 1, 2]}, "nothing that it sends is ended"
        announce(controller, "a2", 0, 1)
        assert record.silent == ""
        await until(lambda: groups_of(agents[0]) == {group.id: [0, 1, 2]})
        assert not agents[2].ended.is_set()

    with_agents(tmp_path, 3, test, gone_after_s=1.0)


def test_statistics_are_kept_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_events, "COUNTERS_MAX", 3)

    async def test(controller: Controller, agents: list[TestAgent], _: str) -> None:
        counters = [agent_pb2.Counter(name=f"c{n}", group=1, value=n) for n in range(5)]
        await agents[0].send(statistics=agent_pb2.Statistics(counters=counters))
        status = controller.agents[controller.find_host(0).id]
        await until(lambda: status.counters_dropped == 2)
        assert status.counters == {("c0", 1): 0, ("c1", 1): 1, ("c2", 1): 2}

    with_agents(tmp_path, 1, test)


def test_conflicts_are_refused_with_a_way_out(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], address: str) -> None:
        async with attached(address, "other", host_id=0) as other:
            await asyncio.wait_for(other.ended.wait(), 600.0)
            assert other.refusal == (
                "host id 0 belongs to 'a0'; the lowest free one is 2; value 0, possible: a free host id"
            )
        async with attached(address, "bad name!") as bad:
            await asyncio.wait_for(bad.ended.wait(), 600.0)
            assert bad.refusal is not None
            assert "possible: 1 to 200 letters" in bad.refusal
        async with attached(address, "a0") as newer:
            await asyncio.wait_for(agents[0].ended.wait(), 600.0)
            assert agents[0].refusal == "replaced: another agent registered under the same name"
            await until(lambda: newer.host == 0)
            await until(lambda: newer.plans)
        assert controller.directory.refused == 2
        assert not agents[1].ended.is_set()

    with_agents(tmp_path, 2, test)


def test_streams_that_do_not_register_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(controller: Controller, _: list[TestAgent], address: str) -> None:
        monkeypatch.setattr(server, "REGISTER_TIMEOUT_S", 0.2)
        async with attached(address, None) as mute:
            await asyncio.wait_for(mute.ended.wait(), 600.0)
        assert controller.find_host(0).attached

    with_agents(tmp_path, 1, test)


def test_a_restart_ends_in_the_same_plan_and_epoch(tmp_path: Path) -> None:
    address, state = f"unix:{tmp_path}/agents.sock", tmp_path / "state.db"

    async def main() -> None:
        async with running(state, (address,)) as first:
            add_switches(first)
            first.declare_host("plain", 0, 4, 40)
            for n in range(2):
                announce(first, f"a{n}", n, 0)
            async with attached(address, "a0") as one, attached(address, "a1") as two:
                await until(lambda: one.host == 0 and two.host == 1)
                group = make_group(first.groups, "k-binomial", (0, 1, 40), class_d="239.0.0.1")
                await first.announce_groups("group_created", [group], wait=True)
                await until(lambda: one.plans and groups_of(one) == {group.id: [0, 1]})
                plan, states = one.plans[-1], first.planning.state.switches
        async with running(state, (address,), gone_after_s=1.0) as second:
            assert second.agent_plans.epoch == plan.epoch
            assert second.planning.state.switches == states, "no table would be touched"
            assert (second.find_host("a1").mac, second.find_host("a1").mtu_bytes) == (b"\2\0\0\0\0\1", 1500)
            async with attached(address, "a0", plan_epoch=plan.epoch) as one, attached(address, "a1"):
                await until(lambda: one.plans)
                await second.reconciler.settle()
                assert one.plans == [plan]
                assert [g.id for g in second.groups.groups()] == [group.id]
            await until(lambda: not second.look().live)
            second.network.notice()
            await second.reconciler.settle()
            assert second.agent_plans.epoch == plan.epoch, (
                "what they would be told is the same: they are members"
            )
        async with running(state, (address,)) as third:
            assert not third.look().live, "who was gone at the restart is still gone"
            assert third.agent_plans.epoch == plan.epoch

    asyncio.run(main())


def test_epochs_go_on_although_the_state_file_is_lost(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], address: str) -> None:
        later = controller.agent_plans.epoch + 100
        async with attached(address, "a9", plan_epoch=later):
            await until(lambda: agents[0].plans[-1].epoch > later)
            assert controller.agent_plans.epoch == agents[0].plans[-1].epoch

    with_agents(tmp_path, 1, test)
    began = int(time.time())
    first, second = Database(None), Database(None)
    assert began <= first.agent_plan()[0] <= time.time() + 1
    assert second.agent_plan()[0] >= first.agent_plan()[0]


def test_a_full_disk_stops_requests_and_not_the_fabric(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], _: str) -> None:
        controller._database._sql.execute("PRAGMA query_only=ON")  # what a write meets then fails
        with pytest.raises(StoreError):
            make_group(controller.groups, "tree", (0, 1))
        assert controller.groups.groups() == []
        controller.monitor.remove_switch(SwitchId(1))
        controller.network.notice()
        await until(lambda: [r.host for r in agents[0].plans[-1].routes] == [])
        assert controller.network.store_failures >= 1
        assert controller.agent_plans.epochs_not_kept >= 1
        controller._database._sql.execute("PRAGMA query_only=OFF")
        make_group(controller.groups, "tree", (0, 1))

    with_agents(tmp_path, 2, test)


def test_a_socket_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "agents.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(CannotListen, match="another process listens on"):
            claim_path(path)
        assert path.is_socket()
    claim_path(path)
    assert not path.exists(), "its process is gone"


def test_agents_that_do_not_come_back_after_a_restart_are_left_out(tmp_path: Path) -> None:
    address, state = f"unix:{tmp_path}/agents.sock", tmp_path / "state.db"

    async def main() -> None:
        async with running(state, (address,)) as first:
            add_switches(first)
            announce(first, "a0", 0, 0)
            async with attached(address, "a0") as one:
                await until(lambda: one.plans)
        async with running(state, (address,), gone_after_s=1.0) as second:
            record = second.find_host(0)
            assert second.look().live == {0}
            await until(lambda: not second.look().live)
            assert not record.attached

    asyncio.run(main())


@pytest.mark.parametrize("address", ["nowhere", "unix:/proc/nope/x.sock", "256.1.1.1:5"])
def test_addresses_that_cannot_be_served_are_named(address: str) -> None:
    async def main() -> None:
        with pytest.raises(DirectoryError, match=address):
            await AgentDirectory(Controller.__new__(Controller)).start([address])

    asyncio.run(main())


def test_state_files_that_are_none_are_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(StoreError, match=r"broken\.db.*not a database"):
        Database(broken)
    newer = tmp_path / "newer.db"
    with contextlib.closing(sqlite3.connect(newer)) as sql:
        sql.execute("PRAGMA user_version=99")
    with pytest.raises(StoreError, match="has schema 99; this version reads 1 to 3"):
        Database(newer)


@pytest.mark.slow
def test_connections_that_never_speak_are_closed_and_keep_no_agent_out(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "agents.sock"
        async with running(None, (f"unix:{path}",)):
            silent = [await asyncio.open_unix_connection(path) for _ in range(200)]
            async with attached(f"unix:{path}", "a0") as agent:
                await until(lambda: agent.host is not None)
                async with asyncio.timeout(server.HANDSHAKE_TIMEOUT_S + 60):
                    for reader, writer in silent:
                        while await reader.read(4096):
                            pass  # the server's side of HTTP/2
                        writer.close()
                assert not agent.ended.is_set()

    asyncio.run(main())


def test_later_plans_are_told_by_what_is_other_than_before(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], address: str) -> None:
        first = agents[0].plans[-1]
        assert not agents[0].changes or agents[0].received[1].WhichOneof("body") == "plan"
        count = len(agents[0].changes)
        group = make_group(controller.groups, "circuit", (0, 1, 2))
        await controller.announce_groups("group_created", [group], wait=True)
        await until(lambda: all(groups_of(a) == {group.id: [0, 1, 2]} for a in agents))
        change = agents[0].changes[-1]
        assert (change.base, change.epoch) == (first.epoch, first.epoch + 1)
        assert not change.routes
        assert not change.tree_routes
        assert [g.id for g in change.groups] == [group.id]
        controller.declare_host("plain", 1, 5, 50)
        await until(lambda: agents[0].plans[-1].epoch == first.epoch + 2)
        change = agents[0].changes[-1]
        assert [route.host for route in change.routes] == [50], "other routes are as they were"
        assert not change.groups
        assert not change.no_groups
        await controller.announce_groups("group_deleted", [controller.groups.delete(group.id)], wait=True)
        await until(lambda: groups_of(agents[0]) == {})
        assert list(agents[0].changes[-1].no_groups) == [group.id]
        assert len(agents[0].changes) == count + 3
        assert controller.directory.changes_sent >= 3
        async with attached(address, "a0") as again:
            await until(lambda: again.plans)
            assert not again.changes, "a stream begins with the whole plan"
            assert again.plans[-1] == agents[0].plans[-1], "which is what the changes led to"

    with_agents(tmp_path, 3, test)


def test_an_agent_without_the_plan_before_gets_the_whole_one(tmp_path: Path) -> None:
    async def test(controller: Controller, agents: list[TestAgent], _: str) -> None:
        group = make_group(controller.groups, "circuit", (0, 1))
        await controller.announce_groups("group_created", [group], wait=True)
        await until(lambda: groups_of(agents[0]) == {group.id: [0, 1]})
        change = agents[0].changes[-1]
        error = "a change of plan 3; the plan in force is 2"
        await agents[0].send(plan_applied=agent_pb2.PlanApplied(epoch=change.epoch, error=error))
        await until(lambda: agents[0].received[-1].WhichOneof("body") == "plan")
        assert agents[0].plans[-1] == agents[0].plans[-2]
        status = controller.agents[controller.find_host(0).id]
        assert status.error == "", "that is between the two of them"
        refused = [agent_pb2.RefusedGroup(group=group.id, reason="too many children")]
        answer = agent_pb2.PlanApplied(epoch=change.epoch, error="too many children", refused=refused)
        await agents[0].send(plan_applied=answer)
        await until(lambda: status.epoch == change.epoch)
        controller.declare_host("plain", 1, 5, 50)
        await until(lambda: len(agents[0].plans[-1].routes) == 2)
        assert agents[0].received[-1].WhichOneof("body") == "plan", (
            "it has not taken the one before as it was told"
        )

    with_agents(tmp_path, 2, test)
