"""Frames: a file to seven hosts over the four switches of the testbed, links without a rate, by size of frame.

One size after another, over and over, so that all have the same machine. Beside the rate stands what took the processor:
switches; the threads of agents that move frames; and what else agents do, nearly all of which is to read, check and write
files. That is the same for all frames, and the limit where frames are long.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from matplotlib.figure import Figure
from rig import Row, fabric_of, lines, say
from wormcast.mininet.options import parse_mtus
from wormcast.mininet.topologies import load_topology
from wormcast.mininet.transfer import transfer

MIB = 1 << 20
MEMORY = Path("/dev/shm")
"""Files are there, so that no disk is measured."""
SWITCH, AGENT, MOVER = "wormcast-switch", "wormcast-agent", "dataplane"
"""How processes are called, and the thread of an agent that moves frames."""


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--mtus", type=int, nargs="+", default=[1_500, 9_000, 16_384, 32_768, 65_535])
    parser.add_argument("--schemes", nargs="+", default=["switch", "circuit"])
    parser.add_argument("--mib", type=int, default=256, help="MiB of the file")
    parser.add_argument("--rounds", type=int, default=2)


def measure(chosen: argparse.Namespace) -> list[Row]:
    """All schemes for each size, so many rounds."""
    topology = load_topology("testbed")
    source, *receivers = (host["id"] for host in topology["hosts"])
    rows = []
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        tempfile.tempdir = directory
        file = Path(directory) / "file"
        file.write_bytes(os.urandom(chosen.mib * MIB))
        for mtu in chosen.mtus * chosen.rounds:
            with fabric_of(topology, rate_mbps=None, mtus=parse_mtus(str(mtu), None)) as fabric:
                for scheme in chosen.schemes:
                    before = processor_s()
                    result = transfer(fabric, scheme, file, source, receivers)
                    if not result.intact or result.failed:
                        raise RuntimeError(f"{scheme}, frames of {mtu} bytes: not everybody has the file")
                    rows.append(
                        say(
                            scheme=scheme,
                            mtu=mtu,
                            goodput_mbps=round(result.goodput_mbps),
                            **{name: round(now - before[name], 2) for name, now in processor_s().items()},
                            sent_again=result.retransmissions,
                            load=round(os.getloadavg()[0], 1),
                        )
                    )
        tempfile.tempdir = None
    return rows


def processor_s() -> dict[str, float]:
    """Processor time of the sandbox, by what it was for; that of threads that have ended is in their process's."""
    whole = {SWITCH: 0.0, AGENT: 0.0}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        name, seconds = seconds_of(stat)
        if name in whole:
            whole[name] += seconds
    threads = (seconds_of(stat) for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"))
    moving = sum(seconds for name, seconds in threads if name == MOVER)
    return {"switches_s": whole[SWITCH], "agents_s": moving, "files_s": whole[AGENT] - moving}


def seconds_of(stat: Path) -> tuple[str, float]:
    """Name and processor time of a process or thread; nothing if it has ended."""
    try:
        name, _, fields = stat.read_text().partition("(")[2].rpartition(")")
    except OSError:
        return "", 0.0
    user, system = fields.split()[11:13]
    return name, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def draw(rows: list[Row], figure: Figure) -> None:
    """Rate by size of frame."""
    lines(figure, rows, "mtu", "goodput_mbps", "scheme", title="testbed, links without a rate")
