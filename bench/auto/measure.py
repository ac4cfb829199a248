"""Messages of every length in a live fabric: how long `auto` takes beside each other scheme.

A message is timed from its first byte given to the agent of the source until every member has confirmed it. All schemes have a
group over the same members at the same time and take turns, message by message, so that what else the machine does meets
all of them alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from wormcast.client import Agent
from wormcast.mininet import fabric as fabrics
from wormcast.mininet.topologies import load_topology
from wormcast.network.groups import AUTO, SCHEMES, SCHEMES_ANYWHERE

SMALLEST = 64
STEP = 8
"""Each length is so many times the one before."""
BYTES_OF_A_SCHEME = 8 << 20
"""A length is repeated until about so much is sent by each scheme, within the bounds below."""
REPEATS_LEAST, REPEATS_MOST = 3, 20
WITHIN = 1.10
"""How far from the best scheme auto may be to count as right."""


def receive(groups: list[str]) -> None:
    """On a member: confirm everything, until killed."""

    def confirm_all(group: str) -> None:
        with Agent() as agent, agent.open_receiver(group) as receiver:
            print("ready", flush=True)
            for _ in receiver.messages():
                pass

    threads = [threading.Thread(target=confirm_all, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def send(groups: list[str], most: int) -> None:
    """On the source: print {length: {group: [seconds]}}."""
    times: dict[int, dict[str, list[float]]] = {}
    with Agent() as agent:
        senders = {group: agent.open_sender(group) for group in groups}
        for sender in senders.values():
            sender.send(b"warm")
        size = SMALLEST
        while size <= most:
            data = os.urandom(size)
            repeats = max(REPEATS_LEAST, min(REPEATS_MOST, BYTES_OF_A_SCHEME // size))
            for _ in range(repeats):
                for group, sender in senders.items():
                    begin = time.monotonic()
                    stable = sender.send(data)
                    took = time.monotonic() - begin
                    assert not stable.failed, stable
                    times.setdefault(size, {}).setdefault(group, []).append(took)
            size *= STEP
    print(json.dumps(times))


def measure(options: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """The times, by length and scheme."""
    topology = load_topology(options.topology)
    schemes = SCHEMES if "grid" in topology else SCHEMES_ANYWHERE
    members = [host["id"] for host in topology["hosts"]][: options.members]
    settings = fabrics.Options(topology, "wormcast", options.rate, None, 1)
    with tempfile.TemporaryDirectory() as place, fabrics.Fabric(settings, Path(place)) as fabric:
        fabric.wait_ready()
        for scheme in schemes:
            made = fabric.post("groups", {"name": scheme, "scheme": scheme, "members": members})
            fabric.wait_group(made["id"])
        receivers = [
            fabric.popen(
                host, [sys.executable, __file__, "--receive", *schemes], stdout=subprocess.PIPE, text=True
            )
            for host in members[1:]
        ]
        try:
            for receiver in receivers:
                assert receiver.stdout is not None
                for _ in schemes:
                    assert receiver.stdout.readline() == "ready\n"
            sender = fabric.popen(
                members[0],
                [sys.executable, __file__, "--send", *schemes, "--most", str(options.most)],
                stdout=subprocess.PIPE,
                text=True,
            )
            out, _ = sender.communicate()
            times: dict[str, dict[str, list[float]]] = json.loads(out)
            auto = fabric.get(f"groups/{AUTO}")["structures"]
            print("auto takes:", "; ".join(f"{s['scheme']} up to {s['bytes_most']} B" for s in auto))
            return times
        finally:
            for receiver in receivers:
                receiver.kill()


def table(times: dict[str, dict[str, list[float]]]) -> str:
    """Medians in ms, and auto beside the best of the others."""
    schemes = [scheme for scheme in next(iter(times.values())) if scheme != AUTO]
    lines = [f"| bytes | {' | '.join([*schemes, AUTO])} | best | auto / best |"]
    lines.append("|---:|" + "---:|" * (len(schemes) + 1) + "---|---:|")
    right = 0
    for size, by_scheme in times.items():
        medians = {scheme: statistics.median(took) for scheme, took in by_scheme.items()}
        best = min(schemes, key=lambda scheme: medians[scheme])
        ratio = medians[AUTO] / medians[best]
        right += ratio <= WITHIN
        cells = [f"{medians[scheme] * 1000:.2f}" for scheme in [*schemes, AUTO]]
        lines.append(f"| {int(size):,} | {' | '.join(cells)} | {best} | {ratio:.2f} |")
    lines.append("")
    lines.append(f"Within {WITHIN - 1:.0%} of the best: {right} of {len(times)} lengths.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topology", default="testbed")
    parser.add_argument("--rate", type=float, default=100.0, help="Mb/s of each link")
    parser.add_argument("--members", type=int, default=8, help="of the group, the source among them")
    parser.add_argument("--most", type=int, default=16 << 20, help="longest message, bytes")
    parser.add_argument("--plot", type=Path, help="write a picture of the times here")
    parser.add_argument("--receive", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--send", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.receive:
        return receive(options.receive)
    if options.send:
        return send(options.send, options.most)
    times = measure(options)
    print(table(times))
    if options.plot:
        plot(times, options.plot)
    return None


def plot(times: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Time against length, a line for each scheme."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(layout="constrained")
    for scheme in next(iter(times.values())):
        medians = [statistics.median(by_scheme[scheme]) * 1000 for by_scheme in times.values()]
        style = {"linewidth": 2.5, "color": "black"} if scheme == AUTO else {}
        axes.loglog([int(size) for size in times], medians, label=scheme, **style)
    axes.set_xlabel("bytes of a message")
    axes.set_ylabel("ms until all members have it")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
