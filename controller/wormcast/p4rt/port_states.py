"""Which ports of a switch are down, as it says itself over gNMI (openconfig-interfaces, `oper-status` on change).

Ports are told apart by `state/ifindex`, which Stratum and wormcast-switch fill with the number that P4Runtime knows
them by.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from finsy.gnmiclient import GNMIClient, GNMIClientError, GNMIUpdate
from finsy.gnmipath import GNMIPath

from wormcast.network.ids import PortId

INTERFACE = "interfaces/interface[name=*]/state"
DOWN = frozenset({"DOWN", "LOWER_LAYER_DOWN", "NOT_PRESENT"})
"""Values of `oper-status` that mean that no frame goes through. UNKNOWN, TESTING and DORMANT do not say so."""
PORTS_MAX = 4096
"""Interfaces of one switch that are kept; what it says of further ones is not looked at."""


class PortStates:
    """What a switch has said of its interfaces."""

    def __init__(self) -> None:
        self._ports: dict[str, PortId | None] = {}
        """Numbers of the interfaces, None until they are told."""
        self._down: set[str] = set()

    def take(self, update: GNMIUpdate) -> None:
        """One leaf of one interface."""
        try:
            name, leaf, value = update.path["name"], update.path.last, update.value
        except (KeyError, IndexError, ValueError):
            return
        if name not in self._ports and len(self._ports) >= PORTS_MAX:
            return
        self._ports.setdefault(name, None)
        if leaf == "ifindex" and isinstance(value, int):
            self._ports[name] = PortId(value)
        elif leaf == "oper-status":
            (self._down.add if value in DOWN else self._down.discard)(name)

    def down(self) -> frozenset[PortId]:
        """Ports that are down."""
        return frozenset(port for name in self._down if (port := self._ports[name]) is not None)


async def follow_ports(address: str, device_id: int) -> AsyncIterator[frozenset[PortId]]:
    """Ports that are down: all of them at first, and again after each change. Ends where the switch does not say, or
    no more."""
    states = PortStates()
    with contextlib.suppress(GNMIClientError):
        async with GNMIClient(address) as client:
            # One process may be many switches.
            subscription = client.subscribe(prefix=GNMIPath(target=str(device_id)))
            subscription.on_change(GNMIPath(f"{INTERFACE}/ifindex"), GNMIPath(f"{INTERFACE}/oper-status"))
            try:
                async for update in subscription.synchronize():
                    states.take(update)
                yield (down := states.down())
                async for update in subscription.updates():
                    states.take(update)
                    if (now := states.down()) != down:
                        yield (down := now)
            finally:
                subscription.cancel()
