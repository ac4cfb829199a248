"""What the controller writes to a switch is the same by the P4Info of either program, and is read back the same."""

from __future__ import annotations

import asyncio

import finsy
from controller_lab.running import rest, running, until
from controller_lab.small import add_fabric
from finsy.p4entity import decode_entity, encode_updates
from wormcast.network.ids import Epoch, HostId, SwitchId
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.p4rt.convert import (
    TABLE_WORMHOLE,
    decode_default_into,
    decode_into,
    decode_rate_into,
    encode_update,
    put_absent_defaults,
)
from wormcast.p4rt.tables import Stage
from wormcast_planner import TABLES_WITH_DEFAULT, SwitchState, difference

COMPILED = find_artifacts().p4info.parent
V1MODEL, TOFINO = (
    finsy.P4Schema(COMPILED / name) for name in ("wormcast.p4info.txtpb", "tofino.p4info.txtpb")
)


async def guarded_state() -> SwitchState:
    """What a switch with two hosts has to hold: the guard is on, groups of two schemes, one host has a rate."""
    async with running() as controller, rest(controller) as client:
        add_fabric(controller)
        for n in range(3):
            controller.agent_registered(f"h{n}", None, b"\2\0\0\0\0\1", 1500, "test", Epoch(0))
        await client.put("guard", json={"on": True})
        await client.put("hosts/h1/rate", json={"bps": 5_000_000})
        await client.post("groups", json={"scheme": "table", "members": [0, 1, 2]})
        await client.post("groups", json={"members": [0, 1], "class_d": "239.1.1.7"})
        tables = controller.sessions[SwitchId(0)].tables

        def complete() -> bool:
            for host in range(3):
                told = controller.reconciler.told(HostId(host))
                if told is not None:
                    controller.reconciler.answered(HostId(host), told.epoch)
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
