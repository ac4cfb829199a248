"""TORUS: completion on a 4x4 torus by size of message and of group, under every scheme the program carries.

The paper's claims: repeat (separate addressing) is best for small messages and groups, the path schemes for large
ones. What is carried by this version is asked of the program.
"""

from __future__ import annotations

import argparse
import random

from matplotlib.figure import Figure
from rig import Row, completions, fabric_of, group_of, lines, median_ms, say
from wormcast.network.groups import SCHEMES


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 2_048, 16_384, 131_072])
    parser.add_argument("--members", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rate", type=float, default=20.0, help="Mb/s of every link")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schemes", nargs="+", default=[s for s in SCHEMES if s != "auto"], choices=SCHEMES)


def measure(chosen: argparse.Namespace) -> list[Row]:
    """Every scheme for every group and size, one after another in the same fabric."""
    rows = []
    drawn = random.Random(chosen.seed)
    with fabric_of("torus:4", rate_mbps=chosen.rate) as fabric:
        for count in chosen.members:
            members = drawn.sample(range(16), count)
            for size in chosen.sizes:
                times = {}
                for scheme in chosen.schemes:
                    with group_of(fabric, scheme, members) as group:
                        took = completions(fabric, group, members[0], members[1:], size, chosen.repeats)
                    times[scheme] = median_ms(took)
                best = min(times.values())
                for scheme, ms in times.items():
                    rows.append(
                        say(members=count, bytes=size, scheme=scheme, ms=ms, of_best=round(ms / best, 2))
                    )
    return rows


def draw(rows: list[Row], figure: Figure) -> None:
    """Completion by size in the largest group."""
    largest = max(row["members"] for row in rows)
    lines(
        figure,
        [row for row in rows if row["members"] == largest],
        "bytes",
        "ms",
        "scheme",
        xscale="log",
        yscale="log",
        title=f"4x4 torus, {largest} members",
    )
