"""Traces that were asked for: who sends probes, what came of them, and what is still awaited."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from wormcast.directory.messages import BadMessage, clip
from wormcast.network.ids import HostId
from wormcast.reconcile.errors import RequestError, unknown
from wormcast.trace.ways import Json, Out, Wiring, join_hops, lost_text, outs
from wormcast.wire import MAX_HOPS, Kind

LOG = logging.getLogger("wormcast.reconcile")

TRACES_MAX = 16
"""Traces kept; the oldest that has ended goes first."""
WAYS_MAX = 1024
"""Ways of one sender."""
ARRIVALS_MAX = 16384
"""Arrivals kept of one trace; further ones are counted only."""
SECONDS_MAX = 60
"""How long probes of a trace are sent again."""
PAUSES_S = (0.5, 1.0, 2.0, 4.0)
"""Between probes of a trace; the last one holds for all that follow."""


class Directory(Protocol):
    """What sends messages to agents."""

    def trace(self, host: HostId, request: Json) -> bool:
        """Asks the agent of a host for probes; false if it is not attached."""


@dataclass
class Sender:
    """A host that is asked to send probes."""

    attempts: int = 0
    """How often it has been asked."""
    answered: bool = False
    error: str = ""
    ways: list[Json] = field(default_factory=list)
    arrivals: dict[tuple[int, int], Json] = field(default_factory=dict)
    """What came first, by way and host."""

    def waiting(self, way: Json) -> list[int]:
        """Hosts that a way leads to, from which nothing has come."""
        return [host for host in way["hosts"] if (way["number"], host) not in self.arrivals]

    def is_done(self) -> bool:
        return bool(self.error) or (self.answered and not any(map(self.waiting, self.ways)))


@dataclass
class Trace:
    number: int
    of: Json
    """What was asked for."""
    senders: dict[HostId, Sender]
    wiring: Wiring
    seconds: float
    task: asyncio.Task[None] | None = None
    arrivals_left_out: int = 0

    def is_complete(self) -> bool:
        return all(sender.is_done() for sender in self.senders.values())

    def request(self, sender: Sender) -> Json:
        """The fields of `Trace` of agent.proto."""
        return {"number": self.number, "attempt": sender.attempts, **self.of["request"]}


class TraceRegistry:
    """All traces of a controller."""

    def __init__(self, directory: Directory, topology: Callable[[], Json]) -> None:
        self._directory = directory
        self._topology = topology
        self._traces: dict[int, Trace] = {}
        self._last = 0

    # -- requests -------------------------------------------------------------

    def begin(self, of: Json, senders: Iterable[HostId], seconds: float) -> Trace:
        """Asks agents for probes, and again until all have come or the time is over."""
        if not 0 < seconds <= SECONDS_MAX:
            raise RequestError(
                422, f"a trace of {seconds:g} s", value=seconds, bound=f"more than 0, at most {SECONDS_MAX} s"
            )
        running = [t for t in self._traces.values() if t.task is not None and not t.task.done()]
        if len(running) >= TRACES_MAX:
            raise RequestError(
                503, f"{len(running)} traces are under way, the most there may be", retry_after_s=1
            )
        for number, old in list(self._traces.items()):
            if len(self._traces) >= TRACES_MAX and old not in running:
                del self._traces[number]
        self._last += 1
        asked = {host: Sender() for host in senders}
        trace = Trace(self._last, of, asked, Wiring(self._topology()), seconds)
        self._traces[trace.number] = trace
        trace.task = asyncio.create_task(self._run(trace), name=f"trace-{trace.number}")
        return trace

    async def stop(self) -> None:
        tasks = [t.task for t in self._traces.values() if t.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def get(self, number: int) -> Trace:
        """One that is kept; raises `RequestError`."""
        if number not in self._traces:
            raise unknown("trace", number, sorted(self._traces))
        return self._traces[number]

    async def _run(self, trace: Trace) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + trace.seconds
        pauses = iter(PAUSES_S)
        pause = 0.0
        while not trace.is_complete() and loop.time() < end:
            for host, sender in trace.senders.items():
                if not sender.is_done():
                    sender.attempts += 1
                    if not self._directory.trace(host, trace.request(sender)):
                        sender.attempts -= 1
            pause = next(pauses, pause)
            until = min(loop.time() + pause, end)
            while not trace.is_complete() and loop.time() < until:
                await asyncio.sleep(0.02)

    # -- what agents say --------------------------------------------------------

    def trace_sent(self, host: HostId, sent: Any) -> None:
        """An agent has sent probes, or says why not. Raises `BadMessage`."""
        if len(sent.ways) > WAYS_MAX:
            raise BadMessage(f"it traces {len(sent.ways)} ways; at most {WAYS_MAX}")
        trace = self._traces.get(sent.number)
        sender = None if trace is None else trace.senders.get(host)
        if sender is None:
            return
        ways = [_way(way) for way in sent.ways]
        if sender.answered and ways != sender.ways:
            sender.arrivals.clear()  # of ways that are used no more
        sender.answered, sender.error, sender.ways = True, clip(sent.error), ways

    def probe_seen(self, host: HostId, seen: Any) -> None:
        """A probe has come to a host. Raises `BadMessage`."""
        if seen.hops > MAX_HOPS or len(seen.records) > MAX_HOPS:
            raise BadMessage(f"a probe crossed {seen.hops} switches; at most {MAX_HOPS}")
        trace = self._traces.get(seen.number)
        sender = None if trace is None else trace.senders.get(HostId(seen.sender))
        if trace is None or sender is None or seen.way >= WAYS_MAX:
            return
        if (seen.way, host) in sender.arrivals:
            return
        if sum(len(s.arrivals) for s in trace.senders.values()) >= ARRIVALS_MAX:
            trace.arrivals_left_out += 1
            return
        sender.arrivals[seen.way, host] = {
            "attempt": seen.attempt,
            "switches": seen.hops,
            "room": seen.room,
            "count": seen.count,
            "marked": seen.marked,
            "records": [_record(record) for record in seen.records],
        }

    # -- what is shown -----------------------------------------------------------

    def show(self, number: int) -> Json:
        """A trace as REST has it; raises `RequestError`."""
        trace = self.get(number)
        shown = {
            "trace": trace.number,
            **trace.of["shown"],
            "complete": trace.is_complete(),
            "ended": trace.task is None or trace.task.done(),
            "clocks": "each switch has a clock of its own: apart_us holds the difference of two clocks, "
            "and only its changes mean something",
            "no_answer": [host for host, s in trace.senders.items() if not s.answered],
            "errors": [{"host": host, "error": s.error} for host, s in trace.senders.items() if s.error],
            "ways": [
                _show_way(trace, host, sender, way)
                for host, sender in trace.senders.items()
                for way in sender.ways
            ],
        }
        if trace.arrivals_left_out:
            shown["arrivals_left_out"] = trace.arrivals_left_out
        return shown


def _show_way(trace: Trace, host: HostId, sender: Sender, way: Json) -> Json:
    wiring = trace.wiring
    planned = wiring.ways_of(host, way["kind"], way["route"])
    arrived = []
    seen: set[Out] = set()
    for (number, receiver), arrival in sorted(sender.arrivals.items()):
        if number != way["number"]:
            continue
        hops = join_hops(wiring, host, arrival["records"], arrival["switches"])
        seen.update(outs(hops))
        entry = {"host": receiver, **{k: v for k, v in arrival.items() if k != "records"}, "hops": hops}
        if receiver not in way["hosts"]:
            entry["uninvited"] = True
        recorded = outs(hops)
        if receiver in planned and len(recorded) == len(hops) and recorded != planned[receiver]:
            entry["other_than_planned"] = [list(out) for out in planned[receiver]]
        arrived.append(entry)
    return {
        "from": host,
        "number": way["number"],
        "kind": Kind(way["kind"]).name,
        "route": way["route"].hex(),
        "to": way["hosts"],
        **{name: way[name] for name in ("alternative", "share", "tree") if way[name] is not None},
        "probes": sender.attempts,
        "arrived": arrived,
        "missing": [
            {"host": lost, "text": lost_text(wiring, lost, planned.get(lost, []), seen)}
            for lost in sender.waiting(way)
        ],
    }


def _way(way: Any) -> Json:
    if way.kind not in Kind.__members__.values():
        raise BadMessage(f"it traces a worm of kind {way.kind}; kinds are 0 to {max(Kind)}")
    alternative = way.alternative if way.HasField("alternative") else None
    return {
        "number": way.number,
        "kind": way.kind,
        "route": bytes(way.route),
        "hosts": list(way.hosts),
        "alternative": alternative,
        "share": None if alternative is None else way.share,
        "tree": way.tree if way.HasField("tree") else None,
    }


def _record(record: Any) -> Json:
    names = ("hop", "switch", "ingress_port", "egress_port", "stay_us", "queue", "left_us")
    return {name: getattr(record, name) for name in names}
