"""PACKET: k-binomial trees against the binomial tree, by packets in a message.

The paper's claim (Fig. 14): up to 2 times better, and the more so the longer the message. The tree of the best k is
the one the planner chooses for that number of packets.
"""

from __future__ import annotations

import argparse
import math

from matplotlib.figure import Figure
from rig import Row, completions, fabric_of, group_of, lines, median_ms, say

PACKET_BYTES = 1_400
"""About what a frame of 1500 bytes carries."""


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--topology", default="irregular:8:1:4:4")
    parser.add_argument("--members", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--packets", type=int, nargs="+", default=[1, 2, 4, 8, 32, 128])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rate", type=float, default=20.0, help="Mb/s of every link")


def measure(chosen: argparse.Namespace) -> list[Row]:
    """Both trees side by side."""
    rows = []
    with fabric_of(chosen.topology, rate_mbps=chosen.rate) as fabric:
        for count in chosen.members:
            members = list(range(count))
            for packets in chosen.packets:
                shapes = {"binomial": {"k": math.ceil(math.log2(count))}, "k-binomial": {"packets": packets}}
                times = {}
                for name, shape in shapes.items():
                    with group_of(fabric, "k-binomial", members, **shape) as group:
                        size = packets * PACKET_BYTES
                        took = completions(fabric, group, 0, members[1:], size, chosen.repeats)
                    times[name] = median_ms(took)
                ratio = round(times["binomial"] / times["k-binomial"], 2)
                rows.append(say(members=count, packets=packets, **times, binomial_over_k_binomial=ratio))
    return rows


def draw(rows: list[Row], figure: Figure) -> None:
    lines(figure, rows, "packets", "binomial_over_k_binomial", "members", xscale="log")
