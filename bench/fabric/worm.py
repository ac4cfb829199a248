"""WORM: throughput of the Hamiltonian circuit on the testbed by size of frame, one source and all sources (Fig. 12, 13).

Agents hold packets in two buffer classes (WORM §4), and refuse what finds no room: so receivers' buffers lose
nothing. A version without the classes is not there to be run, so the loss without them is not shown. Counted here: packets refused for want of a buffer, and frames that were lost to hosts.
"""

from __future__ import annotations

import argparse
import os
import threading
import time

from matplotlib.figure import Figure
from rig import MESSAGE_SECONDS_MAX, Listener, Row, fabric_of, group_of, lines, say
from wormcast.client import Agent
from wormcast.mininet import fabric as fabrics
from wormcast.mininet.fabric import Fabric

HOSTS = range(8)
LOST = ("drops.receive_queue_full", "drops.frame_too_long", "drops.send_failed")


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--mtus", type=int, nargs="+", default=[576, 1500, 4000, 9000])
    parser.add_argument("--mib", type=float, default=2.0, help="MiB that each source sends")
    parser.add_argument("--rate", type=float, default=50.0, help="Mb/s of every link")
    parser.add_argument("--buffer-mib", type=int, default=1, help="MiB that each agent may hold")


def measure(chosen: argparse.Namespace) -> list[Row]:
    """One source and all sources, for each size of frame."""
    rows = []
    for mtu in chosen.mtus:
        mtus = fabrics.parse_mtus(str(mtu), None)
        arguments = ("--buffer-mib", str(chosen.buffer_mib))
        with fabric_of("testbed", rate_mbps=chosen.rate, mtus=mtus, agent_arguments=arguments) as fabric:
            for sources in (1, len(HOSTS)):
                rows.append(one(fabric, chosen, mtu, list(HOSTS)[:sources]))
    return rows


def one(fabric: Fabric, chosen: argparse.Namespace, mtu: int, sources: list[int]) -> Row:
    """Every source sends at once; every host gets all of it."""
    data = os.urandom(round(chosen.mib * 2**20))
    with group_of(fabric, "circuit", HOSTS) as group:
        listeners = [Listener(fabric, host, group) for host in HOSTS]
        before = counted(fabric)
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
        if any(received != data for _, received in ends):
            raise RuntimeError("a message did not arrive whole")
        seconds = max(at for at, _ in ends) - began
        after = counted(fabric)
    return say(
        mtu=mtu,
        sources=len(sources),
        received_mbps=round(len(data) * 8 * len(sources) / seconds / 1e6, 2),
        nacks=after["nacks"] - before["nacks"],
        lost_at_hosts=after["lost"] - before["lost"],
    )


def counted(fabric: Fabric) -> dict[str, int]:
    """Of all agents: packets refused for want of a buffer, frames lost."""
    statuses = [status for host in HOSTS if (status := fabric.agent_status(host)) is not None]
    counters = [status["counters"] for status in statuses]
    nacks = sum(value for each in counters for name, value in each.items() if name.startswith("nacks_sent"))
    return {"nacks": nacks, "lost": sum(each.get(name, 0) for each in counters for name in LOST)}


def draw(rows: list[Row], figure: Figure) -> None:
    """Throughput at a receiver by MTU."""
    lines(figure, rows, "mtu", "received_mbps", "sources", title="testbed, circuit")
