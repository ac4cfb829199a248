"""How many frames for the controller a port brings, and who floods. Pure; time is an argument."""

from __future__ import annotations

from dataclasses import dataclass

from wormcast.network.topology import PortRef

RATE_PER_S = 200.0
"""Frames a second of a port that are read. A link brings some 83 probes at most (`LATE_S`), an agent 3 announcements."""
BURST = 400.0
"""So many may come at once."""
HANDED_IN_PER_S = round(2 * RATE_PER_S)
HANDED_IN_BURST = round(2 * BURST)
"""What a switch with a meter for it hands in of a port: more than is read, so that a flood is seen."""
OVER_AFTER_S = 5.0
"""A flood is over when nothing more than that has come for so long."""


@dataclass
class Flood:
    """More than `RATE_PER_S` come from a port."""

    place: PortRef
    began_at: float
    last_at: float
    came: int = 0
    """Frames since it began, those that were read among them."""
    dropped: int = 0

    @property
    def per_s(self) -> int:
        """Frames a second since it began; within the first second as many as came."""
        return round(self.came / max(self.last_at - self.began_at, 1.0))


@dataclass
class _Port:
    left: float
    at: float
    flood: Flood | None = None


class PortRates:
    """A bucket of tokens for each port."""

    def __init__(self) -> None:
        self._ports: dict[PortRef, _Port] = {}
        """Of known switches; as many as these have ports."""
        self.dropped = 0
        """Frames that were not read."""

    def allows(self, place: PortRef, now: float) -> bool:
        """Whether a frame that comes in is to be read."""
        port = self._ports.get(place)
        if port is None:
            port = self._ports[place] = _Port(BURST, now)
        port.left, port.at = min(BURST, port.left + (now - port.at) * RATE_PER_S), now
        allowed = port.left >= 1.0
        if allowed:
            port.left -= 1.0
        elif port.flood is None:
            port.flood = Flood(place, now, now)
        if port.flood is not None:
            port.flood.came += 1
            if not allowed:
                self.dropped += 1
                port.flood.dropped += 1
                port.flood.last_at = now
        return allowed

    def flood(self, place: PortRef) -> Flood | None:
        """The flood that comes from a port."""
        port = self._ports.get(place)
        return None if port is None else port.flood

    def take_ended(self, now: float) -> list[Flood]:
        """Floods that are over by now."""
        ended = []
        for port in self._ports.values():
            if port.flood is not None and now - port.flood.last_at >= OVER_AFTER_S:
                ended.append(port.flood)
                port.flood = None
        return ended
