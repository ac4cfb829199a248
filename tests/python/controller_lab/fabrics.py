"""Random topologies; ids have holes, as after failures."""

from __future__ import annotations

import random

from wormcast.network.ids import HostId, PortId, SwitchId
from wormcast.network.topology import Host, Link, Switch, Topology


def random_topology(rng: random.Random, switches_max: int = 12, connected: bool = True) -> Topology:
    """Switches of 3 to 12 ports, some hosts on each, a random tree of links and some more."""
    ids = rng.sample(range(40), rng.randint(1, switches_max))
    ports = {s: rng.randint(3, 12) for s in ids}
    free = {s: rng.sample(range(n), n) for s, n in ports.items()}
    links: list[Link] = []

    def join(a: int, b: int) -> None:
        if a != b and free[a] and free[b]:
            ends = (SwitchId(a), PortId(free[a].pop())), (SwitchId(b), PortId(free[b].pop()))
            links.append(Link.between(*ends))

    for n in range(1, len(ids)):
        candidates = [s for s in ids[:n] if free[s]]
        if candidates and (connected or rng.random() < 0.8):
            join(ids[n], rng.choice(candidates))
    for _ in range(rng.randint(0, 2 * len(ids))):
        join(rng.choice(ids), rng.choice(ids))
    slots = [(s, p) for s in ids for p in free[s] if rng.random() < 0.6]
    names = rng.sample(range(200), len(slots))
    hosts = [Host(HostId(h), SwitchId(s), PortId(p)) for h, (s, p) in zip(names, slots, strict=True)]
    return Topology(tuple(Switch(SwitchId(s), n) for s, n in ports.items()), tuple(hosts), tuple(links))
