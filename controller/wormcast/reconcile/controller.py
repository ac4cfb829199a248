"""The controller: joins discovery, planning, switches, agents and the state file."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import secrets
import time
from collections.abc import Iterable, Sequence

from wormcast_planner import RoutingError, complete_costs

from wormcast.directory.messages import TEXT_MAX
from wormcast.directory.server import AgentDirectory
from wormcast.discovery.hosts import GONE_AFTER_S, HostRecord, HostRefused, HostRegistry
from wormcast.discovery.links import PROBE_INTERVAL_S, LinkMonitor
from wormcast.guard.settings import GuardSettings
from wormcast.network.groups import Group
from wormcast.network.ids import GroupId, HostId, PortId, SwitchId
from wormcast.network.routing import Routing
from wormcast.network.topology import Grid, PortRef, Topology
from wormcast.p4rt.artifacts import Artifacts
from wormcast.p4rt.session import SwitchSession
from wormcast.reconcile.agent_events import AgentEvents
from wormcast.reconcile.agent_plans import AgentPlans
from wormcast.reconcile.agent_status import AgentStatus, Capacity
from wormcast.reconcile.agent_writer import AgentWriter
from wormcast.reconcile.change_rate import ChangeRate
from wormcast.reconcile.clock import LivedClock
from wormcast.reconcile.discovered import Discovered
from wormcast.reconcile.errors import RequestError, as_number, unknown
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.garbage import collect_at_quiet_times
from wormcast.reconcile.group_registry import GroupRegistry
from wormcast.reconcile.lag_queries import LagQueries
from wormcast.reconcile.network_watch import NetworkWatch
from wormcast.reconcile.packet_in import PacketIns
from wormcast.reconcile.planning import Planning
from wormcast.reconcile.port_sources import check_port_sources
from wormcast.reconcile.reconciler import Reconciler
from wormcast.reconcile.state_watch import watch_state
from wormcast.reconcile.supervise import supervise
from wormcast.reconcile.switch_check import check_grid, check_new_switch, check_switch
from wormcast.reconcile.switch_events import SwitchEvents
from wormcast.reconcile.switch_writer import SwitchWriter
from wormcast.reconcile.view import COSTS_DEFAULT, View
from wormcast.reconcile.wanted import Wanted
from wormcast.sockets import SocketAccess
from wormcast.store.database import Database, SwitchSpec
from wormcast.trace.registry import TraceRegistry
from wormcast.transfers.registry import TransferRegistry
from wormcast.wormhole.settings import SwitchingSettings
from wormcast.wormhole.switching import Switching

EVENTS_AT_ONCE = 256
"""Events of one request before watchers get their turn: fewer than wait for one of them at most."""


class Controller:
    """One fabric. Single-threaded: all methods run on the event loop they were started on."""

    def __init__(
        self,
        database: Database,
        artifacts: Artifacts,
        routing: Routing | None = None,
        *,
        probe_interval_s: float = PROBE_INTERVAL_S,
        class_d: str | None = None,
        gone_after_s: float = GONE_AFTER_S,
        guard: bool | None = None,
        switching: Switching | None = None,
    ) -> None:
        self.clock = LivedClock()
        self._database = database
        self.state_problem = database.problem
        self.artifacts = artifacts
        # Later starts win the arbitration; on a reconnect the same id comes back.
        self._election_id = time.time_ns() // 1_000_000
        self._background: list[asyncio.Task[None]] = []
        self.routing = database.keep_routing(routing)
        """Unicast routes, as the operator wants them."""
        self.costs = database.costs() or COSTS_DEFAULT
        """What groups of scheme auto go by: a costs file."""
        self._changes = ChangeRate()
        self.task_failures = 0
        """Times a background task failed and was started again, which is a bug."""
        self.sessions: dict[SwitchId, SwitchSession] = {}
        self.agents: dict[HostId, AgentStatus] = {}
        self.events = EventLog()
        self.monitor = LinkMonitor(probe_interval_s)
        self.hosts = HostRegistry(gone_after_s)
        self.discovered = Discovered(self.monitor, self.hosts)
        self.groups = GroupRegistry(
            database, self.hosts, class_d, self._capacity, lambda: self.discovered.grid is not None
        )
        self.guard = GuardSettings(database, self.groups, self.hosts, guard)
        self.switching = SwitchingSettings(database, artifacts, switching)

        # Each knows those above it alone: what is wanted, what looks, what hears, what plans, what writes, what reconciles.
        self.wanted = Wanted()
        self.agent_plans = AgentPlans(database, self.events, self.wanted)
        self.packets = PacketIns(
            secrets.token_bytes(32), self.monitor, self.hosts, lambda: self.guard.guard, self.events
        )
        self.network = NetworkWatch(
            database, self.discovered, self.sessions, self.packets, self.clock, self.events, self.wanted
        )
        self.switch_events = SwitchEvents(
            self.network, self.monitor, self.packets, self.clock, self.events, self.wanted
        )
        self.agent_events = AgentEvents(
            database,
            self.network,
            self.hosts,
            self.agents,
            self.groups,
            self.guard,
            self.packets,
            self.agent_plans,
            self.clock,
            self.events,
            self.wanted,
            has_device_ports=artifacts.has_device_ports,
        )
        self.directory = AgentDirectory(self.agent_events)
        self.traces = self.directory.traces = TraceRegistry(
            self.directory, lambda: self.network.topology().to_json()
        )
        self.lags = self.directory.lags = LagQueries(self.directory)
        self.transfers = self.directory.transfers = TransferRegistry(
            self.events, self._members_of, self.directory.is_attached
        )
        self.planning = Planning(database, self.events, self.wanted, self.agent_plans)
        self.planning.set_program(artifacts)
        self.switch_writer = SwitchWriter(self.sessions, self.events)
        self.reconciler = Reconciler(
            self.look,
            self.network.keep,
            self.wanted,
            self.planning,
            self.switch_writer,
            AgentWriter(self.directory, self.agent_plans, self.events),
            self.agent_plans,
            self.events,
            self.switching.done,
        )
        self._restore()

    def _restore(self) -> None:
        self.discovered.grid = self._database.grid()
        up = self._database.switches_up()
        for spec in self._database.switches():
            self._open(spec, self.clock.now(), remembered=spec.id in up)
        self.network.restore()

    # -- life ---------------------------------------------------------------

    async def start(self, agent_addresses: Iterable[str], access: SocketAccess | None = None) -> list[str]:
        """Begins to work; returns the addresses agents can dial, those that are Unix sockets with this access."""
        await self.reconciler.replan()
        bound = await self.directory.start(agent_addresses, access)
        for session in self.sessions.values():
            session.start()
        look = functools.partial(self.network.run, self.reconciler.is_quiet)
        self._background = [
            asyncio.create_task(supervise("tick", look, self._note_task), name="tick"),
            asyncio.create_task(supervise("plan", self.reconciler.run, self._note_task), name="plan"),
            asyncio.create_task(collect_at_quiet_times(self.reconciler.is_quiet), name="garbage"),
            asyncio.create_task(watch_state(self.state_problem, self.events), name="state"),
        ]
        await asyncio.sleep(0)  # they have begun
        return bound

    async def stop(self) -> None:
        """Stops; the fabric goes on forwarding."""
        self.events.close()
        for task in self._background:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self.network.stop()
        await self.traces.stop()
        await self.directory.stop()
        await asyncio.gather(*(session.stop() for session in self.sessions.values()))
        self._database.close()

    def _note_task(self, name: str, error: BaseException) -> None:
        self.task_failures += 1
        self.events.add(
            "task_failed", time.time(), task=name, error=f"{type(error).__name__}: {error}"[:TEXT_MAX]
        )

    # -- requests -----------------------------------------------------------

    def put_switches(self, specs: Sequence[SwitchSpec], grid: Grid | None = None) -> None:
        """Adds switches, all or none; one that is there as given stays. With a grid, all have these coordinates
        from now on. Raises `RequestError`."""
        known = {switch: session.spec for switch, session in self.sessions.items()}
        for spec in specs:
            check_switch(spec)
            check_port_sources(spec, self.artifacts.has_device_ports)
            self.switching.check_switch(spec)
            check_new_switch(spec, known)
            known[spec.id] = spec
        check_grid(grid or self.discovered.grid, known)
        if grid is not None and grid != self.discovered.grid:
            self._database.put_grid(grid)
            self.discovered.grid = grid
            self.network.notice()
        new = [spec for spec in known.values() if spec.id not in self.sessions]
        self._database.put_switches(known.values())
        for switch, session in self.sessions.items():
            session.respecify(known[switch])
        for spec in new:
            self._open(spec, self.clock.now(), remembered=False)
            if self._background:
                self.sessions[spec.id].start()

    async def remove_switch(self, switch: int) -> None:
        """Forgets a switch; raises `RequestError`."""
        session = self.sessions.pop(SwitchId(switch), None)
        if session is None:
            raise unknown("switch", switch, sorted(self.sessions))
        self._database.remove_switch(session.spec.id)
        self.monitor.remove_switch(session.spec.id)
        self.guard.forget_switch(session.spec.id)
        await session.stop()
        self.network.notice()

    def check_routing(self, routing: Routing) -> None:
        """Raises `RequestError` for a root that is no switch of this fabric."""
        if routing.root is not None and routing.root not in self.sessions:
            raise RequestError(
                422, f"there is no switch {routing.root}", value=routing.root, choices=sorted(self.sessions)
            )

    async def put_routing(self, routing: Routing) -> None:
        """Uses other unicast routes from now on, and waits for the plan that follows. Raises `RequestError`,
        `StoreError`."""
        self.check_routing(routing)
        if routing != self.routing:
            self._database.put_routing(routing)
            self.routing = routing
            self.events.add("routing_changed", time.time(), **routing.to_json())
        await self.reconciler.settle()

    async def put_costs(self, costs: str) -> None:
        """Chooses by other costs in groups of scheme auto from now on, a costs file, and waits for the plan that
        follows. Raises `RequestError`, `StoreError`."""
        try:
            complete = complete_costs(costs)
        except RoutingError as error:
            raise RequestError(422, str(error)) from None
        if complete != self.costs:
            self._database.put_costs(complete)
            self.costs = complete
        await self.reconciler.settle()

    def root_of(self, switch: SwitchId) -> SwitchId | None:
        """The root of the connected part that a switch is in, in the plan in force."""
        state = self.planning.state
        roots = zip(state.parts, state.roots, strict=True)
        return next((SwitchId(root) for part, root in roots if switch in part), None)

    def declare_host(self, name: str | None, switch: int, port: int, host: int | None) -> HostRecord:
        """Says which port a host is connected to; raises `RequestError`."""
        place = self.find_port(switch, port)
        if self.monitor.leads_to_switch(place):
            raise RequestError(
                409, f"port {port} of switch {switch} leads to a switch", value=port, bound="a free port"
            )
        try:
            record = self.hosts.declare(name, place, host, self.clock.now())
        except HostRefused as error:
            raise RequestError(409, str(error), value=error.value, bound=error.bound) from error
        self.network.notice()
        return record

    def find_port(self, switch: int, port: int) -> PortRef:
        """A port of a switch; raises `RequestError`."""
        session = self.sessions.get(SwitchId(switch))
        if session is None:
            raise unknown("switch", switch, sorted(self.sessions))
        if not 0 <= port < session.spec.ports:
            raise RequestError(
                422,
                f"switch {switch} has no port {port}",
                value=port,
                bound=f"0 to {session.spec.ports - 1}",
            )
        return SwitchId(switch), PortId(port)

    def forget_host(self, key: int | str) -> None:
        """Removes a host that has no attached agent; raises `RequestError`."""
        record = self.find_host(key)
        if record.attached:
            raise RequestError(
                409, f"the agent of host {record.id} is connected; stop it first", value=record.id
            )
        self.hosts.forget(record.id)
        self.agents.pop(record.id, None)
        self.agent_plans.steps.forgotten(record.id)
        self.guard.forget_host(record.id)
        self.network.write(lambda: self._database.remove_secret(record.name))
        self.network.notice()

    def _members_of(self, group: GroupId) -> Sequence[HostId]:
        found = self.groups.find(group)
        return () if found is None else found.members

    def find_host(self, key: int | str) -> HostRecord:
        """A host by id or name; raises `RequestError`."""
        number = as_number(key)
        record = self.hosts.named(str(key)) if number is None else self.hosts.get(HostId(number))
        if record is None:
            known = self.hosts.records()
            raise unknown("host", key, [r.name if number is None else r.id for r in known])
        return record

    async def announce_groups(self, kind: str, groups: Sequence[Group], wait: bool | None) -> None:
        """Records what a request did to groups, and waits for the plan that follows: `wait` says whether, None
        that it does so unless changes come faster than plans are made."""
        if kind == "group_deleted":
            self.guard.forget_groups(group.id for group in groups)
        if wait is None:
            wait = self._changes.calm(time.monotonic())
        for number, group in enumerate(groups, 1):
            self.events.add(kind, time.time(), group=group.id, name=group.name, members=list(group.members))
            if number % EVENTS_AT_ONCE == 0:
                await asyncio.sleep(0)  # watchers take what there is
        if wait:
            began = time.monotonic()
            await self.reconciler.settle()
            self._changes.waited(time.monotonic(), time.monotonic() - began)
        else:
            self.wanted.notice()

    # -- what the plan is made from -----------------------------------------

    def look(self) -> View:
        """Topology, groups and hosts as they are now."""
        self.network.take()
        now = self.clock.now()
        topology = self.discovered.topology(now)
        return View(
            topology,
            self.discovered.known_topology(topology, now),
            tuple(self.groups.groups()),
            frozenset(r.id for r in self.hosts.records() if r.agent),
            self.hosts.live(now),
            self.routing,
            self.groups.class_d,
            {
                host: status.capacity(self.groups.find)
                for host, status in self.agents.items()
                if status.is_bounded()
            },
            self.costs,
            self.network.mtu_limited,
            self.monitor.ends_down(),
            self.guard.guard,
            *self.switching.planned,
            self.hosts.away(now, time.time()),
        )

    def _capacity(self, host: HostId) -> Capacity | None:
        status = self.agents.get(host)
        return None if status is None or not status.is_bounded() else status.capacity(lambda _: None)

    def topology(self) -> Topology:
        """What is up."""
        return self.discovered.topology(self.clock.now())

    # -- work of its own ----------------------------------------------------

    def _open(self, spec: SwitchSpec, now: float, *, remembered: bool) -> None:
        self.monitor.add_switch(spec.id, spec.ports, now, remembered=remembered)
        self.sessions[spec.id] = SwitchSession(
            spec, self.artifacts, self._election_id, self.switch_events, self.sessions.__len__
        )
