"""From what should be to a plan, and from the plan to switches and agents, again and again.

`Planning` computes what is wanted, `SwitchWriter` and `AgentWriter` write it. They know nothing of each other: what is
done when is decided here.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable

from wormcast_planner import FabricState

from wormcast.reconcile.agent_plans import AgentPlans
from wormcast.reconcile.agent_writer import AgentWriter
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.planning import RETRY_FIRST_S, Planning
from wormcast.reconcile.switch_writer import HELD_UP_S, SwitchWriter
from wormcast.reconcile.view import View
from wormcast.reconcile.wanted import Asked, Wanted
from wormcast.store.database import StoreError
from wormcast.wormhole.switching import Switching

LOG = logging.getLogger("wormcast.reconcile")

DEBOUNCE_S = 0.01
"""From the first change of the network until a plan is made, so that changes that come together share one."""
SETTLE_TIMEOUT_S = 2.0
"""Longest wait of a request for switches and agents to get the plan that follows from it."""


class Reconciler:
    """Makes a plan whenever something changed and brings it to switches and agents."""

    def __init__(
        self,
        look: Callable[[], View],
        keep: Callable[[], None],
        wanted: Wanted,
        planning: Planning,
        switches: SwitchWriter,
        agents: AgentWriter,
        agent_plans: AgentPlans,
        events: EventLog,
        on_switched: Callable[[Switching, bool], bool],
    ) -> None:
        """`keep`: writes to the state file what the last look has found; called when its plan is made, before anybody
        is sent it. `on_switched`: all switches do this, and agents send no trains if they are not to; whether another
        plan follows."""
        self._look = look
        self._keep = keep
        self._wanted = wanted
        self._planning = planning
        self._switches = switches
        self._agents = agents
        self._agent_plans = agent_plans
        self._steps = agent_plans.steps
        self._events = events
        self._on_switched = on_switched
        self._covered: list[Asked] = []
        """Requests whose plan is being made, or made and not out yet."""
        self._runs = False
        """Whether plans are made: before and after that nobody waits for one without limit."""
        self._outgoing: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    def is_quiet(self) -> bool:
        """Whether no change is to be planned or under way."""
        return self._steps.change is None and not self._wanted.is_any and not self._planning.lock.locked()

    async def settle(self) -> None:
        """Waits until all that was noticed so far is planned, however long this machine takes, so that nobody is shown the
        plan before as its result; and brought out, at most `SETTLE_TIMEOUT_S` more."""
        asked = self._wanted.ask()
        while self._runs and not asked.planned.done():
            await asyncio.wait({asked.planned}, timeout=SETTLE_TIMEOUT_S)
        await asyncio.wait({asked.out}, timeout=SETTLE_TIMEOUT_S)

    async def run(self) -> None:
        self._runs = True
        try:
            await self._run()
        finally:
            self._runs = False

    async def _run(self) -> None:
        rest_until = 0.0
        while True:
            await self._wanted.wait()
            await self._wanted.put_off(max(DEBOUNCE_S, rest_until - time.monotonic()))
            began = time.monotonic()
            try:
                await self.replan()
            except Exception as error:
                LOG.exception("a bug in planning")
                self._planning.note_bug(error)
                self._note_planned()
            # Where much is found at once, as at the start of a large fabric, half of the time is for finding it.
            now = time.monotonic()
            rest_until = now + (now - began)

    async def replan(self) -> None:
        """Makes a plan if what it is made from differs from last time, and brings it out.

        Returns when all is done, or is held up.
        """
        self._covered += self._wanted.take_waiting()
        view = self._look()
        is_due = self._planning.is_due(view)
        if is_due:
            await self._plan(view)
        elif self._planning.is_of(view):
            self._keep()  # no plan follows from it
        self._note_planned()
        if not is_due and not self._wanted.is_again:
            if self._outgoing is None or self._outgoing.done():
                self._release()
            return
        self._wanted.take_again()
        await self._bring_out()

    async def _plan(self, view: View) -> None:
        async with self._planning.lock:
            try:
                state = await self._make_latest(view)
            except Exception as error:
                self._planning.note_failed(view, error)
                return
            self._keep()
            before = self._planning.view
            self._planning.put_in_force(view, state)
            self._switches.desire(state)
            await self._switches.permit(before, view)
            self._planning.keep_order(state.order)
            self._steps.plan(state)
            self._agents.issue(state, self._planning.live(), bridge=state.bridge is not None)

    async def _make_latest(self, view: View) -> FabricState:
        """A plan whose numbers are later than all that agents know. One that was superseded meanwhile is not sent: agents
        may know its numbers by another meaning."""
        while True:
            state = await self._planning.make(view)
            if not self._agent_plans.is_superseded:
                return state
            self._switches.desire(state)

    async def _cross(self, state: FabricState) -> None:
        """Changes the order of switches, when no worm keeps to the old one alone any more."""
        await self._steps.confirmed()
        await self._steps.drained(state.crossed_max)
        async with self._planning.lock:
            self._planning.cross(state)
            self._steps.crossed()
            self._agents.issue(state, self._planning.live())

    async def _bring_out(self) -> None:
        if self._outgoing is not None and not self._outgoing.done():
            self._outgoing.cancel()
            await asyncio.wait({self._outgoing})
        state, between = self._planning.state, None
        if state.bridge is not None:
            if state.next_order == self._planning.order:
                self._agents.issue(state, self._planning.live())  # it may have been cut short
            else:
                self._agents.publish(self._agent_plans.issued)
                between = functools.partial(self._cross, state)
        bringing = self._switches.bring_out(
            self._planning.view, state, self._agents.publish, self._agent_plans.issued, between
        )
        self._outgoing = asyncio.create_task(bringing.run(), name="bring-out")
        self._outgoing.add_done_callback(functools.partial(self._note_brought_out, state))
        if between is None:
            self._watch()
        await asyncio.wait({self._outgoing}, timeout=HELD_UP_S)

    def _note_brought_out(self, state: FabricState, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if state is not self._planning.state:
            return  # another is made, and not out
        if error is not None:
            LOG.error("a plan could not be installed", exc_info=error)
            self._events.add("plan_failed", time.time(), error=f"not installed: {error}")
            asyncio.get_running_loop().call_later(RETRY_FIRST_S, self._wanted.bring_out_again)
            return
        self._watch(is_out=True)
        self._release()

    def _watch(self, is_out: bool = False) -> None:
        """Goes on until all agents follow the plan; `is_out`: all switches have it."""
        if self._watching is not None:
            self._watching.cancel()
        self._watching = asyncio.create_task(self._follow(self._planning.state, is_out), name="confirmed")

    async def _follow(self, state: FabricState, is_out: bool) -> None:
        """Names agents that are slow to confirm, and says when older worms have left."""
        await self._steps.confirmed()
        if is_out:
            if (view := self._planning.view) is not None:
                await self._switch(view, state)
            await self._switches.revoke(state, functools.partial(self._followed, state))
        if not state.drains:
            return
        await self._steps.left(state.crossed_max)
        async with self._planning.lock:
            self._planning.note_drained(state)

    async def _followed(self, state: FabricState, since: float | None = None) -> None:
        """Waits until live agents follow what they were sent, and older worms have left."""
        issued = self._agent_plans.epochs(self._planning.live())
        await self._steps.followed(issued, state.crossed_max, since)

    async def _switch(self, view: View, state: FabricState) -> None:
        """All switches have the plan. Where agents are to have stopped sending trains, waits until they have."""
        if self._switches.refuse_wormhole_mode:
            return  # one that is not in the mode drops trains
        if (since := self._planning.no_trains_since) is not None:
            await self._followed(state, since)
        try:
            if self._on_switched(view.switching, view.trains):
                self._wanted.notice()
        except StoreError as error:
            LOG.error("what agents may send was not written to the state file, so it stays: %s", error)
            asyncio.get_running_loop().call_later(RETRY_FIRST_S, self._wanted.bring_out_again)

    def _release(self) -> None:
        """Lets go of requests whose plan is out; one whose plan is being made meanwhile waits for that."""
        covered = self._covered
        self._covered = [asked for asked in covered if not asked.planned.done()]
        for asked in covered:
            if asked.planned.done() and not asked.out.done():
                asked.out.set_result(None)

    def _note_planned(self) -> None:
        for asked in self._covered:
            if not asked.planned.done():
                asked.planned.set_result(None)
