"""ITB: accepted traffic and latency by routing algorithm, irregular networks of 16 and 32 switches with 4 hosts each.

The paper's claim for 16 switches: rmit and rrmit saturate at 1.9 times the traffic of osud (up*/down*), rrmit-min at
1.47 times. Links are slow, so that they and not the processors are the limit: `late` says whether that held.

Here a full link holds up the messages that cross it, and no others: links queue, they do not block, and streams wait
for nobody. So beyond saturation other messages still get through, and accepted traffic goes on to rise. What a network
carries is the highest load of which nearly all arrives (`carried_mbps`); beside it stands how the fullest channel's load
by osud compares (`channels`). The README has a simulation of links that block beside links that queue.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import traffic
from matplotlib.figure import Figure
from rig import Row, fabric_of, lines, say
from wormcast import routing

CARRIED = 0.95
"""The part of what is offered that arrives, so that the load counts as carried."""


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
            carried: dict[str, float] = {}
            fullest = {name: fullest_channel(fabric.options.topology, name) for name in chosen.algorithms}
            for algorithm in chosen.algorithms:
                fabric.put("routing", {"algorithm": algorithm, "root": None})
                time.sleep(2.0)  # what is under way on the routes before
                for share in chosen.loads:
                    load = traffic.Load(
                        share * chosen.rate, chosen.size, chosen.warm, chosen.seconds, chosen.seed
                    )
                    found = traffic.run(fabric, streams, load)
                    if found["accepted_mbps"] >= CARRIED * found["drawn_mbps"]:
                        carried[algorithm] = max(carried.get(algorithm, 0.0), load.mbps)
                    late = fabric.get("status")["late"]
                    rows.append(
                        say(
                            switches=switches,
                            algorithm=algorithm,
                            offered_mbps=round(load.mbps, 3),
                            **found,
                            carried_mbps=round(carried.get(algorithm, 0.0), 3),
                            channels=round(
                                fullest.get("osud", fullest[algorithm]) / fullest[algorithm],
                                2,
                            ),
                            late_ms=max(late["controller_ms"], late["agents_ms"]),
                        )
                    )
    return rows


def fullest_channel(topology: dict[str, Any], algorithm: str) -> float:
    """Pairs of hosts whose worms cross the fullest channel between switches, if all pairs send alike."""
    ends = [
        end
        for link in topology["links"]
        for end in ((link["a"], link["a_port"]), (link["b"], link["b_port"]))
    ]
    crossed = dict.fromkeys(ends, 0.0)
    for route in routing.routes(topology, algorithm=algorithm, seed=1)["routes"]:
        for end in zip(route["switches"], route["ports"], strict=False):
            if end in crossed:
                crossed[end] += route.get("share", 1.0)
    return max(crossed.values())


def draw(rows: list[Row], figure: Figure) -> None:
    """Latency by accepted traffic, as the paper's figures, for the smallest network."""
    least = min(row["switches"] for row in rows)
    chosen = [row for row in rows if row["switches"] == least]
    axes = {"yscale": "log", "title": f"{least} switches"}
    lines(figure, chosen, "accepted_mbps", "latency_ms", "algorithm", along="offered_mbps", **axes)
