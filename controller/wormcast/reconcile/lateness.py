"""Whether this machine keeps up: what ran later than it was due, and by how much. Pure; time is an argument."""

from __future__ import annotations

from dataclasses import dataclass

from wormcast.network.ids import HostId

WINDOW_S = 10.0
"""What happened longer ago is forgotten."""
LATE_MIN_S = 0.25
"""Any machine is a little late now and then. Agents report nothing less."""


@dataclass(frozen=True)
class _Delay:
    at: float
    seconds: float


class Lateness:
    """Delays of the controller's own work and of agents."""

    def __init__(self) -> None:
        self._controller: list[_Delay] = []
        self._agents: dict[HostId, list[_Delay]] = {}
        self._paused_ms: dict[HostId, int] = {}
        """Of each agent, as it reported last."""

    def note_controller(self, late_s: float, now: float) -> None:
        """The event loop came back so much later than it was to."""
        if late_s >= LATE_MIN_S:
            self._controller = [*_recent(self._controller, now), _Delay(now, late_s)]

    def note_agent(self, host: HostId, paused_ms: int, now: float) -> None:
        """An agent says for how long in all it has not run when it was to."""
        before = self._paused_ms.get(host)
        self._paused_ms[host] = paused_ms
        if before is not None and paused_ms > before:
            delays = _recent(self._agents.get(host, []), now)
            self._agents[host] = [*delays, _Delay(now, (paused_ms - before) / 1000)]

    def to_json(self, now: float) -> dict[str, object]:
        """Worst delays of the last `WINDOW_S` seconds, in ms, and how many agents had some."""
        self._controller = _recent(self._controller, now)
        recent = {host: _recent(delays, now) for host, delays in self._agents.items()}
        self._agents = {host: delays for host, delays in recent.items() if delays}
        agents = [delay.seconds for delays in self._agents.values() for delay in delays]
        return {
            "seconds": WINDOW_S,
            "controller_ms": round(1000 * max((d.seconds for d in self._controller), default=0.0)),
            "agents": len(self._agents),
            "agents_ms": round(1000 * max(agents, default=0.0)),
        }


def _recent(delays: list[_Delay], now: float) -> list[_Delay]:
    return [delay for delay in delays if now - delay.at < WINDOW_S]
