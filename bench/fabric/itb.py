"""ITB: accepted traffic and latency by routing algorithm, irregular networks of 16 and 32 switches with 4 hosts each.

The paper's claim for 16 switches: rmit and rrmit saturate at 1.9 times the traffic of osud (up*/down*), rrmit-min at
1.47 times. Links are slow, so that they and not the processors are the limit: `late` says whether that held.
"""

from __future__ import annotations

import argparse
import time

import traffic
from matplotlib.figure import Figure
from rig import Row, fabric_of, lines, say


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--switches", type=int, nargs="+", default=[16, 32])
    parser.add_argument("--topology-seed", type=int, default=1)
    parser.add_argument(
        "--algorithms", nargs="+", default=["osud", "omit", "rmit", "rrmit", "rrmit-min", "pit"]
    )
    parser.add_argument(
        "--loads", type=float, nargs="+", default=[0.2, 0.5, 0.9], help="of a host's link, offered"
    )
    parser.add_argument("--rate", type=float, default=2.0, help="Mb/s of every link")
    parser.add_argument("--size", type=int, default=16_384, help="bytes of a message")
    parser.add_argument("--peers", type=int, default=6, help="destinations of each source")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--warm", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)


def measure(chosen: argparse.Namespace) -> list[Row]:
    """Every algorithm at every load, one after another in the same fabric."""
    rows: list[Row] = []
    for switches in chosen.switches:
        with fabric_of(
            f"irregular:{switches}:{chosen.topology_seed}:4:4", rate_mbps=chosen.rate, share_processes=True
        ) as fabric:
            streams = traffic.streams(fabric, chosen.peers, chosen.seed)
            saturated: dict[str, float] = {}
            for algorithm in chosen.algorithms:
                fabric.put("routing", {"algorithm": algorithm, "root": None})
                time.sleep(2.0)  # what is under way on the routes before
                for share in chosen.loads:
                    load = traffic.Load(
                        share * chosen.rate, chosen.size, chosen.warm, chosen.seconds, chosen.seed
                    )
                    found = traffic.run(fabric, streams, load)
                    saturated[algorithm] = max(saturated.get(algorithm, 0.0), found["accepted_mbps"])
                    of_osud = round(saturated[algorithm] / saturated.get("osud", saturated[algorithm]), 2)
                    late = fabric.get("status")["late"]
                    rows.append(
                        say(
                            switches=switches,
                            algorithm=algorithm,
                            offered_mbps=round(load.mbps, 3),
                            **found,
                            of_osud=of_osud,
                            late_ms=max(late["controller_ms"], late["agents_ms"]),
                        )
                    )
    return rows


def draw(rows: list[Row], figure: Figure) -> None:
    """Latency by accepted traffic, as the paper's figures, for the smallest network."""
    least = min(row["switches"] for row in rows)
    chosen = [row for row in rows if row["switches"] == least]
    lines(figure, chosen, "accepted_mbps", "latency_ms", "algorithm", yscale="log", title=f"{least} switches")
