"""Unicast traffic of agents at a given load, for a time: what arrives, and how long it takes.

Each source sends to some destinations drawn with the seed, a stream for each, with Poisson arrivals. Streams do not
wait for one another; a stream has a few messages under way and no more. A message carries the time at which it was due,
so one that had to wait for its stream is late. A run ends when all that is under way has arrived.
"""

from __future__ import annotations

import multiprocessing
import random
import statistics
import struct
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wormcast.client import Agent
from wormcast.mininet.fabric import Fabric

PROCESSES = 4
"""Python runs one thread of a process at a time."""
OPEN_SECONDS = 60.0
DRAIN_SECONDS_MAX = 120.0
HEAD = struct.Struct("d")
UNDER_WAY_MAX = 4
"""Messages of a stream."""


@dataclass(frozen=True)
class Stream:
    """From one host to another, in a group of the two."""

    group: int
    source: int
    destination: int


@dataclass(frozen=True)
class Load:
    """`mbps`: offered by each source. `size`: bytes of a message. `warm_s`: not counted, before `seconds`."""

    mbps: float
    size: int
    warm_s: float
    seconds: float
    seed: int


def streams(fabric: Fabric, peers: int, seed: int) -> list[Stream]:
    """Groups of two for every host and so many destinations, made at once; they stay."""
    drawn = random.Random(seed)
    hosts = sorted(fabric.hosts)
    pairs = [
        (source, destination)
        for source in hosts
        for destination in drawn.sample(
            [host for host in hosts if host != source], min(peers, len(hosts) - 1)
        )
    ]
    bodies = [{"scheme": "repeat", "members": sorted(pair)} for pair in pairs]
    made = fabric.post("groups", {"groups": bodies})["groups"]
    for group in made:
        fabric.wait_group(group["id"])
    return [Stream(group["id"], *pair) for group, pair in zip(made, pairs, strict=True)]


def run(fabric: Fabric, all_streams: Sequence[Stream], load: Load) -> dict[str, float]:
    """Traffic a host in Mb/s, as the seed has drawn it and as it arrived, and latency in ms."""
    context = multiprocessing.get_context("fork")
    results: Any = context.Queue()
    begin, drained = context.Barrier(PROCESSES + 1), context.Barrier(PROCESSES)
    sockets = {host: fabric.agent_socket(host) for host in fabric.hosts}
    mbps_each = load.mbps * len(fabric.hosts) / len(all_streams)
    parts = [all_streams[n::PROCESSES] for n in range(PROCESSES)]
    workers = [
        context.Process(
            target=_work, args=(sockets, part, load, mbps_each, (begin, drained), results, n), daemon=True
        )
        for n, part in enumerate(parts)
    ]
    for worker in workers:
        worker.start()
    begin.wait(OPEN_SECONDS)
    found = [results.get(timeout=load.warm_s + load.seconds + DRAIN_SECONDS_MAX) for _ in workers]
    for worker in workers:
        worker.join(10.0)
    latencies = sorted(ms for each, _ in found for ms in each)
    if not latencies:
        raise RuntimeError("nothing arrived")
    mbps_of_one = load.size * 8 / load.seconds / len(fabric.hosts) / 1e6
    return {
        "drawn_mbps": round(sum(count for _, count in found) * mbps_of_one, 3),
        "accepted_mbps": round(len(latencies) * mbps_of_one, 3),
        "latency_ms": round(statistics.median(latencies), 2),
        "p95_ms": round(latencies[int(0.95 * (len(latencies) - 1))], 2),
        "messages": len(latencies),
    }


def _work(
    sockets: dict[int, Path],
    part: Sequence[Stream],
    load: Load,
    mbps_each: float,
    barriers: tuple[Any, Any],
    results: Any,
    number: int,
) -> None:
    """One process: both ends of its streams."""
    begin, drained = barriers
    latencies: list[float] = []
    offered: list[float] = []
    window: list[float] = []
    ready = threading.Barrier(2 * len(part) + 1)
    go = threading.Event()

    def receive(stream: Stream) -> None:
        agent = Agent(sockets[stream.destination], timeout_s=OPEN_SECONDS)
        receiver = agent.open_receiver(stream.group, origin=stream.source)
        ready.wait(OPEN_SECONDS)
        for _, data in receiver.messages():
            at = time.monotonic()
            if window and window[0] <= at < window[1]:
                latencies.append(1000 * (at - HEAD.unpack_from(data)[0]))

    def send(stream: Stream, seed: int) -> None:
        drawn = random.Random(seed)
        rest = bytes(load.size - HEAD.size)
        per_s = mbps_each * 1e6 / 8 / load.size
        agent = Agent(sockets[stream.source], timeout_s=OPEN_SECONDS)
        sender = agent.open_sender(stream.group)
        under_way: deque[int] = deque()
        ready.wait(OPEN_SECONDS)
        go.wait()
        due = time.monotonic() + drawn.expovariate(per_s)
        end = window[1]
        while due < end and time.monotonic() < end:
            offered.append(due)
            time.sleep(max(0.0, due - time.monotonic()))
            if len(under_way) == UNDER_WAY_MAX:
                sender.wait_stable(under_way.popleft(), DRAIN_SECONDS_MAX)
            sender.write(HEAD.pack(due) + rest)
            under_way.append(sender.end())
            due += drawn.expovariate(per_s)
        while due < end:  # what its stream had no room for
            offered.append(due)
            due += drawn.expovariate(per_s)
        while under_way:
            sender.wait_stable(under_way.popleft(), DRAIN_SECONDS_MAX)

    sending = []
    for place, stream in enumerate(part):
        threading.Thread(target=receive, args=(stream,), daemon=True).start()
        seed = load.seed * 1_000_003 + number * 10_007 + place
        sending.append(threading.Thread(target=send, args=(stream, seed), daemon=True))
        sending[-1].start()
    ready.wait(OPEN_SECONDS)
    begin.wait(OPEN_SECONDS)
    start = time.monotonic() + load.warm_s
    window[:] = [start, start + load.seconds]
    go.set()
    for thread in sending:
        thread.join()
    drained.wait(DRAIN_SECONDS_MAX)
    results.put((latencies, sum(due >= window[0] for due in offered)))
    # The threads end with the process, and what they have open with them.
