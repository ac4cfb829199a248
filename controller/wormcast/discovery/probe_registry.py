"""Probes that are on their way: each counts once, and in time. Pure; time is an argument.

Hosts see the probes that leave their ports. What one has recorded is refused here. That one hands a probe to another
at once, no signature can tell; `reconcile/packet_in.py` makes no link of a port with a host.
"""

from __future__ import annotations

from wormcast.discovery.lldp import LldpError, Probe, encode_probe
from wormcast.network.topology import PortRef

VALID_MIN_S = 20.0
"""A probe counts for so long at least: it may wait for seconds in front of a switch that gets no processor."""
VALID_S = 2.0
"""And for so long times by how much the intervals of probes are longer than in a small fabric."""


class ProbeRefused(LldpError):
    """A probe of this controller that shows nothing; the text is the reason to count."""


class ProbeRegistry:
    """Makes probes, and knows which are on their way. These are as many as leave while they count."""

    def __init__(self, key: bytes) -> None:
        """`key` signs probes. Those of a controller that had another one are refused."""
        self.key = key
        self._next = 0
        self._sent: dict[int, tuple[float, PortRef | None]] = {}
        """By nonce, in this order: when it left, and where it has come in."""

    def send(self, ref: PortRef, now: float, stretch: float = 1.0) -> bytes:
        """The frame of a probe that leaves by this port. Those that do not count any more are forgotten."""
        while self._sent and now - self._sent[oldest := next(iter(self._sent))][0] > _valid_s(stretch):
            del self._sent[oldest]
        nonce, self._next = self._next, self._next + 1
        self._sent[nonce] = (now, None)
        return encode_probe(Probe(*ref, nonce), self.key)

    def take(self, probe: Probe, place: PortRef, now: float, stretch: float = 1.0) -> float:
        """A probe that this controller signed has come in at this port: when it left. Raises `ProbeRefused`."""
        sent_at, seen_at = self._sent.get(probe.nonce, (float("-inf"), None))
        if seen_at is not None:
            raise ProbeRefused("probe seen twice")
        if now - sent_at > _valid_s(stretch):
            raise ProbeRefused("probe too late")
        self._sent[probe.nonce] = (sent_at, place)
        return sent_at


def _valid_s(stretch: float) -> float:
    return max(VALID_MIN_S, VALID_S * stretch)
