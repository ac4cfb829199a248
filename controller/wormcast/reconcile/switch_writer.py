"""Writes plans to switches."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from wormcast_planner import FabricState

from wormcast.network.ids import HostId, SwitchId
from wormcast.p4rt.convert import TABLE_WORMHOLE
from wormcast.p4rt.session import SwitchSession
from wormcast.p4rt.tables import Stage
from wormcast.reconcile.bring_out import BringOut, Waits
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.view import View

LOG = logging.getLogger("wormcast.reconcile")

HELD_UP_S = 0.5
"""A plan that switches hold up for longer yields to the next one that has to be made."""


class SwitchWriter:
    """The switches of the fabric, as plans are written to them."""

    def __init__(self, sessions: Mapping[SwitchId, SwitchSession], events: EventLog) -> None:
        self._sessions = sessions
        self._events = events
        self._waits = Waits(self._note_slow)

    def desire(self, state: FabricState) -> None:
        """Gives each session what its switch is to have. Of plans that follow from each other it is given every one:
        each says what is other than in the one before."""
        for switch, wanted in state.switches.items():
            if switch in self._sessions:
                touched = None if state.touched is None else state.touched.get(switch, ())
                self._sessions[switch].desire(wanted, touched)

    async def permit(self, before: View | None, view: View) -> None:
        """Before agents are sent anything: their switches admit it. One that takes long is not waited for."""
        if view.guard.on or (before is not None and before.guard.on):
            sessions = [s for s in self._sessions.values() if s.connected and s.tables.permits_more]
            if sessions:
                await asyncio.wait([s.advance(Stage.PERMIT) for s in sessions], timeout=HELD_UP_S)

    def bring_out(
        self,
        view: View | None,
        state: FabricState,
        publish: Callable[[Iterable[HostId]], None],
        hosts: Iterable[HostId],
        between: Callable[[], Awaitable[None]] | None,
    ) -> BringOut:
        """Takes all switches through the stages of a plan; see there."""
        parts = [] if view is None else view.parts(state.parts)
        return BringOut(self._sessions, parts, publish, hosts, self._waits, between)

    async def revoke(self, state: FabricState, ready: Callable[[], Awaitable[None]]) -> None:
        """All switches have the plan: they stop to admit what it does not need, once agents are `ready`."""
        revocable = [
            (session, wanted)
            for switch, wanted in state.switches.items()
            if (session := self._sessions.get(switch)) is not None and session.tables.revocable
        ]
        if revocable:
            await ready()
            await asyncio.gather(*(session.revoke(wanted) for session, wanted in revocable))

    @property
    def refuse_wormhole_mode(self) -> bool:
        """Whether any of them is not in the mode: it drops trains."""
        return any(session.tables.refuses(TABLE_WORMHOLE) for session in self._sessions.values())

    def waiting_for(self) -> dict[SwitchId, float]:
        """Switches that hold up the plan in force, and for how many seconds."""
        now = time.monotonic()
        return {switch: now - since for switch, since in sorted(self._waits.since.items())}

    def _note_slow(self, switch: SwitchId, stage: Stage) -> None:
        LOG.warning("switch %d holds up the plan: it has not finished stage %s", switch, stage.name)
        self._events.add("switch_slow", time.time(), switch=switch, stage=stage.name.lower())
