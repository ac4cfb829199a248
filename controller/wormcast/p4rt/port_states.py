"""What a switch says of its ports over gNMI (openconfig-interfaces, on change): which are down, and their MTUs.

Ports are told apart by `state/ifindex`, which Stratum and wormcast-switch fill with the number that P4Runtime knows
them by.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from finsy.gnmiclient import GNMIClient, GNMIClientError, GNMIUpdate
from finsy.gnmipath import GNMIPath
from wormcast_planner import MTU_MAX

from wormcast.network.ids import PortId

INTERFACE = "interfaces/interface[name=*]/state"
DOWN = frozenset({"DOWN", "LOWER_LAYER_DOWN", "NOT_PRESENT"})
"""Values of `oper-status` that mean that no frame goes through. UNKNOWN, TESTING and DORMANT do not say so."""
PORTS_MAX = 4096
"""Interfaces of one switch that are kept; what it says of further ones is not looked at."""


ETHERNET_BYTES = 14
"""What OpenConfig counts into `mtu` beyond what the kernel does."""
SHORT_MAX = 0xFFFF
"""`mtu` has 16 bits: its largest value says that the port takes frames of any length."""
LEAVES = ("ifindex", "oper-status", "mtu")


@dataclass(frozen=True)
class AnnouncedPorts:
    """Ports of a switch, as it says itself."""

    down: frozenset[PortId] = frozenset()
    """Those through which no frame goes."""
    mtus: Mapping[PortId, int] = field(default_factory=dict)
    """Bytes of a frame after its Ethernet header, of those that say it."""


class PortStates:
    """What a switch has announced of its interfaces."""

    def __init__(self) -> None:
        self._ports: dict[str, PortId | None] = {}
        """Numbers of the interfaces, None until they are announced."""
        self._down: set[str] = set()
        self._mtus: dict[str, int] = {}

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
        elif leaf == "mtu":
            self._mtus.pop(name, None)
            if isinstance(value, int) and value > ETHERNET_BYTES:
                self._mtus[name] = value - ETHERNET_BYTES if value < SHORT_MAX else MTU_MAX

    def current(self) -> AnnouncedPorts:
        """What is known of ports whose number is."""
        ports = {name: port for name, port in self._ports.items() if port is not None}
        return AnnouncedPorts(
            frozenset(ports[name] for name in self._down if name in ports),
            {ports[name]: mtu for name, mtu in sorted(self._mtus.items()) if name in ports},
        )


async def follow_ports(address: str, device_id: int) -> AsyncIterator[AnnouncedPorts]:
    """What a switch says of its ports: of all of them at first, and again after each change. Ends where the switch
    does not say, or no more."""
    states = PortStates()
    with contextlib.suppress(GNMIClientError):
        async with GNMIClient(address) as client:
            # One process may be many switches.
            subscription = client.subscribe(prefix=GNMIPath(target=str(device_id)))
            subscription.on_change(*(GNMIPath(f"{INTERFACE}/{leaf}") for leaf in LEAVES))
            try:
                async for update in subscription.synchronize():
                    states.take(update)
                yield (last := states.current())
                async for update in subscription.updates():
                    states.take(update)
                    if (now := states.current()) != last:
                        yield (last := now)
            finally:
                subscription.cancel()
