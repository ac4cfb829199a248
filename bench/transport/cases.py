"""What is measured: the cases, and who takes part in each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

MIB = 1 << 20
ALL_FRAMES = 65_535
"""The largest MTU of veth."""
OURS = ("wormcast switch", "wormcast circuit")


@dataclass(frozen=True)
class Case:
    """`kind`: what is done, a function of `ours` and of `peers`. `rate`: Mb/s of each link, None: free.

    `loss`: part of the frames. `target`: what ours is to be divided by the best peer's, in times as fast.
    """

    name: str
    says: str
    kind: str
    contenders: tuple[str, ...]
    receivers: int = 7
    size: int = 256 * MIB
    mtu: int = 1_500
    rate: float | None = None
    loss: float = 0.0
    seconds_max: int = 600
    target: str = ""

    def settings(self) -> dict[str, Any]:
        """What a result holds for."""
        own = asdict(self)
        return {name: own[name] for name in ("kind", "receivers", "size", "mtu", "rate", "loss")}

    def of_size(self, size: int) -> Case:
        """The same with less to send."""
        return replace(self, size=size)


MULTICAST = ("uftp 400", "uftp 800", "uftp 1600", "udpcast")
"""UFTP is told a rate, Mb/s: the best of these counts."""
TARS = ("tar+uftp", "tar+udpcast", "tar+tcp")
CASES = (
    Case("demo", "`make demo`: 64 MiB to 7, 100 Mb/s", "demo", ("wormcast demo",), size=64 * MIB, rate=100.0, target="≤ 5.7 s"),
    *(
        Case(
            f"to-{count}", f"64 MiB to {count}, 100 Mb/s", "file", ("wormcast switch",), count, 64 * MIB, rate=100.0,
            target="< 3 % slower",
        )
        for count in (1, 3, 7, 15)
    ),
    Case("plain", "256 MiB to 7, frames of 1500", "file", (*OURS, *MULTICAST), target="≥ 3 ×"),
    Case("long-7", "256 MiB to 7, largest frames", "file", (*OURS, "tcp", *MULTICAST), mtu=ALL_FRAMES, target="≥ 1 ×"),
    Case("long-15", "256 MiB to 15, largest frames", "file", (*OURS, "tcp", *MULTICAST), 15, mtu=ALL_FRAMES, target="≥ 1.5 ×"),
    Case("plain-lossy", "256 MiB to 7, frames of 1500, 1 % lost", "file", (*OURS, *MULTICAST), loss=0.01, target="≥ 3 ×"),
    Case("long-7-lossy", "256 MiB to 7, largest frames, 1 % lost", "file", (*OURS, "tcp", *MULTICAST), mtu=ALL_FRAMES, loss=0.01, target="≥ 3 ×"),
    Case("long-15-lossy", "256 MiB to 15, largest frames, 1 % lost", "file", (*OURS, "tcp", *MULTICAST), 15, mtu=ALL_FRAMES, loss=0.01, target="≥ 3 ×"),
    Case("messages", "messages of 64 B to 7", "messages", ("wormcast switch", "aeron", "norm", "mpi"), size=20_000, target="first"),
    Case("files", "20,000 files of 4 KB to 7", "files", ("wormcast switch", *TARS, "rsync"), size=20_000, mtu=ALL_FRAMES, target="first"),
    Case("changed", "1 GB of mixed files to 7, 1 % changed", "changed", ("wormcast switch", *TARS, "rsync"), size=10**9, mtu=ALL_FRAMES, target="first"),
)  # fmt: skip
BY_NAME = {case.name: case for case in CASES}
