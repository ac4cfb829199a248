"""NIC: what agents forward against what programs forward, and one multisend against several unicasts.

The agent is this project's adapter card. The paper's claims: multisend to 4 up to 2.05 times faster for 128 bytes or
less; multicast over 16 hosts up to 1.86 times at 16 KB.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import threading
import time
from collections.abc import Sequence

from matplotlib.figure import Figure
from rig import MESSAGE_SECONDS_MAX, Listener, Row, completions, fabric_of, group_of, lines, median_ms, say
from wormcast.client import Agent, Sender
from wormcast.mininet.fabric import Fabric


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--topology", default="irregular:8:1:4:4")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 128, 512, 4_096, 16_384])
    parser.add_argument("--multisend", type=int, nargs="+", default=[3, 4, 8])
    parser.add_argument("--multicast", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--rate", type=float, default=50.0, help="Mb/s of every link")


def measure(chosen: argparse.Namespace) -> list[Row]:
    """Adapter and host side by side, for each size."""
    rows = []
    with fabric_of(chosen.topology, rate_mbps=chosen.rate) as fabric:
        for what, counts in (("multisend", chosen.multisend), ("multicast", chosen.multicast)):
            for count in counts:
                hosts = list(range(count + 1 if what == "multisend" else count))
                scheme = "repeat" if what == "multisend" else "k-binomial"
                edges = [(0, host) for host in hosts[1:]] if what == "multisend" else binomial(hosts)
                for size in chosen.sizes:
                    shape = {"k": max(1, (count - 1).bit_length())} if what == "multicast" else {}
                    with group_of(fabric, scheme, hosts, **shape) as group:
                        adapter = median_ms(completions(fabric, group, 0, hosts[1:], size, chosen.repeats))
                    host_ms = median_ms(by_programs(fabric, edges, size, chosen.repeats))
                    ratio = round(host_ms / adapter, 2)
                    rows.append(
                        say(
                            what=what,
                            hosts=count,
                            bytes=size,
                            adapter_ms=adapter,
                            host_ms=host_ms,
                            ratio=ratio,
                        )
                    )
    return rows


def binomial(hosts: Sequence[int]) -> list[tuple[int, int]]:
    """Edges of the binomial tree, by step: each host that has the message sends it to one that has not."""
    edges, have = [], 1
    while have < len(hosts):
        for place in range(min(have, len(hosts) - have)):
            edges.append((hosts[place], hosts[have + place]))
        have *= 2
    return edges


def by_programs(fabric: Fabric, edges: Sequence[tuple[int, int]], size: int, repeats: int) -> list[float]:
    """Completion where a program at each host takes the message whole and sends it on, edge by edge."""
    with contextlib.ExitStack() as stack:
        groups = {edge: stack.enter_context(group_of(fabric, "repeat", edge)) for edge in edges}
        senders: dict[int, list[Sender]] = {}
        for edge in edges:
            agent = stack.enter_context(Agent(fabric.agent_socket(edge[0]), timeout_s=60.0))
            senders.setdefault(edge[0], []).append(stack.enter_context(agent.open_sender(groups[edge])))
        listeners = {edge[1]: Listener(fabric, edge[1], groups[edge]) for edge in edges}
        for listener in listeners.values():
            stack.callback(listener.close)

        def forward(host: int) -> None:
            for number in range(1, repeats + 1):
                _, data = listeners[host].wait(number)
                hand_on(senders[host], data)

        between = [threading.Thread(target=forward, args=(host,)) for host in senders if host in listeners]
        for thread in between:
            thread.start()
        took = []
        for number in range(1, repeats + 1):
            data = os.urandom(size)
            began = time.monotonic()
            hand_on(senders[edges[0][0]], data)
            ends = [listener.wait(number) for listener in listeners.values()]
            if any(received != data for _, received in ends):
                raise RuntimeError(f"a message of {size} bytes did not arrive whole everywhere")
            took.append(max(at for at, _ in ends) - began)
        for thread in between:
            thread.join()
        return took


def hand_on(senders: Sequence[Sender], data: bytes) -> None:
    """To all, one after another; then waits until all have it."""
    messages = []
    for sender in senders:
        sender.write(data)
        messages.append(sender.end())
    for sender, message in zip(senders, messages, strict=True):
        sender.wait_stable(message, MESSAGE_SECONDS_MAX)


def draw(rows: list[Row], figure: Figure) -> None:
    """The ratio by size."""
    named = [{**row, "case": f"{row['what']} {row['hosts']}"} for row in rows]
    lines(figure, named, "bytes", "ratio", "case", xscale="log")
