"""WORM: the Hamiltonian circuit on the testbed by size of frame, one source and all sources (Fig. 12, 13).

Side by side, with buffers for so few packets that they fill: two buffer classes and NACKs (WORM §4), as agents are; and
none (WORM §8.2), by an option of the agent that is there for this experiment. Then all packets share one memory as
large as the two, and what a packet carries that finds no room is lost for good, there and at the hosts behind. Of it nothing
but its number is passed on, so that the message ends. Counted at all hosts: packets lost in this way, with classes those
that were refused, and the bytes that programs received.
"""

from __future__ import annotations

import argparse
import os
import threading
import time

from matplotlib.figure import Figure
from rig import MESSAGE_SECONDS_MAX, Listener, Row, fabric_of, group_of, label, say
from wormcast.client import Agent
from wormcast.mininet import fabric as fabrics
from wormcast.mininet.fabric import Fabric

HOSTS = range(8)
BUFFERS = {"classes": (), "none": ("--experiment-unclassed",)}
PACKET_OVERHEAD = 64
"""Bytes that a packet counts in an agent's memory besides the MTU (`protocol/src/window/store.rs`)."""
LOST = ("drops.receive_queue_full", "drops.frame_too_long", "drops.send_failed")


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--mtus", type=int, nargs="+", default=[576, 1500, 4000, 9000])
    parser.add_argument("--mib", type=float, default=2.0, help="MiB that each source sends")
    parser.add_argument("--rate", type=float, default=50.0, help="Mb/s of every link")
    parser.add_argument("--buffer-packets", type=int, default=128, help="packets that each agent may hold")
    parser.add_argument("--buffers", nargs="+", choices=BUFFERS, default=list(BUFFERS))


def measure(chosen: argparse.Namespace) -> list[Row]:
    """With and without classes, one source and all sources, for each size of frame."""
    rows = []
    for mtu in chosen.mtus:
        mtus = fabrics.parse_mtus(str(mtu), None)
        memory = -(-chosen.buffer_packets * (mtu + PACKET_OVERHEAD) // 1024)
        for buffers in chosen.buffers:
            arguments = ("--experiment-buffer-kib", str(memory), *BUFFERS[buffers])
            with fabric_of("testbed", rate_mbps=chosen.rate, mtus=mtus, agent_arguments=arguments) as fabric:
                for sources in (1, len(HOSTS)):
                    row = one(fabric, chosen, list(HOSTS)[:sources], whole=buffers == "classes")
                    rows.append(say(buffers=buffers, mtu=mtu, sources=sources, **row))
    return rows


def one(fabric: Fabric, chosen: argparse.Namespace, sources: list[int], *, whole: bool) -> Row:
    """Every source sends at once; every host gets all of it, if it is to be whole."""
    data = os.urandom(round(chosen.mib * 2**20))
    with group_of(fabric, "circuit", HOSTS) as group:
        listeners = [Listener(fabric, host, group) for host in HOSTS]
        before = counted(fabric, group)
        began = time.monotonic()

        def send(host: int) -> None:
            with (
                Agent(fabric.agent_socket(host), timeout_s=60.0) as agent,
                agent.open_sender(group) as sender,
            ):
                if sender.send(data, timeout_s=MESSAGE_SECONDS_MAX).failed:
                    raise RuntimeError(f"host {host}: not everybody has the message")

        threads = [threading.Thread(target=send, args=(host,)) for host in sources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ends = []
        for listener in listeners:
            expected = len(sources) - (listener.host in sources)
            ends += [listener.wait(number) for number in range(1, expected + 1)]
            listener.close()
        if whole and any(received != data for _, received in ends):
            raise RuntimeError("a message did not arrive whole")
        seconds = max(at for at, _ in ends) - began
        receivers = len(HOSTS) - (len(sources) == 1)
        received = sum(len(received) for _, received in ends) / receivers
        after = counted(fabric, group)
    came = after["received"]
    return {
        "received_mbps": round(received * 8 / seconds / 1e6, 2),
        "refused_percent": round(100 * (after["refused"] - before["refused"]) / came, 2),
        "lost_percent": round(100 * (after["lost"] - before["lost"]) / came, 2),
        "nacks": after["nacks"] - before["nacks"],
        "lost_before_agents": after["before_agents"] - before["before_agents"],
    }


def counted(fabric: Fabric, group: int) -> dict[str, int]:
    """Of all agents: packets of the group taken, refused, lost for want of memory; frames the kernel lost."""
    statuses = [status for host in HOSTS if (status := fabric.agent_status(host)) is not None]
    counters = [status["counters"] for status in statuses]
    groups = [one for status in statuses for one in status["groups"] if one["group"] == group]
    streams = [stream for one in groups for stream in one["streams"]]
    return {
        "received": sum(stream["data_received_packets"] for stream in streams),
        "nacks": sum(stream["nacks_sent"] for stream in streams),
        "refused": sum(each.get("drops.no_buffer", 0) for each in counters),
        "lost": sum(each.get("drops.overflow", 0) for each in counters),
        "before_agents": sum(each.get(name, 0) for each in counters for name in LOST),
    }


def draw(rows: list[Row], figure: Figure) -> None:
    """Throughput at a receiver, and the share of packets lost, by MTU."""
    above, below = figure.subplots(2, 1, sharex=True)
    for buffers, sources in dict.fromkeys((row["buffers"], row["sources"]) for row in rows):
        those = [row for row in rows if (row["buffers"], row["sources"]) == (buffers, sources)]
        mtus = [row["mtu"] for row in those]
        name = f"{buffers}, {sources} {'source' if sources == 1 else 'sources'}"
        above.plot(mtus, [row["received_mbps"] for row in those], "o-", label=name)
        below.plot(mtus, [row["lost_percent"] for row in those], "o-", label=name)
    above.set(ylabel=label("received_mbps"), title="testbed, circuit")
    below.set(xlabel="MTU, bytes", ylabel=label("lost_percent"))
    figure.legend(*above.get_legend_handles_labels(), fontsize=8, loc="outside right upper")
