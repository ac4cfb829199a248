"""Cuts of links under a stream of messages: how long the stream stands still, and whether anything is lost or doubled.

A link between switches, drawn with the seed, is cut; a second or so later it is back. The origin sends a small message
every few ms. Delay is from a message's time at the origin until its last member has it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import struct
import threading
import time

from matplotlib.figure import Figure
from rig import Listener, Row, fabric_of, group_of, say
from wormcast.client import Agent

NUMBER = struct.Struct("dI")
SETTLE_SECONDS_MAX = 60.0


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--topology", default="torus:4")
    parser.add_argument("--schemes", nargs="+", default=["switch", "k-binomial"])
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--away", type=float, default=0.8, help="seconds that a link is away")
    parser.add_argument("--every", type=float, default=0.02, help="seconds between messages")
    parser.add_argument("--rate", type=float, default=20.0, help="Mb/s of every link")
    parser.add_argument("--seed", type=int, default=1)


def measure(chosen: argparse.Namespace) -> list[Row]:
    """All cuts under one scheme after another."""
    rows: list[Row] = []
    for scheme in chosen.schemes:
        with fabric_of(chosen.topology, rate_mbps=chosen.rate) as fabric:
            hosts = sorted(fabric.hosts)
            with group_of(fabric, scheme, hosts) as group:
                rows += one(fabric, chosen, scheme, group, hosts)
    return rows


def one(fabric, chosen: argparse.Namespace, scheme: str, group: int, hosts: list[int]) -> list[Row]:  # type: ignore[no-untyped-def]
    """The cuts, then what the stream has seen of them."""
    listeners = [Listener(fabric, host, group) for host in hosts[1:]]
    stop, sent = threading.Event(), []

    def send() -> None:
        with (
            Agent(fabric.agent_socket(hosts[0]), timeout_s=60.0) as agent,
            agent.open_sender(group) as sender,
        ):
            message = 0
            while not stop.is_set():
                at = time.monotonic()
                sender.write(NUMBER.pack(at, len(sent)))
                message = sender.end()
                sent.append(at)
                stop.wait(chosen.every)
            if sender.wait_stable(message, 120.0).failed:
                raise RuntimeError("the last message failed")

    sending = threading.Thread(target=send)
    sending.start()
    drawn = random.Random(chosen.seed)
    between = [link for link in fabric.links if link.host is None]
    cuts = []
    time.sleep(2.0)
    for number in range(chosen.cuts):
        link = drawn.choice(between)
        cuts.append(time.monotonic())
        fabric.set_link(link, up=False)
        time.sleep(chosen.away)
        fabric.set_link(link, up=True)
        wait_links(fabric, len(between))
        if number % 20 == 19:
            print(f"{scheme}: {number + 1} of {chosen.cuts} cuts", flush=True)
    time.sleep(1.0)
    stop.set()
    sending.join()
    for listener in listeners:
        listener.wait(len(sent))
        listener.close()
    seen = [[NUMBER.unpack(data)[1] for _, data in listener.arrived] for listener in listeners]
    lost = sum(len(set(range(len(sent))) - set(numbers)) for numbers in seen)
    doubled = sum(len(numbers) - len(set(numbers)) for numbers in seen)
    done = [max(listener.arrived[n][0] for listener in listeners) - at for n, at in enumerate(sent)]
    stalls = []
    for place, cut in enumerate(cuts):
        until = cuts[place + 1] if place + 1 < len(cuts) else time.monotonic()
        during = [delay for at, delay in zip(sent, done, strict=True) if cut - chosen.every <= at < until]
        stalls.append(round(1000 * max(during)))
    say(
        scheme=scheme,
        cuts=len(cuts),
        messages=len(sent),
        usual_ms=round(1000 * statistics.median(done), 1),
        median_ms=round(statistics.median(stalls)),
        p95_ms=sorted(stalls)[int(0.95 * (len(stalls) - 1))],
        worst_ms=max(stalls),
        lost=lost,
        doubled=doubled,
    )
    if lost or doubled:
        raise RuntimeError(f"{scheme}: {lost} messages lost, {doubled} delivered twice")
    return [{"scheme": scheme, "cut": n, "stall_ms": stall} for n, stall in enumerate(stalls)]


def wait_links(fabric, count: int) -> None:  # type: ignore[no-untyped-def]
    """Until the controller has all links again."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while fabric.get("status")["links"] < count:
        if time.monotonic() > deadline:
            raise TimeoutError("a link that was plugged in again is not found")
        time.sleep(0.05)


def draw(rows: list[Row], figure: Figure) -> None:
    """How large a part of the cuts stops the stream for so long at most."""
    panel = figure.add_subplot()
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        stalls = sorted(row["stall_ms"] for row in rows if row["scheme"] == scheme)
        panel.step(stalls, [(n + 1) / len(stalls) for n in range(len(stalls))], where="post", label=scheme)
    panel.set(xlabel="longest delay of a message around a cut, ms", ylabel="part of the cuts", xscale="log")
    panel.legend()
