"""Before another program replaces the one a switch runs: take its replication groups away.

BMv2 forgets multicast groups on the P4Runtime side when a pipeline is set, but
keeps their replicas; a group inserted again under the same id then copies twice.
"""

from __future__ import annotations

import asyncio
from typing import Any

import finsy
from finsy.proto import p4r

from wormcast.p4rt.artifacts import Artifacts
from wormcast.store.database import SwitchSpec


async def evict_foreign_groups(spec: SwitchSpec, artifacts: Artifacts, election_id: int) -> int:
    """Deletes all multicast groups of a switch that runs another program; returns how many.

    Nothing happens where the switch has no program or already runs this one.
    Raises `finsy.P4ClientError`.
    """
    if not await _runs_another(spec, artifacts):
        return 0
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def clear(switch: Any) -> None:
        try:
            groups = [group async for group in switch.read([finsy.P4MulticastGroupEntry()])]
            if switch.is_primary and groups:
                await switch.delete(groups)
            if not done.done():
                done.set_result(len(groups) if switch.is_primary else 0)
        except finsy.P4ClientError as error:
            if not done.done():
                done.set_exception(error)

    # Without a P4Info of ours finsy takes the switch's and leaves its program alone.
    options = finsy.SwitchOptions(
        device_id=spec.device_id, initial_election_id=election_id, ready_handler=clear
    )
    async with finsy.Switch(f"s{spec.id}-evict", spec.address, options):
        return await done


async def _runs_another(spec: SwitchSpec, artifacts: Artifacts) -> bool:
    ours = artifacts.schema.p4cookie
    async with finsy.P4Client(spec.address, wait_for_ready=False) as client:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=spec.device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.ResponseType.COOKIE_ONLY,
        )
        try:
            reply = await client.request(request)
        except finsy.P4ClientError as error:
            if error.is_pipeline_missing:
                return False
            raise
        if not reply.HasField("config"):
            return False  # nothing set yet (P4Runtime §7.3); BMv2 answers FAILED_PRECONDITION instead
        return not reply.config.HasField("cookie") or reply.config.cookie.cookie != ours
