"""From what should be to a plan, and from the plan to switches and agents, again and again."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from wormcast_planner import (
    AgentGroup,
    AgentPlan,
    ClassDNumbers,
    FabricState,
    Planner,
    RoutingError,
    complete_costs,
)

from wormcast.directory.server import AgentDirectory
from wormcast.network.groups import Group
from wormcast.network.guard import Guard
from wormcast.network.ids import GroupId, HostId, SwitchId
from wormcast.network.routing import Routing
from wormcast.network.switching import WORMHOLE, Switching
from wormcast.network.topology import PortRef, Topology
from wormcast.p4rt.artifacts import Artifacts
from wormcast.p4rt.convert import TABLE_WORMHOLE
from wormcast.p4rt.session import SwitchSession
from wormcast.p4rt.tables import Stage
from wormcast.reconcile.agent_plans import AgentPlans
from wormcast.reconcile.agent_status import Capacity
from wormcast.reconcile.bring_out import BringOut, Part, Waits
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.gather_epochs import GatherEpochs
from wormcast.reconcile.wanted import Wanted
from wormcast.store.database import Database, StoreError
from wormcast.wire import TOFINO_MAX_ROUTE

LOG = logging.getLogger("wormcast.reconcile")

DEBOUNCE_S = 0.01
"""From the first change of the network until a plan is made, so that changes that come together share one."""
HELD_UP_S = 0.5
"""A plan that switches hold up for longer gives way to the next one that has to be made."""
SETTLE_TIMEOUT_S = 2.0
"""Longest wait of a request for the plan that follows from it."""
RETRY_FIRST_S = 1.0
"""From a plan that failed until the next attempt at the same; doubles up to `RETRY_MAX_S`."""
RETRY_MAX_S = 60.0
COSTS_DEFAULT: Final = complete_costs('"agents"')
"""What groups of scheme auto go by unless the operator says otherwise: a costs file."""
SHORTFALLS_SHOWN = 32
"""Members named in the event of a plan; of more it says how many there are."""


@dataclass(frozen=True)
class View:
    """What a plan is made from."""

    topology: Topology
    known: Topology
    """What is up, and what is suspected to be away for a moment."""
    groups: tuple[Group, ...]
    agents: frozenset[HostId]
    live: frozenset[HostId]
    routing: Routing = field(default_factory=Routing)
    class_d: ClassDNumbers = field(default_factory=ClassDNumbers)
    capacities: dict[HostId, Capacity] = field(default_factory=dict)
    costs: str = COSTS_DEFAULT
    """By which groups of scheme auto choose: a costs file."""
    narrow: Mapping[PortRef, int] = field(default_factory=dict)
    """What links carry less than the longest frames that hosts send, by both ends: bytes after the Ethernet header."""
    ends_down: frozenset[PortRef] = frozenset()
    """Both ends of known links that carry nothing, because a port is down."""
    guard: Guard = field(default_factory=Guard)
    switching: Switching = field(default_factory=Switching)
    trains: bool = False
    """Whether agents are to send trains."""
    away: Mapping[HostId, str] = field(default_factory=dict)
    """What is said of agents that are gone, where it is known since when."""

    @cached_property
    def by_id(self) -> dict[GroupId, Group]:
        """The groups by number."""
        return {group.id: group for group in self.groups}

    def parts(self, switches: Iterable[frozenset[SwitchId]]) -> list[Part]:
        """Joined switches with the hosts on them."""
        hosts: dict[SwitchId, list[HostId]] = {}
        for host in self.topology.hosts:
            hosts.setdefault(host.switch, []).append(host.id)
        return [Part(part, frozenset(h for s in part for h in hosts.get(s, ()))) for part in switches]


@dataclass
class PlanFigures:
    """Counts for /v1/metrics."""

    plans: int = 0
    failures: int = 0
    seconds: float = 0.0
    orders_not_kept: int = 0
    last_error: str = ""


class Reconciler:
    """Makes a plan whenever something changed and brings it to switches and agents."""

    def __init__(
        self,
        look: Callable[[], View],
        keep: Callable[[], None],
        database: Database,
        sessions: Mapping[SwitchId, SwitchSession],
        directory: AgentDirectory,
        events: EventLog,
        wanted: Wanted,
        agent_plans: AgentPlans,
        on_switched: Callable[[Switching, bool], bool],
    ) -> None:
        """`keep`: writes to the state file what the last look has found; called when its plan is made, before anybody is
        told of it. `on_switched`: all switches do this, and agents send no trains if they are not to; whether another
        plan follows."""
        self._look = look
        self._keep = keep
        self._wanted = wanted
        self._agent_plans = agent_plans
        self._on_switched = on_switched
        self._no_trains_since: float | None = None
        """Since when plans have agents send no trains."""
        self._planner = Planner(Routing().algorithm)
        self._unicast_alone = False
        """Switches hold channels for UNICAST worms alone in wormhole mode."""
        self._database = database
        self._sessions = sessions
        self._directory = directory
        self._events = events
        self._view: View | None = None
        self._failed: View | None = None
        self._retry_at = 0.0
        self._retry_pause_s = RETRY_FIRST_S
        self._reported: frozenset[str] = frozenset()
        """Failures that have been told."""
        self._covered: list[asyncio.Future[None]] = []
        """Requests whose plan is made and not out yet."""
        self._stale = False
        """Links that were held back may be used: a new plan has to be made of what is known."""
        self._waits = Waits(self._note_slow)
        self._planning = asyncio.Lock()
        """A plan is being made, or the order of switches changes: not both at once. Only who has it uses the planner,
        which plans in another thread."""
        self._watching: asyncio.Task[None] | None = None
        self._steps = agent_plans.steps
        self._order = database.route_order() or ""
        if self._order:
            self._restore_order()
        self._outgoing: asyncio.Task[None] | None = None
        self._planner.set_reign(agent_plans.epoch)
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

    @property
    def view(self) -> View | None:
        """What the plan in force was made from; None before the first, and when none is in force any more."""
        return None if self._agent_plans.is_outbid else self._view

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

    def waiting_for(self) -> dict[SwitchId, float]:
        """Switches that hold up the plan in force, and for how many seconds."""
        now = time.monotonic()
        return {switch: now - since for switch, since in sorted(self._waits.since.items())}

    def is_quiet(self) -> bool:
        """Whether no change is to be planned or under way."""
        return self._steps.change is None and not self._wanted.is_any and not self._planning.locked()

    async def settle(self) -> None:
        """Waits until all that was noticed so far is planned and brought out, at most `SETTLE_TIMEOUT_S`."""
        await asyncio.wait({self._wanted.ask()}, timeout=SETTLE_TIMEOUT_S)

    async def run(self) -> None:
        """Plans for ever."""
        rest_until = 0.0
        while True:
            await self._wanted.wait()
            await self._wanted.put_off(max(DEBOUNCE_S, rest_until - time.monotonic()))
            began = time.monotonic()
            try:
                await self.replan()
            except Exception as error:
                LOG.exception("a bug in planning")
                self._note_failed(self._view, error)
                self._view = None
            # Where much is found at once, as at the start of a large fabric, half of the time is for finding it.
            now = time.monotonic()
            rest_until = now + (now - began)

    async def replan(self) -> None:
        """Makes a plan if what it is made from differs from last time, and brings it out.

        Returns when all is done, or is held up.
        """
        view = self._look()
        self._covered += self._wanted.take_waiting()
        if (view != self.view or self._stale) and not self._must_wait(view):
            await self._plan(view)
        else:
            self._keep()  # no plan follows from it
            if not self._wanted.is_again:
                if self._outgoing is None or self._outgoing.done():
                    self._release()
                return
        self._wanted.take_again()
        await self._bring_out()

    def _must_wait(self, view: View) -> bool:
        return view == self._failed and time.monotonic() < self._retry_at

    async def _plan(self, view: View) -> None:
        async with self._planning:
            began = time.perf_counter()
            try:
                state = await self._make_beyond_bids(view)
            except Exception as error:
                self._note_failed(view, error)
                return
            finally:
                self._keep()
            self._failed, self._retry_pause_s, self._stale = None, RETRY_FIRST_S, False
            self.figures.plans += 1
            self.figures.seconds += time.perf_counter() - began
            self._report(state.failures)
            before = self.view
            self._view, self.state = view, state
            self._agent_plans.groups = view.by_id
            if view.trains:
                self._no_trains_since = None
            elif self._no_trains_since is None:
                self._no_trains_since = time.monotonic()
            self._desire(state)
            await self._permit(before, view)
            self._keep_order(state.order)
            self._steps.plan(state)
            if state.bridge is None:
                await self._tell(state, state.agents, state.digest)
            else:
                await self._tell(state, state.bridge, state.bridge_digest)

    async def _make_beyond_bids(self, view: View) -> FabricState:
        """A plan whose numbers are later than all that agents have told. One that was outbid meanwhile is not told:
        agents may know its numbers by another meaning."""
        while True:
            if (bid := self._agent_plans.take_bid()) is not None:
                self._view = None
                self._planner.set_reign(bid)
                self._gather_epochs.outbid(bid)
            if any(group.gather for group in view.groups):
                self._gather_epochs.allow()
            # Beside the event loop: on large fabrics it takes longer than a probe may wait.
            state = await asyncio.to_thread(self._make, view)
            if not self._agent_plans.is_outbid:
                return state
            self._desire(state)  # the next one says what is other than in this one

    def _desire(self, state: FabricState) -> None:
        for switch, wanted in state.switches.items():
            if switch in self._sessions:
                touched = None if state.touched is None else state.touched.get(switch, ())
                self._sessions[switch].desire(wanted, touched)

    async def _permit(self, before: View | None, view: View) -> None:
        """Before agents are told anything: their switches let it in. One that takes long is not waited for."""
        if view.guard.on or (before is not None and before.guard.on):
            sessions = [s for s in self._sessions.values() if s.connected and s.tables.permits_more]
            if sessions:
                await asyncio.wait([s.advance(Stage.PERMIT) for s in sessions], timeout=HELD_UP_S)

    async def _tell(self, state: FabricState, plans: dict[HostId, AgentPlan], digest: str) -> None:
        """Makes these the plans that agents are to follow, unless they are outbid: then others come."""
        if self._agent_plans.is_outbid:
            return
        if self._agent_plans.begin(digest):
            self._tell_plan(state)
        self._renew(plans)
        self._steps.begin_step(self._agent_plans.epochs(self._agent_plans.told), self._live())

    async def _cross(self, state: FabricState) -> None:
        """Changes the order of switches, when no worm keeps to the old one alone any more."""
        await self._steps.confirmed()
        await self._steps.drained(state.crossed_max)
        async with self._planning:
            self._planner.settle()
            # Before any agent is told of what keeps to the new order alone: a restart goes on from there.
            self._keep_order(state.next_order or state.order)
            self._steps.crossed()
            await self._tell(state, state.agents, state.digest)

    def _make(self, view: View) -> FabricState:
        try:
            self._planner.set_routing(**view.routing.to_json())
            self._planner.set_costs(view.costs)
            self._planner.set_narrow(view.narrow)
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

    def _note_failed(self, view: View | None, error: Exception) -> None:
        pause_s = self._retry_pause_s
        self._failed, self._retry_at = view, time.monotonic() + pause_s
        self._retry_pause_s = min(2 * pause_s, RETRY_MAX_S)
        asyncio.get_running_loop().call_later(pause_s, self._wanted.notice)
        self._report([f"planning failed, the plan before stays in force: {error}"])

    def _report(self, failures: list[str]) -> None:
        """Tells failures once, until they are over."""
        for text in dict.fromkeys(failures):
            if text not in self._reported:
                self.figures.failures += 1
                LOG.error("%s", text)
                self._events.add("plan_failed", time.time(), error=text)
        self._reported = frozenset(failures)
        self.figures.last_error = "; ".join(dict.fromkeys(failures))

    def _tell_plan(self, state: FabricState) -> None:
        self._events.add(
            "plan",
            time.time(),
            epoch=self._agent_plans.epoch,
            switches=len(state.switches),
            agents=len(state.agents),
            shortfalls=[
                {"group": group, "host": host, "reason": reason}
                for group, host, reason in state.shortfalls(SHORTFALLS_SHOWN)
            ],
            shortfalls_total=state.shortfall_count,
            gather_shortfalls_total=state.by_hosts_count,
        )

    def _renew(self, plans: dict[HostId, AgentPlan]) -> None:
        """Makes these what agents are to follow; those whose routes alone are other are told at once."""
        before = self._agent_plans.told
        new = [p for h, p in plans.items() if (told := before.get(h)) is None or told.plan is not p]
        for_routes = [p.host for p in new if p.host in before and p.has_groups_of(before[p.host].plan)]
        self._agent_plans.put(plans, new)
        self._directory.withdraw(self._agent_plans.told)
        # Routes need nothing of switches: they are out at once, unless groups have changed with them.
        self._publish(for_routes)

    async def _bring_out(self) -> None:
        if self._outgoing is not None and not self._outgoing.done():
            self._outgoing.cancel()
            await asyncio.wait({self._outgoing})
        view = self.view
        parts = [] if view is None else view.parts(self.state.parts)
        state, between = self.state, None
        if state.bridge is not None:
            if state.next_order == self._order:
                await self._tell(state, state.agents, state.digest)  # it may have been cut short
            else:
                self._publish(self._agent_plans.told)
                between = functools.partial(self._cross, state)
        bringing = BringOut(
            self._sessions, parts, self._publish, self._agent_plans.told, self._waits, between
        )
        self._outgoing = asyncio.create_task(bringing.run(), name="bring-out")
        self._outgoing.add_done_callback(self._note_brought_out)
        if between is None:
            self._watch()
        await asyncio.wait({self._outgoing}, timeout=HELD_UP_S)

    def _note_brought_out(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
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
        self._watching = asyncio.create_task(self._follow(self.state, is_out), name="confirmed")

    async def _follow(self, state: FabricState, is_out: bool) -> None:
        """Names agents that are slow to confirm, and says when older worms have left."""
        await self._steps.confirmed()
        if is_out and (view := self.view) is not None:
            await self._switch(view, state)
        revocable = [
            (session, wanted)
            for switch, wanted in state.switches.items()
            if is_out and (session := self._sessions.get(switch)) is not None and session.tables.revocable
        ]
        if revocable:
            told = self._agent_plans.epochs(self._live())
            await self._steps.followed(told, state.crossed_max)
            await asyncio.gather(*(session.revoke(wanted) for session, wanted in revocable))
        if not state.drains:
            return
        await self._steps.left(state.crossed_max)
        async with self._planning:
            if self.state is state and self._planner.drained():
                self._stale = True
                self._wanted.notice()

    async def _switch(self, view: View, state: FabricState) -> None:
        """All switches have the plan. Where agents are to have stopped sending trains, waits until they have."""
        if any(session.tables.refuses(TABLE_WORMHOLE) for session in self._sessions.values()):
            return  # one that is not in the mode drops trains
        if (since := self._no_trains_since) is not None:
            told = self._agent_plans.epochs(view.live)
            await self._steps.followed(told, state.crossed_max, since)
        try:
            if self._on_switched(view.switching, view.trains):
                self._wanted.notice()
        except StoreError as error:
            LOG.error("what agents may send was not written to the state file, so it stays: %s", error)
            asyncio.get_running_loop().call_later(RETRY_FIRST_S, self._wanted.bring_out_again)

    def _release(self) -> None:
        """Lets go of requests whose plan is out; one that came meanwhile waits for the next."""
        covered, self._covered = self._covered, []
        for done in covered:
            if not done.done():
                done.set_result(None)

    def _publish(self, hosts: Iterable[HostId]) -> None:
        told = self._agent_plans.told
        self._directory.publish({host: told[host] for host in hosts if host in told})

    def _live(self) -> frozenset[HostId]:
        return frozenset() if (view := self.view) is None else view.live

    def _note_slow(self, switch: SwitchId, stage: Stage) -> None:
        LOG.warning("switch %d holds up the plan: it has not finished stage %s", switch, stage.name)
        self._events.add("switch_slow", time.time(), switch=switch, stage=stage.name.lower())

    def _keep_order(self, order: str) -> None:
        if order == self._order:
            return
        self._order = order
        try:
            self._database.put_route_order(order)
        except StoreError as error:
            # Agents must get their way around a failure. A restart would take the order before for the one in force.
            self.figures.orders_not_kept += 1
            LOG.error("the order of switches was not written to the state file: %s", error)
