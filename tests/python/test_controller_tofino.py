"""What the controller writes to a switch is the same by the P4Info of either program, and is read back the same; but
for the ports of the chip, which are in no plan."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import finsy
import pytest
from controller_lab.plans import decoded
from controller_lab.running import rest, running, take_for_up, until
from controller_lab.small import add_fabric
from finsy.p4entity import decode_entity, encode_updates
from finsy.proto import p4r
from wormcast.cli.service import StartError, read_configuration
from wormcast.discovery.hosts import HostRefused
from wormcast.network.ids import Epoch, HostId, PortId, SwitchId
from wormcast.network.topology import Link
from wormcast.p4rt.artifacts import Artifacts, find_artifacts
from wormcast.p4rt.convert import (
    TABLE_WORMHOLE,
    decode_default_into,
    decode_into,
    decode_rate_into,
    encode_update,
    put_absent_defaults,
)
from wormcast.p4rt.device_ports import DevicePorts, map_entry
from wormcast.p4rt.session import SwitchSession
from wormcast.p4rt.tables import Stage, Strayed
from wormcast.reconcile.chip_ports import check_device_ports, read_device_ports
from wormcast.reconcile.controller import Controller
from wormcast.reconcile.errors import RequestError
from wormcast.store.database import Database, SwitchSpec
from wormcast_planner import TABLES_WITH_DEFAULT, MulticastGroup, SwitchState, difference

COMPILED = find_artifacts().p4info.parent
V1MODEL, TOFINO = (
    finsy.P4Schema(COMPILED / name) for name in ("wormcast.p4info.txtpb", "tofino.p4info.txtpb")
)


async def guarded_state() -> SwitchState:
    """What a switch with two hosts has to hold: the guard is on, groups of two schemes, one host has a rate."""
    async with running() as controller, rest(controller) as client:
        add_fabric(controller)
        for n in range(3):
            controller.agent_events.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        await client.put("guard", json={"on": True})
        await client.put("hosts/h1/rate", json={"bps": 5_000_000})
        await client.post("groups", json={"scheme": "table", "members": [0, 1, 2]})
        await client.post("groups", json={"members": [0, 1], "class_d": "239.1.1.7"})
        tables = controller.sessions[SwitchId(0)].tables

        def complete() -> bool:
            for host in range(3):
                told = controller.agent_plans.issued.get(HostId(host))
                if told is not None:
                    controller.agent_plans.answered(HostId(host), told.epoch)
            entries = [] if tables.desired is None else tables.desired.entries()
            return {e.action for e in entries} >= {
                "ingress.admit_host",
                "ingress.group_open",
                "ingress.sender_known",
            }

        await until(complete)
        assert tables.desired is not None
        return tables.desired.copy()


def test_a_guarded_switch_takes_the_same_writes_with_either_program() -> None:
    desired = asyncio.run(guarded_state())
    empty = SwitchState()
    put_absent_defaults(empty, TOFINO)
    updates = difference(desired, empty)
    assert Stage.PERMIT in {update.stage for update in updates}
    written = [
        encode_updates([encode_update(update) for update in updates], schema) for schema in (V1MODEL, TOFINO)
    ]
    assert written[0] == written[1]

    read = SwitchState()
    put_absent_defaults(read, TOFINO)
    for message in written[1]:
        entity = decode_entity(message.entity, TOFINO)
        if isinstance(entity, finsy.P4MeterEntry):
            decode_rate_into(read, entity)
        elif isinstance(entity, finsy.P4TableEntry) and entity.is_default_action:
            decode_default_into(read, entity, TOFINO)
        else:
            decode_into(read, entity, TOFINO)
    assert difference(desired, read) == []
    assert read.rates() == {1: 625_000}


def test_tofino_has_every_table_whose_default_the_controller_reads_but_wormhole_mode() -> None:
    known = {table.name for table in TOFINO.tables}
    assert set(TABLES_WITH_DEFAULT) - known == {TABLE_WORMHOLE}
    for table in set(TABLES_WITH_DEFAULT) & known:
        assert TOFINO.tables[table].id == V1MODEL.tables[table].id
    of_v1model = SwitchState()
    put_absent_defaults(of_v1model, V1MODEL)
    assert difference(of_v1model, SwitchState()) == []


# -- the ports of the chip --------------------------------------------------

DEVICES = {0: 128, 1: 136, 2: 0, 3: 500, 254: 68, 510: 192}
SPEC = SwitchSpec(SwitchId(0), "127.0.0.1:1", 0, 4, device_ports=tuple(DEVICES.items()))
MAP = {
    *(("ingress.entry_ports", device, port) for port, device in DEVICES.items()),
    *(("ingress.device_ports", port, device) for port, device in DEVICES.items()),
    *(("egress.exit_ports", device, port) for port, device in DEVICES.items()),
}


class FakeChip:
    """A switch with the program for Tofino: keeps what is written, as P4Runtime has it, and is strict about it."""

    p4info = TOFINO

    def __init__(self) -> None:
        self.held: dict[object, Any] = {}
        self.batches: list[list[Any]] = []

    async def write(self, updates: list[Any]) -> None:
        messages = encode_updates(updates, TOFINO)
        self.batches.append(messages)
        for message in messages:
            place = _place(message.entity)
            is_cell = message.entity.HasField("meter_entry") or message.entity.table_entry.is_default_action
            is_new = message.type == p4r.Update.INSERT
            assert is_cell or (place in self.held) != is_new, "an insert is new, nothing else is"
            if message.type == p4r.Update.DELETE:
                del self.held[place]
            else:
                self.held[place] = message.entity

    async def read(self, wanted: list[Any]) -> AsyncIterator[Any]:
        for asked in wanted:
            for entity in list(self.held.values()):
                found = decode_entity(entity, TOFINO)
                same = type(found) is type(asked) and (
                    not isinstance(found, finsy.P4TableEntry)
                    or (
                        found.is_default_action == asked.is_default_action
                        and (not asked.table_id or _table(asked) == _table(found))
                    )
                )
                if same:
                    yield found

    def entries(self, *tables: str) -> set[tuple[str, int, int]]:
        """Table, key and parameter of the entries of tables that have one of each."""
        found = set()
        for entity in self.held.values():
            one = decode_entity(entity, TOFINO)
            if isinstance(one, finsy.P4TableEntry) and _table(one) in tables:
                assert isinstance(one.action, finsy.P4TableAction)
                (key,), (value,) = dict(one.match or {}).values(), one.action.args.values()
                found.add((_table(one), key, value))
        return found

    def map(self) -> set[tuple[str, int, int]]:
        return self.entries("ingress.entry_ports", "ingress.device_ports", "egress.exit_ports")

    def replicas(self, mgid: int) -> set[tuple[int, int]]:
        """Device port and instance."""
        group = self.held[mgid].packet_replication_engine_entry.multicast_group_entry
        assert not any(replica.backup_replicas for replica in group.replicas)
        return {(replica.egress_port, replica.instance) for replica in group.replicas}


def _table(entry: finsy.P4TableEntry) -> str:
    return str(TOFINO.tables[entry.table_id].name)


def _place(entity: Any) -> object:
    if entity.HasField("packet_replication_engine_entry"):
        return entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id
    if entity.HasField("meter_entry"):
        return "meter", entity.meter_entry.index.index
    entry = entity.table_entry
    key = b"" if entry.is_default_action else b"".join(match.SerializeToString() for match in entry.match)
    return entry.table_id, key, entry.priority


class Watcher:
    """Hears what a session tells."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.out_of_step = 0

    def switch_refused(self, _: SwitchId, reason: str, __: int | None) -> None:
        self.refused.append(reason)

    def switch_strayed(self, switch: SwitchId, part: str, strayed: Strayed) -> None:
        raise AssertionError((switch, part, strayed))

    def switch_out_of_step(self, _: SwitchId) -> None:
        self.out_of_step += 1


def tofino_artifacts() -> Artifacts:
    found = find_artifacts()
    return Artifacts(found.p4info.with_name("tofino.p4info.txtpb"), found.blob)


async def connect(chip: FakeChip, spec: SwitchSpec = SPEC) -> tuple[SwitchSession, Watcher]:
    """A session that has just read the switch."""
    watcher = Watcher()
    session = SwitchSession(spec, tofino_artifacts(), 1, watcher)  # type: ignore[arg-type]
    session._switch = chip
    await session._read_state()
    session.connected = True
    return session, watcher


async def bring(session: SwitchSession, desired: SwitchState) -> None:
    session.desire(desired)
    for stage in Stage:
        await session.advance(stage)


@functools.cache
def guarded() -> SwitchState:
    return asyncio.run(guarded_state())


def planned() -> SwitchState:
    """Groups of TREE and of tables as planned where ports 2 and 3 are parallel links to one neighbour."""
    state = guarded().copy()
    state.put_group(MulticastGroup(2, [(0, 1, []), (1, 1, []), (2, 0x102, [3]), (3, 0x103, [2])]))
    state.put_group(MulticastGroup(0x0101, [(0, 1, [])]))
    state.put_group(MulticastGroup(0x0202, [(2, 0x102, [3])]))
    state.put_group(MulticastGroup(0x4005, [(1, 1, []), (2, 7, [3])]))
    return state


def test_the_map_is_there_before_the_plan_and_the_plan_leaves_it_alone() -> None:
    async def main(desired: SwitchState) -> None:
        chip = FakeChip()
        session, watcher = await connect(chip)
        assert chip.map() == MAP
        await bring(session, desired)
        assert (watcher.refused, chip.map()) == ([], MAP)
        assert session.tables.counts()["installed"] == session.tables.counts()["planned"]
        # After a restart all is as it was, and the map is no part of the state that is compared.
        again, _ = await connect(chip)
        batches = len(chip.batches)
        again.desire(desired)
        left = again.tables.due(Stage.REVOKE)
        assert {getattr(u.entity, "mgid", None) for u in left} <= {2, 0x0202, 0x4005}, "those with backups"
        await bring(again, desired)
        assert not any(m.type == p4r.Update.DELETE for batch in chip.batches[batches:] for m in batch)
        assert chip.map() == MAP

    asyncio.run(main(planned()))


def test_replicas_are_device_ports_and_name_their_branch_in_groups_of_tree() -> None:
    """CONTRACT.md, Tofino: with or without parallel links. The chip has no backups."""

    async def main(desired: SwitchState) -> None:
        chip = FakeChip()
        session, _ = await connect(chip)
        await bring(session, desired)
        assert chip.replicas(2) == {(128, 0x100), (136, 0x101), (0, 0x102), (500, 0x103)}
        assert chip.replicas(0x0101) == {(128, 0x100)}
        assert chip.replicas(0x0202) == {(0, 0x102)}
        assert chip.replicas(0x4005) == {(136, 1), (0, 7)}

    asyncio.run(main(planned()))


def test_a_map_that_is_other_is_put_right_and_so_are_the_groups() -> None:
    async def main(desired: SwitchState) -> None:
        chip = FakeChip()
        await chip.write([+map_entry("ingress.entry_ports", 300, 2), +map_entry("egress.exit_ports", 128, 3)])
        session, watcher = await connect(chip)
        assert chip.map() == MAP, "one of nobody goes, one that is wrong is modified"
        await bring(session, desired)
        moved = {**DEVICES, 1: 140}
        session.respecify(replace(SPEC, device_ports=tuple(moved.items())))
        assert watcher.out_of_step == 1
        await bring(session, desired)
        assert {(device, port) for table, device, port in chip.map() if table == "egress.exit_ports"} == {
            (device, port) for port, device in moved.items()
        }
        assert chip.replicas(2) == {(128, 0x100), (140, 0x101), (0, 0x102), (500, 0x103)}
        session.respecify(session.spec)
        assert watcher.out_of_step == 1, "nothing is new"

    asyncio.run(main(planned()))


def test_a_port_without_a_device_port_is_refused_by_name_and_the_rest_is_written() -> None:
    """As with a state file of before."""

    async def main(desired: SwitchState) -> None:
        chip = FakeChip()
        pairs = tuple(pair for pair in DEVICES.items() if pair[0] != 3)
        session, watcher = await connect(chip, replace(SPEC, device_ports=pairs))
        await bring(session, desired)
        assert any(
            "port 3 has no device port; device_ports of the switch has [0, 1, 2, 254, 510]" in reason
            for reason in watcher.refused
        )
        assert chip.replicas(0x0101) == {(128, 0x100)}
        assert 2 not in chip.held
        await session.stop()

    asyncio.run(main(planned()))


def test_copies_to_device_ports_of_nobody_are_read_as_missing() -> None:
    ports = DevicePorts(DEVICES.items())
    assert ports.from_chip(0x4005, [(136, 1), (137, 1)]) == [(1, 1, [])]
    assert ports.from_chip(2, [(136, 0x101), (0, 0x101)]) == [(1, 1, []), (2, 0x101, [])]


@pytest.mark.parametrize(
    ("ports", "changed", "said"),
    [
        (33, {}, "switch 0 has 33 ports; TREE routes of its program name ports 0 to 31; possible: 1 to 32"),
        (4, {3: None}, "port 3 of switch 0 has no device port; possible: 0, 1, 2, 3, 254 and 510"),
        (4, {510: None}, "port 510 of switch 0 has no device port; possible: 0, 1, 2, 3, 254 and 510"),
        (4, {4: 7}, "switch 0 has no port 4 to map; possible: 0, 1, 2, 3, 254 and 510"),
        (4, {3: 512}, "device port 512 of port 3 of switch 0 is out of range; possible: 0 to 511"),
        (4, {3: -1}, "device port -1 of port 3 of switch 0 is out of range; possible: 0 to 511"),
        (4, {3: 128}, "ports 0 and 3 of switch 0 have one device port, 128; possible: one for each port"),
    ],
)
def test_a_map_that_cannot_be_is_refused(ports: int, changed: dict[int, int | None], said: str) -> None:
    pairs = {port: device for port, device in (DEVICES | changed).items() if device is not None}
    spec = replace(SPEC, ports=ports, device_ports=tuple(pairs.items()))
    with pytest.raises(RequestError) as refused:
        check_device_ports(spec, needed=True)
    assert str(refused.value) == said


def test_the_program_decides_whether_there_is_a_map() -> None:
    check_device_ports(SPEC, needed=True)
    check_device_ports(replace(SPEC, ports=254, device_ports=()), needed=False)
    with pytest.raises(RequestError, match="has device_ports, and its program has no table for them"):
        check_device_ports(SPEC, needed=False)
    assert not find_artifacts().has_device_ports
    assert tofino_artifacts().has_device_ports


@pytest.mark.parametrize("mapped", [{"x": 1}, {"-1": 1}, {"1000": 1}, {"1": "1"}, {"1": True}, {"1": None}])
def test_a_map_that_is_none_is_refused(mapped: dict[str, object]) -> None:
    with pytest.raises(RequestError, match="device_ports map ports to the chip's numbers, not"):
        read_device_ports(mapped)


def test_the_map_is_in_the_switches_file_and_in_the_state_file_and_is_shown(tmp_path: Path) -> None:
    entry = {
        "id": 0,
        "address": "127.0.0.1:1",
        "ports": 4,
        "device_ports": {str(p): d for p, d in DEVICES.items()},
    }
    path = tmp_path / "switches.json"
    path.write_text(json.dumps({"switches": [entry]}))
    (spec,) = read_configuration(path).switches
    assert dict(spec.device_ports) == DEVICES
    path.write_text(json.dumps({"switches": [entry | {"device_ports": [1]}]}))
    with pytest.raises(StartError, match=r"switches\[0\]\.device_ports is \[1\], not an object"):
        read_configuration(path)

    async def main() -> None:
        controller = Controller(Database(tmp_path / "state"), tofino_artifacts())
        async with rest(controller) as client:
            answer = await client.post("switches", json=entry | {"ports": 40})
            assert answer.status_code == 422
            assert "TREE routes of its program name ports 0 to 31" in answer.json()["error"]["message"]
            answer = await client.post("switches", json=entry)
            assert answer.json()["switches"][0]["device_ports"] == entry["device_ports"]
        controller._database.close()
        database = Database(tmp_path / "state")
        assert [dict(kept.device_ports) for kept in database.switches()] == [DEVICES]
        database.close()

    asyncio.run(main())


def test_agents_are_told_how_long_tree_routes_may_be() -> None:
    """However many members a group has, and where a switch is added: 127 bytes, field 20 of their plans."""

    async def main() -> None:
        controller = Controller(Database(None), tofino_artifacts(), probe_interval_s=3600.0)
        await controller.start(["127.0.0.1:0"])
        pairs = tuple({**{port: port for port in range(32)}, 254: 68, 510: 192}.items())

        def add(switch: int) -> None:
            spec = replace(
                SPEC, id=SwitchId(switch), address=f"127.0.0.1:{40000 + switch}", ports=32, device_ports=pairs
            )
            controller.put_switches([spec])
            take_for_up(controller, spec.id)
            if switch:
                link = Link(SwitchId(switch - 1), PortId(31), SwitchId(switch), PortId(30))
                controller.monitor.restore_link(link)

        async def told(host: int) -> Any:
            await controller.reconciler.settle()
            found = controller.agent_plans.issued.get(HostId(host))
            assert found is not None
            return decoded(found.plan)

        for switch in range(3):
            add(switch)
        for host in range(80):
            controller.declare_host(f"h{host}", host // 30, host % 30, host)
            controller.agent_events.agent_registered(
                f"h{host}", host, b"\2\0\0\0\0\1", 1500, "test", Epoch(0)
            )
        async with rest(controller) as client:
            for scheme in ("switch", "table", "auto"):
                answer = await client.post("groups", json={"scheme": scheme, "members": list(range(80))})
                assert answer.status_code == 201, answer.text
        assert {(await told(host)).tree_route_max for host in (0, 79)} == {127}
        add(3)
        controller.declare_host("late", 3, 0, 90)
        controller.agent_events.agent_registered("late", 90, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        assert ((await told(90)).tree_route_max, len((await told(90)).tree_routes)) == (127, 80)
        with pytest.raises(HostRefused, match="TREE routes of 127 bytes") as refused:
            controller.agent_events.agent_registered(
                "old", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0), revision=0
            )
        assert (refused.value.value, refused.value.bound) == (0, "1 or more")
        await controller.stop()

    asyncio.run(main())


def test_elsewhere_routes_have_no_limit_of_a_chip() -> None:
    async def main() -> None:
        async with running() as controller:
            add_fabric(controller)
            controller.agent_events.agent_registered(
                "h0", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0), revision=0
            )
            await controller.reconciler.settle()
            found = controller.agent_plans.issued.get(HostId(0))
            assert found is not None
            assert decoded(found.plan).tree_route_max == 0

    asyncio.run(main())
