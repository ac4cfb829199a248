"""Changes of routes, step by step: who follows which, and when older worms have left.

Routes along the order of switches in force are one step, and safe at once; so are those along an order that allows
all turns that worms can still take. To any other order it takes two: all
agents follow routes that keep to both orders (the bridge), older worms leave, and only then the new order is in force.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from wormcast.network.ids import Epoch, HostId
from wormcast.reconcile.events import EventLog

LOG = logging.getLogger("wormcast.reconcile")

DRAIN_PER_SWITCH_S = 0.01
"""Longest time that a worm waits at a switch it crosses, and in the queue of its host: a queue of 1.2 MB at 1 Gb/s."""
SLOW_AFTER_S = 2.0
"""An agent that has not confirmed a step for so long is named."""
LEFT_BEHIND_AFTER_S = 5.0
"""A step goes on without an agent that has not confirmed it for so long; it is named until it has."""
LOOK_AGAIN_S = 0.05
"""Between looks at who follows a plan, where nothing waits for it."""
HOSTS_SHOWN = 32
"""Hosts named in an event or a status; of more it says how many there are."""
BRIDGE = "routes that keep to both orders"
NEW_ORDER = "routes along the new order"
KEPT_ORDER = "routes along the order in force"


class Planned(Protocol):
    """What is asked of a `FabricState`."""

    @property
    def method(self) -> str: ...
    @property
    def stopped(self) -> int: ...
    @property
    def routes_changed(self) -> int: ...
    @property
    def crossed_max(self) -> int: ...
    @property
    def next_order(self) -> str | None: ...


@dataclass
class Change:
    """One change of routes."""

    number: int
    steps: int
    method: str
    routes: int
    stopped: int
    next_order: str | None
    began: float
    step: int = 0
    what: str = ""
    step_began: float = 0.0
    waiting: set[HostId] = field(default_factory=set)
    """Agents that have not confirmed the step."""
    confirmed: set[HostId] = field(default_factory=set)
    """Agents that send no older worms any more."""


class RouteSteps:
    """The change of routes under way. Times are those of `time.monotonic`."""

    def __init__(self, events: EventLog, now: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._now = now
        self._numbers = itertools.count(1)
        self._news = asyncio.Event()
        self._follows: dict[HostId, Epoch] = {}
        self._named: set[HostId] = set()
        self._last_old_at = now()
        """When the last older worm may have been sent, by those who have confirmed."""
        self.change: Change | None = None
        self.behind: dict[HostId, float] = {}
        """Agents that a step went on without, and since when: they may still send by older routes."""

    def plan(self, state: Planned) -> None:
        """A plan has been made. One that leads to the same order goes on with the change under way."""
        before = self.change
        if before is not None and before.next_order is not None and before.next_order == state.next_order:
            before.stopped = state.stopped
            before.routes = max(before.routes, state.routes_changed)
            return
        if state.next_order is None and not state.routes_changed:
            if before is not None and before.step < before.steps:
                self.change = None  # what was wanted is wanted no more
            return
        steps = 1 if state.next_order is None else 2
        change = Change(
            next(self._numbers),
            steps,
            state.method,
            state.routes_changed,
            state.stopped,
            state.next_order,
            self._now(),
        )
        self.change = change
        self._add(
            "change_planned",
            change,
            steps=steps,
            method=change.method,
            routes=change.routes,
            stopped=change.stopped,
        )

    def begin_step(self, issued: Mapping[HostId, Epoch], live: Iterable[HostId]) -> None:
        """Agents are being notified of the next step, or again of the one under way: which plan each has to confirm."""
        if (change := self.change) is None:
            return
        now = self._now()
        bridging = change.steps == 2 and change.next_order is not None
        step = 1 if bridging or change.steps == 1 else 2
        if step != change.step:
            change.step, change.step_began = step, now
            change.what = (BRIDGE if bridging else NEW_ORDER) if change.steps == 2 else KEPT_ORDER
            change.confirmed.clear()
            self._last_old_at = now
            self._named.clear()
            self._add("change_step", change, step=step, steps=change.steps, what=change.what)
        live = frozenset(live)
        self.behind = {host: since for host, since in self.behind.items() if host in live}
        wanted = {host for host in issued if host in live and host not in change.confirmed}
        change.waiting = {host for host in wanted if not self._is_followed(host, issued)}
        if ready := wanted - change.waiting:
            change.confirmed |= ready
            self._last_old_at = now
        self._check_done()

    def _is_followed(self, host: HostId, issued: Mapping[HostId, Epoch]) -> bool:
        return self._follows.get(host, Epoch(-1)) >= issued[host]

    def answered(self, host: HostId, epoch: Epoch, issued: Epoch | None) -> None:
        """An agent follows a plan; `issued` is the one it was sent last, if any."""
        self._follows[host] = epoch
        if issued is None or epoch < issued:
            return
        if self.behind.pop(host, None) is not None:
            self._events.add("agent_caught_up", time.time(), host=host, epoch=epoch)
        if (change := self.change) is not None and host in change.waiting:
            change.waiting.discard(host)
            change.confirmed.add(host)
            self._last_old_at = self._now()
            self._news.set()
            self._check_done()

    def forgotten(self, host: HostId) -> None:
        """There is no such host any more."""
        self._follows.pop(host, None)
        self.behind.pop(host, None)
        if (change := self.change) is not None:
            change.waiting.discard(host)
            self._news.set()

    async def confirmed(self) -> None:
        """Waits until all agents have confirmed the step, or are left behind. Names those that are slow."""
        while (change := self.change) is not None and (waiting := change.waiting - self.behind.keys()):
            age_s = self._now() - change.step_began
            if age_s >= LEFT_BEHIND_AFTER_S:
                for host in sorted(waiting):
                    self._leave_behind(change, host)
                self._check_done()
                return
            if age_s >= SLOW_AFTER_S:
                self._name(change, waiting - self._named)
            left_s = (LEFT_BEHIND_AFTER_S if age_s >= SLOW_AFTER_S else SLOW_AFTER_S) - age_s
            self._news.clear()
            await asyncio.wait({asyncio.ensure_future(self._news.wait())}, timeout=left_s)

    async def drained(self, crossed_max: int) -> None:
        """Waits until worms that were sent before the step have left: as long as one may wait at each switch."""
        change = self.change
        if change is None or not self._follows:
            return  # nobody has sent anything
        await self.left(crossed_max)
        self._add("change_drained", change, step=change.step, after_ms=self._ms(change.step_began))

    async def left(self, crossed_max: int) -> None:
        """Waits as long as worms may be under way that agents sent before they confirmed."""
        bound_s = (crossed_max + 1) * DRAIN_PER_SWITCH_S
        if (left_s := self._last_old_at + bound_s - self._now()) > 0:
            await asyncio.sleep(left_s)

    async def followed(
        self, issued: Mapping[HostId, Epoch], crossed_max: int, since: float | None = None
    ) -> None:
        """Waits until these agents follow what they were sent, or would be left behind, and until worms that they sent
        before have left. `since`: when they were first sent what matters; now, if None."""
        until = (self._now() if since is None else since) + LEFT_BEHIND_AFTER_S
        while not all(self._is_followed(host, issued) for host in issued) and self._now() < until:
            await asyncio.sleep(LOOK_AGAIN_S)
        await asyncio.sleep((crossed_max + 1) * DRAIN_PER_SWITCH_S)

    def crossed(self) -> None:
        """The new order is in force."""
        if self.change is not None:
            self.change.next_order = None

    def _name(self, change: Change, hosts: Iterable[HostId]) -> None:
        for host in sorted(hosts):
            self._named.add(host)
            LOG.warning("host %d has not confirmed step %d of change %d", host, change.step, change.number)
            self._add("agent_slow", change, host=host, step=change.step)

    def _leave_behind(self, change: Change, host: HostId) -> None:
        self.behind[host] = self._now()
        LOG.warning("host %d is left behind by step %d of change %d", host, change.step, change.number)
        self._add("agent_left_behind", change, host=host, step=change.step)

    def _check_done(self) -> None:
        change = self.change
        if change is None or change.step != change.steps or change.waiting - self.behind.keys():
            return
        self._add("change_done", change, after_ms=self._ms(change.began), left_behind=len(change.waiting))
        self.change = None

    def _ms(self, since: float) -> int:
        return round((self._now() - since) * 1000)

    def _add(self, kind: str, change: Change, **data: Any) -> None:
        self._events.add(kind, time.time(), change=change.number, **data)

    def to_json(self) -> dict[str, Any]:
        """As status shows it: the change under way, and agents that are left behind."""
        change, shown = self.change, None
        if change is not None:
            shown = {
                "change": change.number,
                "step": change.step,
                "steps": change.steps,
                "what": change.what,
                "method": change.method,
                "routes": change.routes,
                "stopped": change.stopped if change.next_order is not None else 0,
                "waiting_for": sorted(change.waiting)[:HOSTS_SHOWN],
                "waiting_count": len(change.waiting),
            }
        return {
            "change": shown,
            "left_behind": sorted(self.behind)[:HOSTS_SHOWN],
            "left_behind_count": len(self.behind),
        }
