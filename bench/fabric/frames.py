"""Frames: a file to seven hosts over the four switches of the testbed, links without a rate, by size of frame.

One size after another, over and over, so that all have the same machine. Beside the rate stands what switches and agents
took of the processor to move the bytes, without what reading, checking and writing files takes: that is the same for
all frames, and the limit where frames are long.
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
MOVERS = "dataplane"
"""How threads are called that move frames."""


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
                    before = moving_s()
                    result = transfer(fabric, scheme, file, source, receivers)
                    if not result.intact or result.failed:
                        raise RuntimeError(f"{scheme}, frames of {mtu} bytes: not everybody has the file")
                    rows.append(
                        say(
                            scheme=scheme,
                            mtu=mtu,
                            goodput_mbps=round(result.goodput_mbps),
                            moving_s=round(moving_s() - before, 2),
                            sent_again=result.retransmissions,
                            load=round(os.getloadavg()[0], 1),
                        )
                    )
        tempfile.tempdir = None
    return rows


def moving_s() -> float:
    """Processor time of all threads of the sandbox that move frames."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        if name.startswith(MOVERS):
            user, system = fields.split()[11:13]
            ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def draw(rows: list[Row], figure: Figure) -> None:
    """Rate by size of frame."""
    lines(figure, rows, "mtu", "goodput_mbps", "scheme", title="testbed, links without a rate")
