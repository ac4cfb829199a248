"""Namespaces and links of a whole fabric, made by a few processes for all of it and not by some for each link."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mininet.link import Intf
from mininet.link import Link as MininetLink
from wormcast.mininet import inside
from wormcast.mininet.links import Link, shape
from wormcast.mininet.options import WORM_BYTES, Mtus

NAMESPACES = Path("/run/netns")
"""Where `ip netns` keeps those it made."""
LINK_GROUP = 87
"""The kernel's number for the links of a fabric, by which they are removed."""
PREFIX_BITS = 16
MULTICAST = "224.0.0.0/4"


class WiringError(RuntimeError):
    """`ip` or `tc` refused; the text is what it said."""


@dataclass(frozen=True)
class Wires:
    """What is to be made: links, and the network namespaces of hosts. `rate_mbps`: see `Options`."""

    links: Sequence[Link]
    mtus: Mtus
    rate_mbps: float | None

    def make(self) -> None:
        """Make all of it, with every interface up. Raises `WiringError`."""
        hosts = [link.host for link in self.links if link.host is not None]
        batch("ip", [f"netns add {namespace(host)}" for host in hosts])
        batch("ip", [self._pair(link) for link in self.links])
        ends = [link.interface for link in self.links]
        ends += [link.far_interface for link in self.links if link.host is None]
        batch("ip", [f"link set dev {end} up" for end in ends])
        if self.rate_mbps is not None:
            batch("tc", [shape(end, self.rate_mbps, self.mtus.fabric).removeprefix("tc ") for end in ends])
        inside.in_namespaces([(NAMESPACES / namespace(h), partial(self._settle, h)) for h in hosts])

    def remove(self) -> None:
        """Remove what `make` made, as far as it is still there."""
        # One by one, each waits until no processor can see it any more.
        batch("ip", [f"link del group {LINK_GROUP}"], force=True)
        names = [namespace(link.host) for link in self.links if link.host is not None]
        batch("ip", [f"netns del {name}" for name in names if (NAMESPACES / name).exists()], force=True)

    def _pair(self, link: Link) -> str:
        """Where a link leads to a host, the switch's end takes longer frames than the host's: what is too long for
        the host is dropped, and counted, by the kernel at the switch's end."""
        near = f"link add name {link.interface} group {LINK_GROUP} mtu {self.mtus.fabric}"
        near += f" type veth peer name {link.far_interface}"
        if link.host is None:
            return f"{near} mtu {self.mtus.fabric}"
        own = f"mtu {self.mtus.host} address {host_mac(link.host)} netns {namespace(link.host)}"
        return f"{near} {own}"

    def multicast_route(self, interface: str) -> str:
        """What `ip route add` is told for a host's IP multicast. A packet is a longer worm between switches. Where links
        cannot be longer, hosts send it in parts."""
        packet = min(self.mtus.host, self.mtus.fabric - WORM_BYTES)
        return f"{MULTICAST} dev {interface} mtu {packet}"

    def _settle(self, host: int) -> None:
        """Inside its namespace: give a host's interface its address, its rate, and what plain sockets need."""
        name = f"h{host}-eth0"
        inside.no_ipv6()
        inside.no_offload(name)
        by_ip = ["link set dev lo up", f"addr add {host_address(host)}/{PREFIX_BITS} dev {name}"]
        batch("ip", [*by_ip, f"link set dev {name} up", f"route add {self.multicast_route(name)}"])
        if self.rate_mbps is not None:
            batch("tc", [shape(name, self.rate_mbps, self.mtus.fabric).removeprefix("tc ")])


NO_IPV6 = "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"


def no_offload(interface: str) -> str:
    """`inside.no_offload` as a command."""
    return f"ethtool -K {interface} tx off rx off gso off tso off gro off >/dev/null 2>&1 || true"


def namespace(host: int) -> str:
    """Name of a host's network namespace."""
    return f"h{host}"


def host_address(host: int) -> str:
    """IPv4 address of a host."""
    return f"10.0.{host // 250}.{host % 250 + 1}"


def host_mac(host: int) -> str:
    """MAC of a host: locally administered, the host id in the last two bytes."""
    return f"02:57:4f:52:{host >> 8:02x}:{host & 0xFF:02x}"


def batch(tool: str, commands: Iterable[str], *, force: bool = False) -> None:
    """Have `ip` or `tc` carry out many commands at once. Raises `WiringError` with what it says.

    With `force` it goes on where one fails, and says nothing.
    """
    argv = [tool, *(["-force"] if force else []), "-batch", "-"]
    done = subprocess.run(argv, input="".join(f"{c}\n" for c in commands), capture_output=True, text=True)
    if done.returncode != 0 and not force:
        _interrupted(done.returncode)
        raise WiringError(f"{tool}: {done.stderr.strip()}")


def _interrupted(code: int) -> None:
    """Ctrl-C ends a command too, and before this process may hear of it: that is no fault of the command."""
    if code in (-signal.SIGINT, 128 + signal.SIGINT):
        raise KeyboardInterrupt


class MadeInterface(Intf):
    """An interface as Mininet knows it, which is made already. `ip`, `mac`: as it was given them."""

    def config(self, ip: str | None = None, **_params: Any) -> dict[str, Any]:
        """Nothing is left to do."""
        if ip is not None:
            self.ip, self.prefixLen = ip, PREFIX_BITS
        return {}

    def delete(self) -> None:
        """It goes with all others: `Wires.remove`."""
        self.node.delIntf(self)
        self.link = None


class MadeLink(MininetLink):
    """A link as Mininet knows it, which is made already."""

    @classmethod
    def makeIntfPair(cls, *_names: Any, **_params: Any) -> None:
        """Nothing is left to do."""
