"""The controller: joins discovery, planning, switches, agents and the state file."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

from wormcast_planner import RoutingError, complete_costs

from wormcast.directory.messages import NO_USES, NOTHING, REVISION_LIMITS, TEXT_MAX, BadMessage, RouteUses
from wormcast.directory.server import AgentDirectory
from wormcast.discovery.hosts import GONE_AFTER_S, NOBODY, Caller, HostRecord, HostRefused, HostRegistry
from wormcast.discovery.links import PROBE_INTERVAL_S, LinkMonitor, echo_port
from wormcast.network.groups import Group
from wormcast.network.ids import CPU_PORT, Epoch, GroupId, HostId, PortId, SwitchId
from wormcast.network.routing import Routing
from wormcast.network.switching import Switching
from wormcast.network.topology import Grid, PortRef, Topology
from wormcast.p4rt.artifacts import Artifacts
from wormcast.p4rt.port_states import PortsTold
from wormcast.p4rt.session import SwitchSession
from wormcast.p4rt.tables import Strayed
from wormcast.reconcile.agent_status import COUNTERS_MAX, AgentStatus, Capacity
from wormcast.reconcile.change_rate import ChangeRate
from wormcast.reconcile.chip_ports import check_agent
from wormcast.reconcile.clock import LivedClock
from wormcast.reconcile.discovered import NOTHING as NOTHING_FOUND
from wormcast.reconcile.discovered import Discovered, changes
from wormcast.reconcile.errors import RequestError, as_number, unknown
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.garbage import collect_at_quiet_times
from wormcast.reconcile.giving_way import GivingWay
from wormcast.reconcile.group_book import GroupBook
from wormcast.reconcile.guard_book import GuardBook
from wormcast.reconcile.lag_book import LagBook
from wormcast.reconcile.lateness import Lateness
from wormcast.reconcile.mtu_watch import LOOK_LATER_S, MtuWatch
from wormcast.reconcile.pacing import Paced
from wormcast.reconcile.packet_in import PacketIns
from wormcast.reconcile.port_sources import check_port_sources
from wormcast.reconcile.reconciler import COSTS_DEFAULT, Reconciler, View
from wormcast.reconcile.state_watch import watch_state
from wormcast.reconcile.supervise import supervise
from wormcast.reconcile.switch_check import check_grid, check_new_switch, check_switch
from wormcast.reconcile.switching_book import SwitchingBook
from wormcast.reconcile.trace_book import TraceBook
from wormcast.sockets import SocketAccess
from wormcast.store.database import EPOCH_TOLD_MAX, Database, StoreError, SwitchSpec

LOG = logging.getLogger("wormcast.reconcile")

TICK_MIN_S = 0.01
TICK_MAX_S = 0.25
LOOK_INTERVAL_S = 0.1
"""Between looks at what time alone has changed; a link that is down is looked at at once."""
TICK_REST = 4.0
"""After a tick the others have the loop for so many times as long as it took: it looks at every port."""
PROBES_WAIT_S = 0.1
"""While routes change probes wait, so long at most: of 256 switches they had a third of the event loop."""
PAUSED_COUNTER = "loop.paused_ms"
"""What agents call the time that they should have run and did not."""
MTU_REST = 50.0
"""`Paced`, for looks at the MTUs of all interfaces."""
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
        self._network = NOTHING_FOUND
        self.routing = database.keep_routing(routing)
        """Unicast routes, as the operator wants them."""
        self.costs = database.costs() or COSTS_DEFAULT
        """What groups of scheme auto go by: a costs file."""
        self.events = EventLog()
        self.monitor = LinkMonitor(probe_interval_s)
        self.hosts = HostRegistry(gone_after_s)
        self.discovered = Discovered(self.monitor, self.hosts)
        self.groups = GroupBook(
            database, self.hosts, class_d, self._capacity, lambda: self.discovered.grid is not None
        )
        self.guard = GuardBook(database, self.groups, self.hosts, guard)
        self.switching = SwitchingBook(database, artifacts, switching)
        self._changes = ChangeRate()
        self.sessions: dict[SwitchId, SwitchSession] = {}
        self.agents: dict[HostId, AgentStatus] = {}
        self.packets = PacketIns(
            secrets.token_bytes(32),
            self.monitor,
            self.hosts,
            lambda: self.guard.guard,
            self.events,
            self.notice,
        )
        self.store_failures = 0
        """Changes of the network that could not be written to the state file."""
        self._notices = Paced(self._look_around)
        self.lateness = Lateness()
        self.mtus = MtuWatch(self.events)
        self._mtu_looks = Paced(lambda: self.mtus.look(self), MTU_REST)
        self.task_failures = 0
        """Times a background task failed and was started again, which is a bug."""
        self.directory = AgentDirectory(self)
        self.traces = self.directory.traces = TraceBook(self.directory, lambda: self.topology().to_json())
        self.lags = self.directory.lags = LagBook(self.directory)
        self.reconciler = Reconciler(
            self.look, database, self.sessions, self.directory, self.events, self.switching.done
        )
        self.reconciler.set_program(artifacts)
        self._restore(self.clock.now())

    def _restore(self, now: float) -> None:
        self.discovered.grid = self._database.grid()
        up = self._database.switches_up()
        for spec in self._database.switches():
            self._open(spec, now, remembered=spec.id in up)
        for link in self._database.links():
            self.monitor.restore_link(link)
        self.monitor.restore_suspected(*self._database.suspected())
        self.hosts.restore(self._database.hosts(), self._database.hosts_present(), now)
        self._network = self.discovered.describe(now, time.time())

    # -- life ---------------------------------------------------------------

    async def start(self, agent_addresses: Iterable[str], access: SocketAccess | None = None) -> list[str]:
        """Begins to work; returns the addresses agents can dial, those that are Unix sockets with this access."""
        await self.reconciler.replan()
        bound = await self.directory.start(agent_addresses, access)
        for session in self.sessions.values():
            session.start()
        self._background = [
            asyncio.create_task(supervise("tick", self._tick_forever, self._note_task), name="tick"),
            asyncio.create_task(supervise("plan", self.reconciler.run, self._note_task), name="plan"),
            asyncio.create_task(collect_at_quiet_times(self.reconciler.is_quiet), name="garbage"),
            asyncio.create_task(watch_state(self.state_problem, self.events), name="state"),
        ]
        return bound

    async def stop(self) -> None:
        """Stops; the fabric goes on forwarding."""
        self.events.close()
        self._notices.cancel()
        self._mtu_looks.cancel()
        for task in self._background:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
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
            self.notice()
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
        self.notice()

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
        state = self.reconciler.state
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
        self.notice()
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
        self.reconciler.steps.forgotten(record.id)
        self.guard.forget_host(record.id)
        self._keep(lambda: self._database.remove_secret(record.name))
        self.notice()

    def find_host(self, key: int | str) -> HostRecord:
        """A host by id or name; raises `RequestError`."""
        number = as_number(key)
        record = self.hosts.named(str(key)) if number is None else self.hosts.get(HostId(number))
        if record is None:
            known = self.hosts.records()
            raise unknown("host", key, [r.name if number is None else r.id for r in known])
        return record

    async def tell_group(self, kind: str, group: Group) -> None:
        """Records what a request did to a group and waits for the plan that follows."""
        await self.tell_groups(kind, [group], wait=True)

    async def tell_groups(self, kind: str, groups: Sequence[Group], wait: bool | None) -> None:
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
            self.reconciler.notice()

    # -- what the plan is made from -----------------------------------------

    def look(self) -> View:
        """Topology, groups and hosts as they are now."""
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
            self.mtus.narrow,
            self.monitor.ends_down(),
            self.guard.guard,
            *self.switching.planned,
            self.hosts.away(now, time.time()),
        )

    def followed_epoch(self, host: HostId) -> Epoch | None:
        """The latest plan that an agent follows; one with nothing new for it counts as followed."""
        status, told = self.agents.get(host), self.reconciler.told(host)
        if status is None:
            return None
        return self.reconciler.epoch if told is not None and told.epoch == status.epoch else status.epoch

    def _capacity(self, host: HostId) -> Capacity | None:
        status = self.agents.get(host)
        return None if status is None or not status.is_bounded() else status.capacity(lambda _: None)

    def topology(self) -> Topology:
        """What is up."""
        return self.discovered.topology(self.clock.now())

    def notice(self) -> None:
        """Looks for changes of the network: records them, tells watchers, has a plan made."""
        self._notices.call()

    def _look_around(self) -> None:
        now = self.clock.now()
        network = self.discovered.describe(now, time.time())
        if network != self._network:
            for kind, data in (found := [*changes(self._network, network)]):
                LOG.info("%s %s", kind, " ".join(f"{k}={v}" for k, v in data.items()))
                self.events.add(kind, time.time(), **data)
            self._network = network
            self._keep_network(now)
            self._mtu_looks.call(0.0 if {kind for kind, _ in found} - {"link_down"} else LOOK_LATER_S)
        elif self.mtus.is_due(now):
            self._mtu_looks.call()
        self.reconciler.notice()

    def _keep_network(self, now: float) -> None:
        hosts = [(r, not self.hosts.is_gone(r, now)) for r in self.hosts.records()]
        switches, links = self.monitor.switches(), self.monitor.links()
        suspected = (
            self.monitor.known_switches().keys() - switches.keys(),
            self.monitor.known_links() - links,
        )
        self._keep(lambda: self._database.put_network(switches, links, hosts, suspected))

    def _keep(self, put: Callable[[], None]) -> None:
        try:
            put()
        except StoreError as error:
            # The fabric comes first: a restart would have to discover anew.
            self.store_failures += 1
            LOG.error("the network was not written to the state file: %s", error)

    # -- work of its own ----------------------------------------------------

    def _open(self, spec: SwitchSpec, now: float, *, remembered: bool) -> None:
        self.monitor.add_switch(spec.id, spec.ports, now, remembered=remembered)
        self.sessions[spec.id] = SwitchSession(
            spec, self.artifacts, self._election_id, self, self.sessions.__len__
        )

    async def _tick_forever(self) -> None:
        look_at, way = 0.0, GivingWay(self.reconciler.is_quiet, PROBES_WAIT_S)
        while True:
            await way.wait()
            now = self.clock.now()
            links = self.monitor.links()
            self.monitor.handle_timeout(now)
            for ref in self.monitor.poll_transmit(now):
                port = CPU_PORT if echo_port(ref[1]) else ref[1]
                self.sessions[ref[0]].send(port, self.packets.probe(ref, now))
            for (switch, port), frame in self.packets.queries(now):
                self.sessions[switch].send(port, frame)
            if now >= look_at or self.monitor.links() is not links:
                self.notice()
                look_at = now + LOOK_INTERVAL_S
            times = [t for t in (self.monitor.poll_timeout(), self.hosts.poll_timeout(now)) if t is not None]
            end = self.clock.now()
            wait_s = max(min(times, default=now + TICK_MAX_S) - end, TICK_MIN_S, TICK_REST * (end - now))
            wait_s = min(wait_s, TICK_MAX_S)
            asleep_at = time.monotonic()
            await asyncio.sleep(wait_s)
            woken_at = time.monotonic()
            self.lateness.note_controller(woken_at - asleep_at - wait_s, woken_at)

    # -- SwitchWatcher ------------------------------------------------------

    def switch_connected(self, switch: SwitchId) -> None:
        """See `SwitchWatcher`."""
        self.monitor.connect(switch, self.clock.now())
        self.events.add("switch_connected", time.time(), switch=switch)
        self.reconciler.bring_out_again()
        self.notice()

    def switch_disconnected(self, switch: SwitchId, reason: str) -> None:
        """See `SwitchWatcher`."""
        self.monitor.disconnect(switch, self.clock.now())
        self.events.add("switch_disconnected", time.time(), switch=switch, reason=reason)

    def switch_demoted(self, switch: SwitchId, reason: str) -> None:
        """See `SwitchWatcher`."""
        self.monitor.suspend(switch)
        self.events.add("switch_demoted", time.time(), switch=switch, reason=reason)

    def switch_refused(self, switch: SwitchId, reason: str, group: int | None = None) -> None:
        """See `SwitchWatcher`."""
        self.events.add("switch_refused", time.time(), switch=switch, reason=reason, group=group)

    def switch_strayed(self, switch: SwitchId, part: str, strayed: Strayed) -> None:
        """See `SwitchWatcher`."""
        self.events.add("switch_strayed", time.time(), switch=switch, part=part, **asdict(strayed))
        self.reconciler.bring_out_again()

    def switch_out_of_step(self, switch: SwitchId) -> None:
        """See `SwitchWatcher`."""
        LOG.info("switch %d: trying again", switch)
        self.reconciler.bring_out_again()

    def packet_received(self, switch: SwitchId, port: PortId, frame: bytes) -> None:
        """See `SwitchWatcher`."""
        now = self.clock.now()
        self.monitor.hear(switch, now)
        self.packets.receive((switch, port), frame, now)

    def ports_told(self, switch: SwitchId, told: PortsTold | None) -> None:
        """See `SwitchWatcher`."""
        self.monitor.tell_ports(switch, None if told is None else told.down, self.clock.now())
        if self.mtus.tell_ports(switch, told):
            self._mtu_looks.call()
        self.notice()

    # -- AgentWatcher -------------------------------------------------------

    def agent_registered(
        self,
        name: str,
        asked: int | None,
        mac: bytes,
        mtu_bytes: int,
        version: str,
        epoch: Epoch,
        groups_max: int = 0,
        members_max: int = 0,
        transit: bool = True,
        revision: int = REVISION_LIMITS,
        caller: Caller = NOBODY,
    ) -> HostId:
        """See `AgentWatcher`."""
        check_agent(revision, self.artifacts.has_device_ports)
        if epoch > (bound := max(EPOCH_TOLD_MAX, self.reconciler.epoch)):
            raise HostRefused(
                f"the agent follows plan {epoch}, which no controller has made",
                value=epoch,
                bound=f"0 to {bound}",
            )
        known = self.hosts.named(name)
        mtu_before, secret_before = (None, b"") if known is None else (known.mtu_bytes, known.secret)
        now, guarded = self.clock.now(), self.guard.guard.on
        try:
            record = self.hosts.register(
                name, asked, mac, mtu_bytes, version, now, transit, caller, guarded=guarded
            )
        except HostRefused as error:
            if self.packets.episodes.is_news(("agent_refused", str(error)), now):
                self.events.add(
                    "agent_refused", time.time(), name=name, address=caller.address, reason=str(error)
                )
            raise
        if record.secret != secret_before:
            self._keep(lambda: self._database.put_secret(name, record.secret))
        if mtu_bytes != mtu_before:
            self._mtu_looks.call()
        self.agents[record.id] = AgentStatus(
            epoch, groups_max=groups_max or None, members_max=members_max or None, revision=revision
        )
        self.reconciler.outbid(epoch)
        self.reconciler.answered(record.id, epoch)
        self.notice()
        return record.id

    def agent_detached(self, host: HostId) -> None:
        """See `AgentWatcher`."""
        self.hosts.detach(host, self.clock.now())
        self.notice()

    def plan_applied(
        self, host: HostId, epoch: Epoch, error: str, refused: Mapping[int, str] = NOTHING
    ) -> None:
        """See `AgentWatcher`."""
        if epoch > self.reconciler.epoch:
            raise BadMessage(f"it answers plan {epoch}; the last is {self.reconciler.epoch}")
        status = self.agents.setdefault(host, AgentStatus(Epoch(0)))
        told, view = self.reconciler.told(host), self.reconciler.view
        asked_for = view.by_id if view is not None else {}
        plan = told.plan if told is not None and told.epoch == epoch else None
        news = status.take_answer(epoch, error, refused, plan, asked_for)
        if error and news:
            LOG.error("host %d refuses part of plan %d: %s", host, epoch, error)
            self.events.add(
                "plan_refused", time.time(), host=host, epoch=epoch, error=error, groups=sorted(refused)[:32]
            )
        if refused or not error:
            self.reconciler.answered(host, epoch)
        if error:
            self.reconciler.notice()  # what it takes may have become less

    def member_reported(
        self, by: HostId, group: GroupId, origin: int, host: int, reason: str, dead: bool
    ) -> None:
        """See `AgentWatcher`. A report is a suspicion: it is shown, and takes nobody out of a group by itself."""
        who = {"by": by, "group": group, "origin": origin, "host": host}
        self.events.add("member_reported", time.time(), **who, reason=reason, dead=dead)
        if not dead or not self._share_group(group, by, HostId(host)):
            return
        if self.hosts.report_silent(HostId(host), by, reason, self.clock.now()):
            LOG.warning("host %d is silent, as host %d reports: %s", host, by, reason)
            self.notice()

    def _share_group(self, group: GroupId, *hosts: HostId) -> bool:
        found = self.groups.find(group)
        return found is not None and set(hosts) <= set(found.members)

    def route_uses(self, host: HostId) -> RouteUses | None:
        """How many messages took each of a host's routes, by its agent's last report; None: there is no word from it."""
        record, status = self.hosts.get(host), self.agents.get(host)
        if record is None or not record.attached or status is None or not status.has_reported:
            return None
        return status.routes

    def statistics_received(
        self, host: HostId, counters: Iterable[tuple[str, int, int]], routes: RouteUses = NO_USES
    ) -> None:
        """See `AgentWatcher`."""
        status = self.agents.setdefault(host, AgentStatus(Epoch(0)))
        status.take_counters(counters, COUNTERS_MAX)
        self.lateness.note_agent(host, status.counters.get((PAUSED_COUNTER, 0), 0), time.monotonic())
        status.routes, status.has_reported = routes, True
        record = self.hosts.get(host)
        if record is not None and record.load.take_report(status.counters, self.clock.now()):
            busy = record.load.busy
            LOG.info("host %d %s", host, "is busy: routes avoid it" if busy else "re-injects again")
            self.events.add("transit_busy" if busy else "transit_calm", time.time(), host=host)
            self.notice()
