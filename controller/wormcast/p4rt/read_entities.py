"""Asks a switch what it has in its tables. Nothing is written, and nobody's session is disturbed: reading
needs no arbitration (P4Runtime §11)."""

from __future__ import annotations

from typing import Any

import finsy
from finsy.proto import p4r

from wormcast.p4rt.channels import allow_unix_sockets
from wormcast.p4rt.forwarding_tables import SwitchEntities, find_table

allow_unix_sockets()


async def read_entities(address: str, device_id: int, table: str) -> SwitchEntities:
    """The entries of a table with all that they refer to, and the multicast groups. Raises
    `finsy.P4ClientError`, and `UnfitTableError` if there is no program or no such table."""
    async with finsy.P4Client(address, wait_for_ready=False) as client:
        kind = p4r.GetForwardingPipelineConfigRequest.ResponseType.P4INFO_AND_COOKIE
        reply = await client.request(
            p4r.GetForwardingPipelineConfigRequest(device_id=device_id, response_type=kind)
        )
        found = SwitchEntities(reply.config.p4info)
        about = find_table(found.p4info, table)
        numbers = about.preamble.id
        for is_default in (False, True):
            wanted = p4r.TableEntry(table_id=numbers, is_default_action=is_default)
            found.entries += [e.table_entry for e in await _read(client, device_id, table_entry=wanted)]
        if profile := about.implementation_id:
            member = p4r.ActionProfileMember(action_profile_id=profile)
            for entity in await _read(client, device_id, action_profile_member=member):
                one = entity.action_profile_member
                found.members[one.member_id] = one.action
            group = p4r.ActionProfileGroup(action_profile_id=profile)
            for entity in await _read(client, device_id, action_profile_group=group):
                group = entity.action_profile_group
                found.groups[group.group_id] = [one.member_id for one in group.members]
        multicast = p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry())
        for entity in await _read(client, device_id, packet_replication_engine_entry=multicast):
            entry = entity.packet_replication_engine_entry.multicast_group_entry
            found.multicast[entry.multicast_group_id] = [_port(replica) for replica in entry.replicas]
        return found


def _port(replica: Any) -> int:
    """`port` since P4Runtime 1.4, `egress_port` before."""
    return int.from_bytes(replica.port) if replica.WhichOneof("port_kind") == "port" else replica.egress_port


async def _read(client: Any, device_id: int, **entity: Any) -> list[Any]:
    request = p4r.ReadRequest(device_id=device_id, entities=[p4r.Entity(**entity)])
    return [one async for reply in client.request_iter(request) for one in reply.entities]
