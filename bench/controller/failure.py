"""One link of a large fabric fails: how long the controller takes from there to the messages for the agents.

Plans and encodes as the running controller does, without sockets: `python failure.py [--switches 256] [--hosts 4]`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

from wormcast import routing
from wormcast.directory.plans import IssuedPlan
from wormcast.network.ids import Epoch, HostId
from wormcast.network.topology import Topology
from wormcast.offload.switch_plan import read_network
from wormcast_planner import ClassDNumbers, FabricState, Planner

FAILURES = 12
"""Links that fail, one at a time, each of the whole network."""


def main() -> None:
    """Prints a line for the first plan, and one for each part of a failure: the median, and the longest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--switches", type=int, default=256)
    parser.add_argument("--hosts", type=int, default=1, help="hosts of each switch")
    parser.add_argument("--algorithm", default=routing.algorithms()[0], choices=routing.algorithms())
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kind = f"irregular:{options.switches}:{options.seed}:{options.hosts}:4"
    network = read_network(routing.make(kind))
    print(f"{kind}, {options.algorithm}, {len(network.links)} links")
    fabric = Fabric(network, options.algorithm)
    parts: dict[str, list[float]] = {
        "plan": [],
        "encode": [],
        "agents told": [],
        "pairs": [],
        "kilobytes": [],
    }
    steps: list[int] = []
    for link in network.links[:: max(1, len(network.links) // FAILURES)][:FAILURES]:
        left = replace(network, links=tuple(kept for kept in network.links if kept != link))
        found = fabric.change(left)
        steps.append(1 if found.pop("bridge") == 0 else 2)
        for name, value in found.items():
            parts[name].append(value)
        fabric.change(network)
    for name, values in parts.items():
        unit = " ms" if name in ("plan", "encode") else ""
        print(f"{name}: {statistics.median(values):.1f}{unit}, at most {max(values):.1f}{unit}")
    print(f"failures in one step: {steps.count(1)} of {len(steps)}")


class Fabric:
    """The planner and the encoder as the controller has them."""

    def __init__(self, network: Topology, algorithm: str) -> None:
        self._planner = Planner(algorithm)
        self._known = network
        self._hosts = frozenset(host.id for host in network.hosts)
        self._issued: dict[HostId, IssuedPlan] = {}
        self._epoch = 0
        for name, value in self.change(network).items():
            print(f"first plan: {name} {value:.1f}")

    def change(self, network: Topology) -> dict[str, float]:
        """Plans for what is up now, and encodes what agents must be issued."""
        began = time.process_time()
        away = [link for link in self._known.links if link not in network.links]
        self._planner.set_down({end for link in away for end in link.ends()})
        state = self._planner.plan(network, self._known, (), self._hosts, self._hosts, {}, ClassDNumbers())
        planned = time.process_time()
        plans = state.agents if state.bridge is None else state.bridge
        self._epoch += 1
        before, lengths = dict(self._issued), []
        for host, plan in plans.items():
            if (old := before.get(host)) is None or old.plan is not plan:
                issued = self._issued[host] = IssuedPlan(plan, Epoch(self._epoch))
                change = None if old is None else issued.encode_change(old)
                lengths.append(len(issued.encode() if change is None else change))
        encoded = time.process_time()
        self._settle(state)
        return {
            "plan": (planned - began) * 1000,
            "encode": (encoded - planned) * 1000,
            "agents told": len(lengths),
            "pairs": state.routes_changed,
            "kilobytes": sum(lengths) / 1000,
            "bridge": float(state.bridge is not None),
        }

    def _settle(self, state: FabricState) -> None:
        if state.bridge is not None:
            self._planner.settle()
            self._issued = {host: IssuedPlan(plan, Epoch(self._epoch)) for host, plan in state.agents.items()}
        if state.drains:
            self._planner.drained()


if __name__ == "__main__":
    main()
