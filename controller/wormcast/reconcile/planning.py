"""From what a plan is made from to the plan: what every switch and every agent should have."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from wormcast_planner import AgentGroup, FabricState, Planner, RoutingError

from wormcast.gather import GatherEpochs
from wormcast.network.ids import GroupId, HostId
from wormcast.network.routing import Routing
from wormcast.p4rt.artifacts import Artifacts
from wormcast.reconcile.agent_plans import AgentPlans
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.view import View
from wormcast.reconcile.wanted import Wanted
from wormcast.store.database import Database, StoreError
from wormcast.wire import TOFINO_MAX_ROUTE
from wormcast.wormhole.switching import WORMHOLE

LOG = logging.getLogger("wormcast.reconcile")

RETRY_FIRST_S = 1.0
"""From a plan that failed until the next attempt at the same; doubles up to `RETRY_MAX_S`."""
RETRY_MAX_S = 60.0


@dataclass
class PlanFigures:
    """Counts for /v1/metrics."""

    plans: int = 0
    failures: int = 0
    seconds: float = 0.0
    orders_not_kept: int = 0
    last_error: str = ""


class Planning:
    """The plan in force, and how the next is made. It writes to no switch and no agent."""

    def __init__(self, database: Database, events: EventLog, wanted: Wanted, agent_plans: AgentPlans) -> None:
        self._database = database
        self._events = events
        self._wanted = wanted
        self._agent_plans = agent_plans
        self._planner = Planner(Routing().algorithm)
        self._unicast_alone = False
        """Switches hold channels for UNICAST worms alone in wormhole mode."""
        self._view: View | None = None
        self._failed: View | None = None
        self._retry_at = 0.0
        self._retry_pause_s = RETRY_FIRST_S
        self._reported: frozenset[str] = frozenset()
        """Failures that have been reported."""
        self._stale = False
        """Links that were held back may be used: a new plan has to be made of what is known."""
        self.lock = asyncio.Lock()
        """A plan is being made, or the order of switches changes: not both at once. Only who has it uses the planner,
        which plans in another thread."""
        self.no_trains_since: float | None = None
        """Since when plans have agents send no trains."""
        self._order = database.route_order() or ""
        if self._order:
            self._restore_order()
        self._planner.set_sequencer_epoch(agent_plans.epoch)
        self._gather_epochs = GatherEpochs(database, self._planner, agent_plans.epoch)
        self.state = FabricState()
        self.figures = PlanFigures()

    def _restore_order(self) -> None:
        """Agents may still send worms along the order that was in force."""
        try:
            self._planner.restore_order(self._order)
        except RoutingError as error:
            LOG.error("the order of switches in force is not known: %s", error)
            self._order = ""

    def set_program(self, artifacts: Artifacts) -> None:
        """The switches run this program: plans keep to what it takes. Before the first plan."""
        if artifacts.has_device_ports:
            self._planner.set_tree_route_max(TOFINO_MAX_ROUTE)
        self._unicast_alone = artifacts.holds_unicast_alone

    # -- what is planned ------------------------------------------------------

    @property
    def view(self) -> View | None:
        """What the plan in force was made from; None before the first, and when none is in force any more."""
        return None if self._agent_plans.is_superseded else self._view

    @property
    def order(self) -> str:
        """The order of switches in force, as the planner writes it; empty before the first plan."""
        return self._order

    def shortfalls(self, group: GroupId) -> Mapping[HostId, str]:
        """Why members of a group do not take part, in the plan in force."""
        return self.state.shortfalls_of(group)

    def planned(self, host: HostId, group: GroupId) -> AgentGroup | None:
        """A group as a host is to have it."""
        plan = self.state.agents.get(host)
        return None if plan is None else plan.group(group)

    def groups_planned(self, host: HostId) -> int:
        """How many groups a host is to have."""
        plan = self.state.agents.get(host)
        return 0 if plan is None else len(plan.groups)

    def live(self) -> frozenset[HostId]:
        """Hosts whose agents are there, in the plan in force."""
        return frozenset() if (view := self.view) is None else view.live

    # -- the next plan --------------------------------------------------------

    def is_due(self, view: View) -> bool:
        """Whether a plan has to be made of this: it is other than last time, and has not just failed."""
        must_wait = view == self._failed and time.monotonic() < self._retry_at
        return (view != self.view or self._stale) and not must_wait

    def is_of(self, view: View) -> bool:
        """Whether the plan in force is of this."""
        return view == self.view

    async def make(self, view: View) -> FabricState:
        """A plan whose numbers are later than all that agents had said when it was begun. It is not in force yet."""
        if (epoch := self._agent_plans.take_later_epoch()) is not None:
            self._view = None
            self._planner.set_sequencer_epoch(epoch)
            self._gather_epochs.supersede(epoch)
        if any(group.gather for group in view.groups):
            self._gather_epochs.allow()
        began = time.perf_counter()
        # Beside the event loop: on large fabrics it takes longer than a probe may wait.
        state = await asyncio.to_thread(self._make, view)
        self.figures.seconds += time.perf_counter() - began
        return state

    def _make(self, view: View) -> FabricState:
        try:
            self._planner.set_routing(**view.routing.to_json())
            self._planner.set_costs(view.costs)
            self._planner.set_mtu_limits(view.mtu_limited)
            self._planner.set_down(view.ends_down)
            self._planner.set_guard(view.guard.on, view.guard.closed, view.guard.rates_bytes())
            mode, scheme = view.switching.mode, view.switching.scheme
            if self._unicast_alone and mode == WORMHOLE:
                scheme = "unicast"
            self._planner.set_switching(mode, scheme, view.trains)
            return self._planner.plan(
                view.topology,
                view.known,
                view.groups,
                view.agents,
                view.live,
                view.capacities,
                view.class_d,
                view.away,
            )
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the planner is no Exception
            raise RuntimeError(f"{type(error).__name__}: {error}") from error

    def put_in_force(self, view: View, state: FabricState) -> None:
        """This plan is the one to be brought out."""
        self._failed, self._retry_pause_s, self._stale = None, RETRY_FIRST_S, False
        self.figures.plans += 1
        self._report(state.failures)
        self._view, self.state = view, state
        self._agent_plans.groups = view.by_id
        if view.trains:
            self.no_trains_since = None
        elif self.no_trains_since is None:
            self.no_trains_since = time.monotonic()

    def note_failed(self, view: View | None, error: Exception) -> None:
        """No plan can be made of this now: it is tried again later."""
        pause_s = self._retry_pause_s
        self._failed, self._retry_at = view, time.monotonic() + pause_s
        self._retry_pause_s = min(2 * pause_s, RETRY_MAX_S)
        asyncio.get_running_loop().call_later(pause_s, self._wanted.notice)
        self._report([f"planning failed, the plan before stays in force: {error}"])

    def note_bug(self, error: Exception) -> None:
        """What was being done failed in the middle: nothing is taken for planned."""
        self.note_failed(self._view, error)
        self._view = None

    def _report(self, failures: list[str]) -> None:
        """Reports failures once, until they are over."""
        for text in dict.fromkeys(failures):
            if text not in self._reported:
                self.figures.failures += 1
                LOG.error("%s", text)
                self._events.add("plan_failed", time.time(), error=text)
        self._reported = frozenset(failures)
        self.figures.last_error = "; ".join(dict.fromkeys(failures))

    # -- the order of switches ------------------------------------------------

    def cross(self, state: FabricState) -> None:
        """The new order of switches is in force, no worm keeps to the old one alone any more."""
        self._planner.settle()
        self.keep_order(state.next_order or state.order)

    def keep_order(self, order: str) -> None:
        """Stores the order in force, before any agent has a plan that keeps to it: a restart goes on from there."""
        if order == self._order:
            return
        self._order = order
        try:
            self._database.put_route_order(order)
        except StoreError as error:
            # Agents must get their way around a failure. A restart would take the order before for the one in force.
            self.figures.orders_not_kept += 1
            LOG.error("the order of switches was not written to the state file: %s", error)

    def note_drained(self, state: FabricState) -> None:
        """Older worms have left: links that were held back for them may be used in another plan."""
        if self.state is state and self._planner.drained():
            self._stale = True
            self._wanted.notice()
