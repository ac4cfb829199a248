"""Worms in transit through one host: how many it re-injects at full rate, and beside its own traffic on a full link."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cases import DESTINATION, ETHERTYPE_WORM, SOURCE, worm_header
from wormcast.mininet import fabric as fabrics
from wormcast.mininet import programs
from wormcast.mininet.topologies import load_topology
from wormcast.mininet.transfer import transfer

SIZES = (64, 1500)
"""Of frames, bytes."""
RATE_MBPS, OFFERED = 100.0, 0.7
"""Of the fabric's links, and how much of one the worms in transit are offered at."""
FILE_BYTES = 24 << 20


def received(interface: str) -> int:
    """Frames the kernel has received on an interface."""
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == interface:
            return int(counts.split()[1])
    raise KeyError(interface)


@contextmanager
def frame_file(size: int, route: bytes) -> Iterator[str]:
    """A file with one worm, a frame of `size` bytes, as the generator takes it."""
    head = DESTINATION + SOURCE + ETHERTYPE_WORM + worm_header(0, route)
    with tempfile.NamedTemporaryFile("w", suffix=".hex") as file:
        file.write((head + bytes(size - len(head))).hex() + "\n")
        file.flush()
        yield f"@{file.name}"


def alone(agent: str, flood: str, size: int, seconds: float) -> float:
    """Worms a second that come back from an agent that gets them as fast as one core sends."""
    for command in ("ip link add g0 type veth peer name a0", "ip link set g0 up", "ip link set a0 up"):
        subprocess.run(command.split(), check=True)
    argv = [
        agent,
        "--interface",
        "a0",
        "--controller",
        "unix:/run/nobody",
        "--socket",
        "/run/a0",
        "--host-id",
        "0",
    ]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1.0)
        with frame_file(size, bytes([1, 2])) as frame:
            subprocess.run([flood, "g0", "0.2", frame], check=True, stdout=subprocess.DEVNULL)
            time.sleep(0.5)
            before, start = received("g0"), time.monotonic()
            subprocess.run([flood, "g0", str(seconds), frame], check=True, stdout=subprocess.DEVNULL)
            return (received("g0") - before) / (time.monotonic() - start)
    finally:
        process.terminate()
        process.wait()
        subprocess.run(["ip", "link", "del", "g0"], check=True)


def beside_own_traffic(agent: str, flood: str, size: int) -> tuple[float, float]:
    """Shares of what was offered that were re-injected, and Mb/s of a file that the same host sends meanwhile."""
    programs.AGENT = agent
    settings = fabrics.Options(load_topology("star:3"), rate_mbps=RATE_MBPS)
    with tempfile.TemporaryDirectory() as directory, fabrics.Fabric(settings, Path(directory)) as fabric:
        fabric.wait_ready()
        fabric.put("routing", {"algorithm": "osud"})
        file = Path(directory) / "file"
        file.write_bytes(bytes(FILE_BYTES))
        frames = OFFERED * RATE_MBPS * 1e6 / 8 / size
        # From host 2 by switch 2 and 0 to host 0, and on to host 1.
        with frame_file(size, bytes([1, 0, 1, 0])) as frame:
            counted = worms(fabric)
            start = time.monotonic()
            generator = fabric.popen(2, [flood, "h2-eth0", "600", frame, f"{frames:.0f}", "--discipline"])
            try:
                result = transfer(fabric, "repeat", file, 0, [1], seconds_max=300)
            finally:
                generator.terminate()
                generator.wait()
            offered = (time.monotonic() - start) * frames
            time.sleep(1.0)
            return (worms(fabric) - counted) / offered, FILE_BYTES * 8 / result.seconds / 1e6


def worms(fabric: fabrics.Fabric) -> int:
    """Worms that host 0 has re-injected."""
    counters = (fabric.agent_status(0) or {})["counters"]
    return int(counters.get("transit.frames", counters.get("in_transit_frames", 0)))


def main() -> None:
    """Prints a table; the second agent, if there is one, in turn with the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flood", required=True)
    parser.add_argument("--beside", help="another wormcast-agent, measured in turn with this one")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    agents = [programs.find(programs.AGENT), *([options.beside] if options.beside else [])]
    for size in SIZES:
        rates: list[list[float]] = [[] for _ in agents]
        for _ in range(options.repeats):
            for agent, found in zip(agents, rates, strict=True):
                found.append(alone(agent, options.flood, size, options.seconds))
        medians = [statistics.median(found) for found in rates]
        kpps = ", ".join(f"{median / 1e3:.1f}" for median in medians)
        print(f"alone, {size} B: {kpps} kpps; ratio {medians[0] / medians[-1]:.2f}", flush=True)
    for size in SIZES[1:]:
        for agent in agents:
            share, own = beside_own_traffic(agent, options.flood, size)
            print(
                f"beside own traffic, {size} B, {agent}: {share:.1%} of the worms, own file {own:.1f} Mb/s",
                flush=True,
            )


if __name__ == "__main__":
    main()
