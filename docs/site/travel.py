"""How the packets of a message travel under a scheme: each hop on each link, from a plan and its source routes."""

from __future__ import annotations

import heapq
import html
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wormcast import pictures, routing

NETWORK = "testbed"
SOURCE = 0
PACKETS = 3
SCHEMES = ("repeat", "circuit", "tree", "k-binomial", "switch")

Path = tuple[str, ...]
"""Hosts and switches that a worm meets, as in h0, s0, s1, h2."""


@dataclass(frozen=True)
class Hop:
    """A packet on one link, from `start` to `start` + 1."""

    packet: int
    start: int
    link: tuple[str, str]


@dataclass(frozen=True)
class Branch:
    """What a place does with a worm: send it on to these."""

    node: str
    next: tuple[Branch, ...] = ()


def branch_of(path: Path) -> Branch:
    """A route without branches."""
    head, *rest = path
    return Branch(head, (branch_of(tuple(rest)),) if rest else ())


def branch_of_tree(tree: Mapping[str, Any]) -> Branch:
    """The tree of a group file of scheme switch."""
    if "host" in tree:
        return Branch(f"h{tree['host']}")
    return Branch(f"s{tree['switch']}", tuple(branch_of_tree(branch) for branch in tree["branches"]))


def worms_of(topology: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, list[Branch]]:
    """For each host the worms it sends for a packet, in their order."""
    sends: dict[str, list[Branch]] = defaultdict(list)
    if "tree" in plan:
        source = f"h{plan['source']}"
        sends[source] = [Branch(source, (branch_of_tree(plan["tree"]),))]
        return sends
    for edge in plan["edges"]:
        route = routing.route(topology, edge["from"], edge["to"])
        path = (f"h{edge['from']}", *(f"s{switch}" for switch in route["switches"]), f"h{edge['to']}")
        sends[path[0]].append(branch_of(path))
    return sends


def travel(sends: Mapping[str, Iterable[Branch]], source: str, packets: int) -> list[Hop]:
    """All hops, if a link carries one packet in a unit of time in each direction, whoever has a packet whole passes
    it on, and hosts serve packet by packet (FPFS)."""
    hops: list[Hop] = []
    free: dict[tuple[str, str], int] = defaultdict(int)
    waiting: list[tuple[int, int, int, Branch]] = []
    count = 0

    def arrive(time: int, packet: int, at: Branch) -> None:
        nonlocal count
        # A host at the end of a route has the packet, and begins worms of its own.
        begun = sends.get(at.node, ()) if not at.next else (at,)
        for worm in begun:
            for branch in worm.next:
                heapq.heappush(waiting, (time, count, packet, Branch(at.node, (branch,))))
                count += 1

    for packet in range(packets):
        arrive(0, packet, Branch(source))
    while waiting:
        time, _, packet, at = heapq.heappop(waiting)
        (branch,) = at.next
        link = (at.node, branch.node)
        if free[link] > time:
            heapq.heappush(waiting, (free[link], _, packet, at))
            continue
        free[link] = time + 1
        hops.append(Hop(packet, time, link))
        arrive(time + 1, packet, branch)
    return sorted(hops, key=lambda hop: (hop.start, hop.packet, hop.link))


def all_schemes() -> tuple[dict[str, Any], dict[str, tuple[Mapping[str, Any], list[Hop]]]]:
    """The network, and for each scheme its plan and hops."""
    topology = routing.make(NETWORK)
    members = [host["id"] for host in topology["hosts"]]
    found: dict[str, tuple[Mapping[str, Any], list[Hop]]] = {}
    for scheme in SCHEMES:
        request = {"scheme": scheme, "source": SOURCE, "members": members, "parameters": {"packets": PACKETS}}
        plan = routing.group(topology, request)
        found[scheme] = plan, travel(worms_of(topology, plan), f"h{SOURCE}", PACKETS)
    return topology, found


def data() -> str:
    """What travel.js plays, as JSON."""
    topology, found = all_schemes()
    scene = pictures.draw(topology, None)
    nodes = {}
    for disc in scene.discs:
        kind, _, number = disc.title.partition(" ")
        if kind in ("switch", "host"):
            nodes[kind[0] + number] = [round(disc.centre[0], 1), round(disc.centre[1], 1)]
    xs, ys = ([point[axis] for point in nodes.values()] for axis in (0, 1))
    links = [[f"s{link['a']}", f"s{link['b']}"] for link in topology["links"]]
    links += [[f"h{host['id']}", f"s{host['switch']}"] for host in topology["hosts"]]
    margin = 18
    value = {
        "source": f"h{SOURCE}",
        "packets": PACKETS,
        "nodes": nodes,
        "links": links,
        "extent": [
            min(xs) - margin,
            min(ys) - margin,
            max(xs) - min(xs) + 2 * margin,
            max(ys) - min(ys) + 2 * margin,
        ],
        "schemes": [
            {
                "name": scheme,
                "end": hops[-1].start + 1,
                "hops": [[hop.packet, *hop.link, hop.start] for hop in hops],
            }
            for scheme, (_, hops) in found.items()
        ],
    }
    return json.dumps(value, separators=(",", ":"))


def player() -> str:
    """The animation, as HTML; without JavaScript it stays hidden, and the tables say the same."""
    return f"""<div class="travel" id="travel" hidden>
<fieldset><legend>Scheme</legend></fieldset>
<svg role="img" aria-label="Packets on the links of the testbed; the text below the picture says the same"></svg>
<div class="buttons">
<button type="button" class="play">Play</button>
<button type="button" class="back">Back</button>
<button type="button" class="step">Step</button>
<button type="button" class="restart">Restart</button>
<label>Time <input type="range" class="at" min="0" step="0.05" value="0"></label>
</div>
<p class="said" aria-live="polite"></p>
</div>
<script type="application/json" id="travel-data">{data()}</script>
"""


def summary() -> str:
    """A table of all schemes, as Markdown."""
    _, found = all_schemes()
    rows = [
        "| scheme | time until all have it | packets on all links | sent by the source | most on one link |",
        "|---|---:|---:|---:|---:|",
    ]
    for scheme, (_, hops) in found.items():
        loads: dict[tuple[str, str], int] = defaultdict(int)
        for hop in hops:
            loads[hop.link] += 1
        sent = sum(load for link, load in loads.items() if link[0] == f"h{SOURCE}")
        rows.append(f"| {scheme} | {hops[-1].start + 1} | {len(hops)} | {sent} | {max(loads.values())} |")
    return "\n".join(rows)


def in_words() -> str:
    """The first packet under each scheme, hop by hop, as Markdown that opens on demand."""
    topology, found = all_schemes()
    parts = []
    for scheme, (plan, hops) in found.items():
        lines = []
        for host, worms in worms_of(topology, plan).items():
            for worm in worms:
                lines.append(f"    - {host} sends along {_written(worm)}")
        arrivals = {hop.link[1]: hop.start + 1 for hop in hops if hop.link[1].startswith("h")}
        last = ", ".join(f"{host} at {time}" for host, time in sorted(arrivals.items()))
        parts.append(
            f'??? note "{html.escape(scheme)}"\n\n    Each packet:\n\n'
            + "\n".join(lines)
            + f"\n\n    The last packet is there: {last}."
        )
    return "\n\n".join(parts)


def _written(branch: Branch) -> str:
    if not branch.next:
        return branch.node
    if len(branch.next) == 1:
        return f"{branch.node} → {_written(branch.next[0])}"
    return f"{branch.node} → [{'; '.join(_written(one) for one in branch.next)}]"
