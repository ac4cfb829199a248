"""From a plan to switches and agents, stage by stage."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wormcast.control.events import EventLog
from wormcast.directory.convert import encode_plans
from wormcast.directory.server import AgentDirectory
from wormcast.fabric.class_d import NARROW, ClassDNumbers
from wormcast.fabric.difference import Stage
from wormcast.fabric.groups import Group
from wormcast.fabric.ids import Epoch, GroupId, HostId, SwitchId
from wormcast.fabric.planner import Pathfinder, plan
from wormcast.fabric.state import FabricState, digest_agents
from wormcast.fabric.topology import Topology
from wormcast.p4rt.session import SwitchSession
from wormcast.store.database import Database, StoreError

LOG = logging.getLogger("wormcast.control")

DEBOUNCE_S = 0.03
"""From the first change until a plan is made, so that changes that come together share one."""
STAGE_TIMEOUT_S = 0.5
"""A switch that takes longer for a stage does not hold up the others; its writes go on."""

SETTLE_TIMEOUT_S = 2.0
"""Longest wait of a request for the plan that follows from it."""


@dataclass(frozen=True)
class View:
    """What a plan is made from."""

    topology: Topology
    known: Topology
    """What is up, and what is suspected to be away for a moment."""
    groups: tuple[Group, ...]
    agents: frozenset[HostId]
    live: frozenset[HostId]
    class_d: ClassDNumbers = NARROW

    @functools.cached_property
    def by_id(self) -> dict[GroupId, Group]:
        """The groups by id."""
        return {group.id: group for group in self.groups}


@dataclass
class PlanFigures:
    """Counts for /v1/metrics."""

    plans: int = 0
    failures: int = 0
    seconds: float = 0.0
    epochs_not_kept: int = 0
    last_error: str = ""


class Reconciler:
    """Makes a plan whenever something changed and brings it to switches and agents."""

    def __init__(
        self,
        look: Callable[[], View],
        pathfinder: Pathfinder,
        database: Database,
        sessions: Mapping[SwitchId, SwitchSession],
        directory: AgentDirectory,
        events: EventLog,
    ) -> None:
        self._look = look
        self._pathfinder = pathfinder
        self._database = database
        self._sessions = sessions
        self._directory = directory
        self._events = events
        self._changed = asyncio.Event()
        self._view: View | None = None
        self._slow: set[asyncio.Task[None]] = set()
        self._waiting: list[asyncio.Future[None]] = []
        self.epoch, self._digest = database.agent_plan()
        self.state = FabricState()
        self._shortfalls: tuple[FabricState, dict[GroupId, dict[HostId, str]]] = (self.state, {})
        self.figures = PlanFigures()

    def outbid(self, epoch: Epoch) -> None:
        """An agent knows a later epoch, of a state file that is lost: the next plan comes after it."""
        if epoch > self.epoch:
            LOG.warning(
                "an agent follows epoch %d, later than ours %d; going on from there", epoch, self.epoch
            )
            self.epoch, self._digest, self._view = epoch, "", None
            self.notice()

    @property
    def view(self) -> View | None:
        """What the plan in force was made from; None before the first."""
        return self._view

    def shortfalls(self, group: GroupId) -> Mapping[HostId, str]:
        """Members of a group that its plan in force cannot serve, and why."""
        state, by_group = self._shortfalls
        if state is not self.state:
            by_group = {}
            for shortfall in self.state.shortfalls:
                by_group.setdefault(shortfall.group, {})[shortfall.host] = shortfall.reason
            self._shortfalls = (self.state, by_group)
        return by_group.get(group, {})

    def notice(self) -> None:
        """Something may have changed."""
        self._changed.set()

    async def settle(self) -> None:
        """Waits until all that was noticed so far is planned and the agents are told, at most `SETTLE_TIMEOUT_S`."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self.notice()
        await asyncio.wait({done}, timeout=SETTLE_TIMEOUT_S)

    async def run(self) -> None:
        """Plans for ever."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(DEBOUNCE_S)
            self._changed.clear()
            waiting, self._waiting = self._waiting, []
            await self.replan()
            for done in waiting:
                if not done.done():
                    done.set_result(None)

    async def replan(self) -> None:
        """Makes a plan if what it is made from differs from last time, and brings it out."""
        view = self._look()
        if view == self._view:
            return
        began = time.perf_counter()
        try:
            state, digest = await asyncio.to_thread(self._plan, view)
        except (ValueError, AssertionError) as error:
            self.figures.failures += 1
            self.figures.last_error = str(error)
            LOG.exception("no plan for this topology; the one before stays in force")
            self._events.add("plan_failed", time.time(), error=str(error))
            return
        self.figures.plans += 1
        self.figures.seconds += time.perf_counter() - began
        self.figures.last_error = ""
        self._view, self.state = view, state
        await self._bring_out(state, digest)

    def _plan(self, view: View) -> tuple[FabricState, str]:
        """Runs beside the event loop: on large fabrics it takes longer than a probe may wait."""
        state = plan(
            view.topology,
            view.groups,
            view.agents,
            view.live,
            self._pathfinder,
            view.class_d,
            view.known,
        )
        return state, digest_agents(state.agents)

    async def _bring_out(self, state: FabricState, digest: str) -> None:
        news = digest != self._digest
        if news:
            self.epoch, self._digest = Epoch(self.epoch + 1), digest
            self._keep_epoch(digest)
        for switch, wanted in state.switches.items():
            if switch in self._sessions:
                self._sessions[switch].desire(wanted)
        await self._advance(Stage.SHRINK)
        await self._advance(Stage.GROW)
        self._directory.publish(await asyncio.to_thread(encode_plans, state.agents, self.epoch))
        if news:
            self._events.add(
                "plan",
                time.time(),
                epoch=self.epoch,
                switches=len(state.switches),
                agents=len(state.agents),
                shortfalls=[{"group": s.group, "host": s.host, "reason": s.reason} for s in state.shortfalls],
            )
        await self._advance(Stage.RETIRE)

    def _keep_epoch(self, digest: str) -> None:
        try:
            self._database.put_agent_plan(self.epoch, digest)
        except StoreError as error:
            # Agents must get their way around a failure; after a restart `outbid` learns the epoch from them.
            self.figures.epochs_not_kept += 1
            LOG.error("epoch %d is not kept: %s", self.epoch, error)

    async def _advance(self, stage: Stage) -> None:
        tasks = {asyncio.create_task(session.advance(stage)) for session in self._sessions.values()}
        if not tasks:
            return
        done, slow = await asyncio.wait(tasks, timeout=STAGE_TIMEOUT_S)
        for task in done:
            if (error := task.exception()) is not None:
                LOG.error("stage %s failed", stage.name, exc_info=error)
        self._slow |= slow
        for task in slow:
            task.add_done_callback(self._slow.discard)
