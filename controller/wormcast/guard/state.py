"""What the guard of the switches admits, as the operator wants it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wormcast.network.ids import GroupId, HostId, PortId, SwitchId
from wormcast.network.topology import PortRef

RATE_MIN_BPS = 1_000_000
"""Least rate of a host: at less a host would not get its acknowledgements out."""
RATE_MAX_BPS = 400_000_000_000
"""No port is faster."""
RATE_BOUND = f"{RATE_MIN_BPS} to {RATE_MAX_BPS} bits a second"
LEADS_TO_LINK, LEADS_TO_HOST = "link", "host"
LEADS_TO = (LEADS_TO_LINK, LEADS_TO_HOST)


@dataclass(frozen=True)
class Guard:
    """Whether switches judge what enters, and what they are to refuse beside what no plan gives."""

    on: bool = False
    closed: frozenset[GroupId] = frozenset()
    """Groups with an IP multicast address to which members alone may send."""
    rates: Mapping[HostId, int] = field(default_factory=dict)
    """Bits a second that a host may send at most."""
    ports: Mapping[PortRef, str] = field(default_factory=dict)
    """What ports lead to, where the operator configured it: one of `LEADS_TO`. It holds with the guard off too."""

    def rates_bytes(self) -> dict[HostId, int]:
        """The same in bytes."""
        return {host: bps // 8 for host, bps in self.rates.items()}

    def to_json(self) -> dict[str, Any]:
        """As REST and the state file have it."""
        ports = [{"switch": s, "port": p, "leads_to": to} for (s, p), to in sorted(self.ports.items())]
        return {
            "on": self.on,
            "closed": sorted(self.closed),
            "rates": [{"host": host, "bps": bps} for host, bps in sorted(self.rates.items())],
            **({"ports": ports} if ports else {}),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Guard:
        """The same read back. Raises `ValueError`, `TypeError`, `KeyError`."""
        rates = {HostId(rate["host"]): rate["bps"] for rate in value["rates"]}
        for host, bps in rates.items():
            if not isinstance(bps, int) or not RATE_MIN_BPS <= bps <= RATE_MAX_BPS:
                raise ValueError(f"the rate of host {host} is {bps!r}; possible: {RATE_BOUND}")
        # Files of versions before have none.
        ports_given = value.get("ports", ())
        ports = {
            (SwitchId(port["switch"]), PortId(port["port"])): str(port["leads_to"]) for port in ports_given
        }
        for (switch, port), to in ports.items():
            if to not in LEADS_TO:
                raise ValueError(
                    f"port {port} of switch {switch} leads to {to!r}; possible: {', '.join(LEADS_TO)}"
                )
        return Guard(bool(value["on"]), frozenset(GroupId(group) for group in value["closed"]), rates, ports)
