"""What is known of an agent: what it follows, takes and refuses, and its counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from wormcast_planner import GROUP_ID_MAX, AgentGroup, AgentPlan

from wormcast.directory.messages import OpenReceivers, RouteUses
from wormcast.network.groups import Group
from wormcast.network.ids import Epoch, GroupId

COUNTERS_MAX = 4096
"""Counters kept of one agent; further names are dropped and counted."""
COUNTER_NAME_MAX = 128
"""Characters of a counter's name; longer ones are dropped and counted."""
GROUPS_UNANNOUNCED = 256
"""Groups that an agent takes which does not say how many, and has refused more as a whole."""
NO_BOUND = 1 << 32


@dataclass(frozen=True)
class Capacity:
    """What one agent takes."""

    groups: int
    members: int
    """Of one group."""
    refused: dict[GroupId, str] = field(default_factory=dict)
    """Groups it has refused as they are, and why."""


@dataclass
class AgentStatus:
    """What one agent reported last."""

    epoch: Epoch
    error: str = ""
    counters: dict[tuple[str, int], int] = field(default_factory=dict)
    counters_dropped: int = 0
    groups_max: int | None = None
    """Groups it takes; None: it does not say."""
    members_max: int | None = None
    """Members of a group it takes; None: it does not say."""
    revision: int = 0
    """Of agent.proto, as it knows it."""
    routes: RouteUses = field(default_factory=dict)
    """How many messages took each of its routes."""
    receivers: OpenReceivers | None = None
    """Receivers that are open there; None: it is not attached, or has not said."""
    has_reported: bool = False
    """Whether it has sent statistics since it registered."""
    refused: dict[GroupId, tuple[Group | None, str]] = field(default_factory=dict)
    """Groups it does not take, as they were configured then, and why."""
    _installed: AgentPlan | None = None
    """The plan it has applied last, as far as this controller knows."""

    def is_bounded(self) -> bool:
        """Whether there is anything it does not take."""
        return bool(self.groups_max or self.members_max or self.refused)

    def capacity(self, configured: Callable[[GroupId], Group | None]) -> Capacity:
        """What it takes. A group that is configured anew may be tried again."""
        refused = {
            group: reason
            for group, (then, reason) in self.refused.items()
            if then is not None and configured(group) == then
        }
        return Capacity(self.groups_max or NO_BOUND, self.members_max or NO_BOUND, refused)

    def has_installed(self, planned: AgentGroup) -> bool:
        """Whether it follows a group as it is planned now."""
        if self._installed is None or planned.id in self.refused:
            return False
        return self._installed.group(planned.id) == planned

    def refusal(self, group: Group) -> str | None:
        """Why it refuses a group as it is configured now; None: it does not."""
        then, reason = self.refused.get(group.id, (None, ""))
        return reason if then == group else None

    def installed_count(self) -> int:
        """How many groups of its plan it has applied."""
        if self._installed is None:
            return 0
        return sum(group.id not in self.refused for group in self._installed.groups)

    def take_answer(
        self,
        epoch: Epoch,
        error: str,
        refused: Mapping[int, str],
        plan: AgentPlan | None,
        configured: Mapping[GroupId, Group],
    ) -> bool:
        """It has answered a plan; `plan` is what it was if that is known. True if the error is a new one."""
        news = error != self.error
        self.epoch, self.error = epoch, error
        if plan is None:
            return news
        if error and not refused:
            if self.groups_max is None and len(plan.groups) > GROUPS_UNANNOUNCED:
                self.groups_max = GROUPS_UNANNOUNCED
            return news
        self._installed = plan
        for group in plan.groups:
            if group.id in refused:
                self.refused[group.id] = (configured.get(group.id), refused[group.id])
            else:
                self.refused.pop(group.id, None)
        return news

    def take_counters(self, counters: Iterable[tuple[str, int, int]], counters_max: int) -> None:
        """Keeps counters: name, group, value."""
        for name, group, value in counters:
            if (name, group) in self.counters or (
                len(self.counters) < counters_max and len(name) <= COUNTER_NAME_MAX and group <= GROUP_ID_MAX
            ):
                self.counters[name, group] = value
            else:
                self.counters_dropped += 1
