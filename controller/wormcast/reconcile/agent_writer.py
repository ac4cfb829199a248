"""Sends plans to agents."""

from __future__ import annotations

import time
from collections.abc import Iterable

from wormcast_planner import AgentPlan, FabricState

from wormcast.directory.server import AgentDirectory
from wormcast.network.ids import HostId
from wormcast.reconcile.agent_plans import AgentPlans
from wormcast.reconcile.events import EventLog

SHORTFALLS_SHOWN = 32
"""Members named in the event of a plan; of more it says how many there are."""


class AgentWriter:
    """The agents of the fabric, as plans are sent to them."""

    def __init__(self, directory: AgentDirectory, agent_plans: AgentPlans, events: EventLog) -> None:
        self._directory = directory
        self._agent_plans = agent_plans
        self._events = events

    def issue(self, state: FabricState, live: frozenset[HostId], *, bridge: bool = False) -> None:
        """Makes the plans of this state those that agents are to follow, or those of its bridge, unless agents know
        later ones: then others come. Those whose routes alone are other are sent at once."""
        if self._agent_plans.is_superseded:
            return
        digest = state.bridge_digest if bridge else state.digest
        if self._agent_plans.begin(digest):
            self._announce(state)
        plans = state.bridge if bridge and state.bridge is not None else state.agents
        # Routes need nothing of switches: they are out at once, unless groups have changed with them.
        self.publish(self._renew(plans))
        self._agent_plans.steps.begin_step(self._agent_plans.epochs(self._agent_plans.issued), live)

    def _renew(self, plans: dict[HostId, AgentPlan]) -> list[HostId]:
        """Those whose routes alone are other."""
        before = self._agent_plans.issued
        new = [p for h, p in plans.items() if (old := before.get(h)) is None or old.plan is not p]
        for_routes = [p.host for p in new if p.host in before and p.has_groups_of(before[p.host].plan)]
        self._agent_plans.put(plans, new)
        self._directory.withdraw(self._agent_plans.issued)
        return for_routes

    def publish(self, hosts: Iterable[HostId]) -> None:
        """Sends these hosts their plans."""
        issued = self._agent_plans.issued
        self._directory.publish({host: issued[host] for host in hosts if host in issued})

    def _announce(self, state: FabricState) -> None:
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
