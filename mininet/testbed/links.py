"""Links of a fabric: names of their interfaces, their rate, what went over them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A token bucket has to hold what one timer tick lets through; below two frames nothing moves.
BURST_BYTES_MIN = 15_000
BURST_FRAMES_MIN = 3
QUEUE_MS = 40
QUEUE_BYTES_MIN = 150_000


@dataclass(frozen=True, order=True)
class Link:
    """A link, seen from `switch`; at the far end is either `host` or `far_switch`."""

    switch: int
    port: int
    host: int | None = None
    far_switch: int | None = None
    far_port: int | None = None

    @property
    def interface(self) -> str:
        """Interface at `switch`."""
        return f"s{self.switch}-p{self.port}"

    @property
    def far_interface(self) -> str:
        """Interface at the far end."""
        if self.host is not None:
            return f"h{self.host}-eth0"
        return f"s{self.far_switch}-p{self.far_port}"

    @property
    def name(self) -> str:
        """As reports show it."""
        far = f"h{self.host}" if self.host is not None else f"s{self.far_switch}"
        return f"s{self.switch}–{far}"


@dataclass(frozen=True)
class Traffic:
    """Bytes and frames that crossed a link in one direction."""

    byte_count: int
    frame_count: int

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(self.byte_count - other.byte_count, self.frame_count - other.frame_count)


@dataclass(frozen=True)
class LinkCounters:
    """What crossed each link: out of `link.switch`, and into it."""

    out: dict[Link, Traffic]
    into: dict[Link, Traffic]

    def since(self, before: LinkCounters) -> LinkCounters:
        """What crossed between two readings."""
        return LinkCounters(
            {link: traffic - before.out[link] for link, traffic in self.out.items()},
            {link: traffic - before.into[link] for link, traffic in self.into.items()},
        )

    @property
    def total_bytes(self) -> int:
        """Over all links, both directions."""
        return sum(t.byte_count for t in [*self.out.values(), *self.into.values()])

    def source_bytes(self, host: int) -> int:
        """What `host` sent."""
        return next(t.byte_count for link, t in self.into.items() if link.host == host)

    @property
    def busiest_bytes(self) -> int:
        """Most bytes over one link in one direction."""
        return max(t.byte_count for t in [*self.out.values(), *self.into.values()])


def links_of(topology: dict[str, Any]) -> list[Link]:
    """Links of a topology file: hosts' first, then between switches."""
    links = [Link(h["switch"], h["port"], host=h["id"]) for h in topology["hosts"]]
    links += [Link(x["a"], x["a_port"], far_switch=x["b"], far_port=x["b_port"]) for x in topology["links"]]
    return links


def shape(interface: str, rate_mbps: float, mtu: int) -> str:
    """Command that gives `interface` a rate (Mb/s) and a finite queue for frames of `mtu` bytes."""
    byte_rate = rate_mbps * 1e6 / 8
    burst = max(BURST_BYTES_MIN, BURST_FRAMES_MIN * mtu, int(byte_rate * 0.002))
    limit = max(QUEUE_BYTES_MIN, int(byte_rate * QUEUE_MS / 1000)) + burst
    return f"tc qdisc replace dev {interface} root tbf rate {rate_mbps}mbit burst {burst} limit {limit}"


def read_counters(links: list[Link], source: Path = Path("/proc/net/dev")) -> LinkCounters:
    """Read the kernel's counters of the switches' interfaces.

    A link between switches is counted where frames leave, at both its ends.
    """
    rows: dict[str, list[int]] = {}
    for line in source.read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        rows[name.strip()] = [int(n) for n in numbers.split()]
    out, into = {}, {}
    for link in links:
        near = rows[link.interface]
        out[link] = Traffic(near[8], near[9])
        far = rows[link.far_interface] if link.host is None else None
        into[link] = Traffic(far[8], far[9]) if far else Traffic(near[0], near[1])
    return LinkCounters(out, into)
