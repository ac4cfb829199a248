"""What agents are to follow, and what they say that they follow: plans, their numbers, and the change of routes under
way."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from wormcast_planner import AgentPlan

from wormcast.directory.plans import IssuedPlan
from wormcast.network.groups import Group
from wormcast.network.ids import Epoch, GroupId, HostId
from wormcast.reconcile.events import EventLog
from wormcast.reconcile.route_steps import RouteSteps
from wormcast.reconcile.wanted import Wanted
from wormcast.store.database import Database, StoreError

LOG = logging.getLogger("wormcast.reconcile")


class AgentPlans:
    """The plans in force. The reconciler puts them here; who hears agents asks."""

    def __init__(self, database: Database, events: EventLog, wanted: Wanted) -> None:
        self._database = database
        self._wanted = wanted
        self.epoch, self._digest = database.agent_plan()
        self.issued: dict[HostId, IssuedPlan] = {}
        self.groups: Mapping[GroupId, Group] = {}
        """Those that the plans are for, as they were asked for."""
        self.steps = RouteSteps(events)
        self._later_epoch: Epoch | None = None
        self.epochs_not_kept = 0

    def supersede(self, epoch: Epoch) -> None:
        """An agent knows a later epoch, of a state file that is lost: the next plan comes after it."""
        if epoch > self.epoch:
            LOG.warning(
                "an agent follows epoch %d, ours is %d; continuing after the agent's", epoch, self.epoch
            )
            self.epoch, self._digest, self.groups = epoch, "", {}
            self._later_epoch = epoch  # not at once: the planner may be planning
            self.issued = {}
            self._wanted.notice()

    @property
    def is_superseded(self) -> bool:
        """Whether plans that are there may not be sent: agents may know their numbers by another meaning."""
        return self._later_epoch is not None

    def take_later_epoch(self) -> Epoch | None:
        """The epoch that the next plan is to come after; None: it comes after the last one."""
        epoch, self._later_epoch = self._later_epoch, None
        return epoch

    def answered(self, host: HostId, epoch: Epoch) -> None:
        """An agent follows a plan."""
        issued = self.issued.get(host)
        self.steps.answered(host, epoch, None if issued is None else issued.epoch)

    def epochs(self, hosts: Collection[HostId]) -> dict[HostId, Epoch]:
        """What these hosts are to follow, as far as they were planned."""
        return {host: plan.epoch for host, plan in self.issued.items() if host in hosts}

    def begin(self, digest: str) -> bool:
        """Takes the next epoch for plans of this digest, and keeps it before any agent is sent one; whether it is new."""
        if digest == self._digest:
            return False
        self.epoch, self._digest = self._database.next_epoch(self.epoch), digest
        try:
            self._database.put_agent_plan(self.epoch, digest)
        except StoreError as error:
            # Agents must get their way around a failure; after a restart `supersede` learns the epoch from them.
            self.epochs_not_kept += 1
            LOG.error("epoch %d was not written to the state file: %s", self.epoch, error)
        return True

    def put(self, plans: Mapping[HostId, AgentPlan], new: Iterable[AgentPlan]) -> None:
        """Makes these what agents are to follow; `new`: those that are other than before."""
        self.issued = {host: plan for host, plan in self.issued.items() if host in plans}
        self.issued |= {plan.host: IssuedPlan(plan, self.epoch) for plan in new}
