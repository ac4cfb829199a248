"""One plan on its way to switches and agents: stage by stage, each connected part for itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from wormcast.network.ids import HostId, SwitchId
from wormcast.p4rt.session import SwitchSession
from wormcast.p4rt.tables import Stage

OTHERS_WAIT_S = 0.5
"""Parts that are ready wait so long for switches of other parts, which no link that is up joins to them."""
SLOW_AFTER_S = 2.0
"""A switch that takes longer for a stage is named; it is waited for all the same."""


class Waits:
    """Switches that stages wait for, from one plan to the next."""

    def __init__(self, on_slow: Callable[[SwitchId, Stage], None]) -> None:
        self.since: dict[SwitchId, float] = {}
        self._named: set[SwitchId] = set()
        self._on_slow = on_slow

    def begin(self, switches: Iterable[SwitchId]) -> None:
        """A stage waits for these."""
        now = time.monotonic()
        for switch in switches:
            self.since.setdefault(switch, now)

    def end(self, switch: SwitchId) -> None:
        """The switch has finished."""
        self.since.pop(switch, None)
        self._named.discard(switch)

    def name_slow(self, switches: Iterable[SwitchId], stage: Stage) -> float | None:
        """Names those of these that are slow, once; returns when to look again, in seconds."""
        now = time.monotonic()
        left: list[float] = []
        for switch in switches:
            left_s = self.since[switch] + SLOW_AFTER_S - now
            if left_s > 0:
                left.append(left_s)
            elif switch not in self._named:
                self._named.add(switch)
                self._on_slow(switch, stage)
        return min(left, default=None)


@dataclass(frozen=True)
class Part:
    """Switches that are joined, and the hosts on them."""

    switches: frozenset[SwitchId]
    hosts: frozenset[HostId]


class BringOut:
    """Takes all switches through the stages, and sends plans to the agents in between.

    A switch may copy worms to those of its own part alone. So a part takes the next
    stage when all of its switches have finished the one before, however long that
    takes: then no worm of it finds an old and a new tree. Switches without a session
    are not waited for once `SwitchSession` does not expect them any more.
    """

    def __init__(
        self,
        sessions: Mapping[SwitchId, SwitchSession],
        parts: Iterable[Part],
        publish: Callable[[Iterable[HostId]], None],
        hosts: Iterable[HostId],
        waits: Waits,
        between: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`publish` sends agents their plans, those of `hosts` that have a new one. `between` is waited for when all
        parts have finished SHRINK."""
        self._sessions = sessions
        self._parts = list(parts)
        self._publish = publish
        self._hosts = frozenset(hosts)
        self._waits = waits
        self._between = between

    async def run(self) -> None:
        """Returns when all is where it should be."""
        shrinking = [asyncio.ensure_future(self._finish(part, Stage.SHRINK)) for part in self._parts]
        try:
            everywhere = asyncio.gather(*shrinking)
            everywhere.add_done_callback(lambda done: done.cancelled() or done.exception())
            if self._between is not None:
                await everywhere
                await self._between()
            await asyncio.gather(
                *(
                    self._run_part(part, own, everywhere)
                    for part, own in zip(self._parts, shrinking, strict=True)
                ),
                self._send_plans(everywhere),
            )
        finally:
            for task in shrinking:
                task.cancel()

    async def _run_part(
        self, part: Part, own: asyncio.Future[None], everywhere: asyncio.Future[list[None]]
    ) -> None:
        await asyncio.wait({own})
        own.result()
        await asyncio.wait({everywhere}, timeout=OTHERS_WAIT_S)
        await self._finish(part, Stage.GROW)
        self._publish(self._hosts & part.hosts)
        await self._finish(part, Stage.RETIRE)

    async def _send_plans(self, everywhere: asyncio.Future[list[None]]) -> None:
        """Hosts whose switch is not up get theirs too: they may find a way."""
        await asyncio.wait({everywhere}, timeout=OTHERS_WAIT_S)
        self._publish(self._hosts.difference(*(part.hosts for part in self._parts)))

    async def _finish(self, part: Part, stage: Stage) -> None:
        """Waits until every switch of a part has finished a stage."""
        sessions = [self._sessions[s] for s in sorted(part.switches) if s in self._sessions]
        behind = {session.advance(stage): session.spec.id for session in sessions if not session.in_step}
        self._waits.begin(behind.values())
        while behind:
            look_again_s = self._waits.name_slow(behind.values(), stage)
            done, _ = await asyncio.wait(behind, timeout=look_again_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                self._waits.end(behind.pop(task))
