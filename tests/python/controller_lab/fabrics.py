"""Random topologies and groups; ids have holes, as after failures."""

from __future__ import annotations

import ipaddress
import random
from dataclasses import replace

from wormcast.fabric.groups import Group, Parameters, Scheme
from wormcast.fabric.ids import GroupId, HostId, PortId, SwitchId
from wormcast.fabric.topology import Host, Link, Switch, Topology


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


def random_groups(rng: random.Random, topology: Topology, count: int = 4) -> list[Group]:
    """Groups of all schemes, some with a class D address, some that share its low 8 bits."""
    groups = []
    hosts = [host.id for host in topology.hosts]
    if not hosts:
        return []
    for number in rng.sample([n for n in range(600) if n != 255], count):
        members = tuple(sorted(rng.sample(hosts, rng.randint(1, len(hosts)))))
        class_d = ipaddress.IPv4Address(f"239.1.{rng.randint(0, 3)}.{rng.randint(1, 3)}")
        groups.append(
            Group(
                GroupId(number),
                f"g{number}",
                rng.choice(list(Scheme)),
                members,
                Parameters(),
                class_d if rng.random() < 0.5 else None,
            )
        )
    return groups


def damage(rng: random.Random, topology: Topology) -> Topology:
    """The topology after some links and switches have failed."""
    switches = tuple(s for s in topology.switches if rng.random() < 0.9)
    alive = {s.id for s in switches}
    return replace(
        topology,
        switches=switches,
        hosts=tuple(h for h in topology.hosts if h.switch in alive),
        links=tuple(x for x in topology.links if {x.a, x.b} <= alive and rng.random() < 0.8),
    )
