"""What agents tell: who they are, which plan they follow, whom they miss, what they count."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping

from wormcast.directory.messages import (
    NO_USES,
    NOTHING,
    REVISION_LIMITS,
    BadMessage,
    OpenReceivers,
    RouteUses,
)
from wormcast.discovery.hosts import NOBODY, Caller, HostRefused, HostRegistry
from wormcast.guard.settings import GuardSettings
from wormcast.network.ids import Epoch, GroupId, HostId
from wormcast.reconcile.agent_plans import AgentPlans
from wormcast.reconcile.agent_status import COUNTERS_MAX, AgentStatus
from wormcast.reconcile.chip_ports import check_agent
from wormcast.reconcile.clock import LivedClock
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.group_registry import GroupRegistry
from wormcast.reconcile.network_watch import NetworkWatch
from wormcast.reconcile.packet_in import PacketIns
from wormcast.reconcile.wanted import Wanted
from wormcast.store.database import EPOCH_REPORTED_MAX, Database

LOG = logging.getLogger("wormcast.reconcile")

PAUSED_COUNTER = "loop.paused_ms"
"""What agents call the time that they should have run and did not."""


class AgentEvents:
    """Hears agents; see `AgentWatcher`."""

    def __init__(
        self,
        database: Database,
        network: NetworkWatch,
        hosts: HostRegistry,
        agents: dict[HostId, AgentStatus],
        groups: GroupRegistry,
        guard: GuardSettings,
        packets: PacketIns,
        plans: AgentPlans,
        clock: LivedClock,
        events: EventLog,
        wanted: Wanted,
        *,
        has_device_ports: bool,
    ) -> None:
        """`agents`: what each says of itself, which is put there."""
        self._database = database
        self._network = network
        self._hosts = hosts
        self._agents = agents
        self._groups = groups
        self._guard = guard
        self._packets = packets
        self._plans = plans
        self._clock = clock
        self._events = events
        self._wanted = wanted
        self._has_device_ports = has_device_ports
        self.slow_reports: Counter[HostId] = Counter()
        """How often members were reported that take messages slower than they come."""

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
        check_agent(revision, self._has_device_ports)
        if epoch > (bound := max(EPOCH_REPORTED_MAX, self._plans.epoch)):
            raise HostRefused(
                f"the agent follows plan {epoch}, which no controller has made",
                value=epoch,
                bound=f"0 to {bound}",
            )
        known = self._hosts.named(name)
        mtu_before, secret_before = (None, b"") if known is None else (known.mtu_bytes, known.secret)
        now, guarded = self._clock.now(), self._guard.guard.on
        try:
            record = self._hosts.register(
                name, asked, mac, mtu_bytes, version, now, transit, caller, guarded=guarded
            )
        except HostRefused as error:
            if self._packets.episodes.is_news(("agent_refused", str(error)), now):
                self._events.add(
                    "agent_refused", time.time(), name=name, address=caller.address, reason=str(error)
                )
            raise
        if record.secret != secret_before:
            self._network.write(lambda: self._database.put_secret(name, record.secret))
        if mtu_bytes != mtu_before:
            self._network.look_at_mtus()
        self._agents[record.id] = AgentStatus(
            epoch, groups_max=groups_max or None, members_max=members_max or None, revision=revision
        )
        self._plans.supersede(epoch)
        self._plans.answered(record.id, epoch)
        self._network.notice()
        return record.id

    def agent_detached(self, host: HostId) -> None:
        if (status := self._agents.get(host)) is not None:
            status.receivers = None
        self._hosts.detach(host, self._clock.now())
        self._network.notice()

    def plan_applied(
        self, host: HostId, epoch: Epoch, error: str, refused: Mapping[int, str] = NOTHING
    ) -> None:
        if epoch > self._plans.epoch:
            raise BadMessage(f"it answers plan {epoch}; the last is {self._plans.epoch}")
        status = self._agents.setdefault(host, AgentStatus(Epoch(0)))
        issued = self._plans.issued.get(host)
        plan = issued.plan if issued is not None and issued.epoch == epoch else None
        news = status.take_answer(epoch, error, refused, plan, self._plans.groups)
        if error and news:
            LOG.error("host %d refuses part of plan %d: %s", host, epoch, error)
            self._events.add(
                "plan_refused", time.time(), host=host, epoch=epoch, error=error, groups=sorted(refused)[:32]
            )
        if refused or not error:
            self._plans.answered(host, epoch)
        if error:
            self._wanted.notice()  # what it takes may have become less

    def member_reported(
        self, by: HostId, group: GroupId, origin: int, host: int, reason: str, dead: bool
    ) -> None:
        """See `AgentWatcher`. A report is a suspicion: it is shown, and takes nobody out of a group by itself."""
        who = {"by": by, "group": group, "origin": origin, "host": host}
        self._events.add("member_reported", time.time(), **who, reason=reason, dead=dead)
        if not dead or not self.share_group(group, by, HostId(host)):
            return
        if self._hosts.report_silent(HostId(host), by, reason, self._clock.now()):
            LOG.warning("host %d is silent, as host %d reports: %s", host, by, reason)
            self._network.notice()

    def member_slow(self, by: HostId, group: GroupId, origin: int, host: int) -> None:
        """See `AgentWatcher`. It is shown, and changes nothing."""
        if self.share_group(group, by, HostId(host)):
            self.slow_reports[HostId(host)] += 1
            self._events.add("member_slow", time.time(), by=by, group=group, origin=origin, host=host)

    def share_group(self, group: GroupId, *hosts: HostId) -> bool:
        """See `AgentWatcher`."""
        found = self._groups.find(group)
        return found is not None and set(hosts) <= set(found.members)

    def receivers_told(self, host: HostId, receivers: OpenReceivers) -> None:
        self._agents.setdefault(host, AgentStatus(Epoch(0))).receivers = receivers

    def route_uses(self, host: HostId) -> RouteUses | None:
        """How many messages took each of a host's routes, by its agent's last report; None: there is no word from it."""
        record, status = self._hosts.get(host), self._agents.get(host)
        if record is None or not record.attached or status is None or not status.has_reported:
            return None
        return status.routes

    def statistics_received(
        self, host: HostId, counters: Iterable[tuple[str, int, int]], routes: RouteUses = NO_USES
    ) -> None:
        status = self._agents.setdefault(host, AgentStatus(Epoch(0)))
        status.take_counters(counters, COUNTERS_MAX)
        self._network.lateness.note_agent(host, status.counters.get((PAUSED_COUNTER, 0), 0), time.monotonic())
        status.routes, status.has_reported = routes, True
        record = self._hosts.get(host)
        if record is not None and record.load.take_report(status.counters, self._clock.now()):
            busy = record.load.busy
            LOG.info("host %d %s", host, "is busy: routes avoid it" if busy else "re-injects again")
            self._events.add("transit_busy" if busy else "transit_calm", time.time(), host=host)
            self._network.notice()

    def followed_epoch(self, host: HostId) -> Epoch | None:
        """The latest plan that an agent follows; one with nothing new for it counts as followed."""
        status, issued = self._agents.get(host), self._plans.issued.get(host)
        if status is None:
            return None
        return self._plans.epoch if issued is not None and issued.epoch == status.epoch else status.epoch
