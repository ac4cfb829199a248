"""Messages of every length in a live fabric: how long `auto` takes beside each other scheme.

A message is timed from its first byte given to the agent of the source until every member has confirmed it. For each number of
members all schemes have a group over the same members at the same time and take turns, message by message, in an order drawn anew
for each round, so that what else the machine does, and what the message before leaves to do, meets all alike. Agents take the messages by themselves (`sink`), so no receivers run beside them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from verdict import Length, conclude, table
from wormcast.client import Agent
from wormcast.mininet import fabric as fabrics
from wormcast.mininet.topologies import load_topology
from wormcast.network.groups import AUTO, SCHEMES, SCHEMES_ANYWHERE

SMALLEST = 64
MEMBERS = (2, 4, 8, 15)
REST_S = 0.005
"""Before each message, so that what the one before leaves to do is done."""
REPEATS_LEAST, REPEATS_MOST = 5, 31
MARKERS = "os^vD*X"
"""Of lines, beside their ten colours."""
HOPELESS_TIMES, HOPELESS_BYTES = 2.0, 64 << 10
"""A scheme that takes so many times the best at a length from so many bytes on is not tried at longer ones."""


def send(groups: list[str], most: int, step: int, seconds: float) -> None:
    """On the source: print {length: {group: [seconds]}}."""
    times: dict[int, dict[str, list[float]]] = {}
    with Agent(timeout_s=None) as agent:
        senders = {group: agent.open_sender(group) for group in groups}
        for sender in senders.values():
            sender.send(b"warm")
        size, best, order = SMALLEST, 0.0, random.Random(1)
        while size <= most:
            data = os.urandom(size)
            repeats = int(max(REPEATS_LEAST, min(REPEATS_MOST, seconds / max(best * step, 1e-9))))
            took: dict[str, list[float]] = {group: [] for group in senders}
            for _ in range(repeats):
                for group, sender in order.sample([*senders.items()], len(senders)):
                    time.sleep(REST_S)
                    begin = time.monotonic()
                    stable = sender.send(data)
                    took[group].append(time.monotonic() - begin)
                    assert not stable.failed, stable
            times[size] = took
            medians = {group: statistics.median(each) for group, each in took.items()}
            best = min(medians.values())
            if size >= HOPELESS_BYTES:
                slow = [group for group in senders if medians[group] > HOPELESS_TIMES * best]
                for group in slow:
                    if group != AUTO:
                        senders.pop(group).close()
            print(f"{size:,} bytes: {repeats} times by {len(took)} schemes", file=sys.stderr, flush=True)
            size *= step
    print(json.dumps(times))


def measure(options: argparse.Namespace) -> dict[int, list[Length]]:
    """The times, by number of members."""
    topology = load_topology(options.topology)
    schemes = [*SCHEMES] if "grid" in topology else [*SCHEMES_ANYWHERE]
    hosts = [host["id"] for host in topology["hosts"]]
    found: dict[int, list[Length]] = {}
    settings = fabrics.Options(topology, options.switch, options.rate, None, 1)
    with tempfile.TemporaryDirectory() as place, fabrics.Fabric(settings, Path(place)) as fabric:
        fabric.wait_ready()
        if options.measure_costs:
            measure_costs(fabric, hosts[0])
        for count in [count for count in options.members if count <= len(hosts)]:
            for scheme in schemes:
                body = {"name": scheme, "scheme": scheme, "members": hosts[:count], "sink": True}
                fabric.wait_group(fabric.post("groups", body)["id"])
            command = [sys.executable, __file__, "--send", *schemes, "--most", str(options.most)]
            command += ["--step", str(options.step), "--seconds", str(options.seconds)]
            sender = fabric.popen(hosts[0], command, stdout=subprocess.PIPE, text=True)
            out, _ = sender.communicate()
            assert sender.returncode == 0, f"the sender ended with {sender.returncode}"
            structures = fabric.get(f"groups/{AUTO}")["structures"]
            times = {int(size): took for size, took in json.loads(out).items()}
            found[count] = [Length(size, took, structures) for size, took in times.items()]
            print(
                f"\n{count} members\n\n{table(found[count], [s for s in schemes if s != AUTO])}\n", flush=True
            )
            for scheme in schemes:
                fabric.delete(f"groups/{scheme}")
    return found


def measure_costs(fabric: fabrics.Fabric, host: int) -> None:
    """`wormcast costs measure`, and what came of it."""
    program = str(Path(sys.executable).parent / "wormcast")
    command = [program, "costs", "measure", "--json"]
    measured = fabric.popen(host, command, stdout=subprocess.PIPE, text=True)
    out, _ = measured.communicate()
    assert measured.returncode == 0, f"`{' '.join(command)}` ended with {measured.returncode}"
    answer: dict[str, Any] = json.loads(out)
    print("costs measured:")
    for one in answer["found"]:
        mark = "" if one["told"] else " (left open)"
        print(f"  {', '.join(one['names'])}: {one['before']:,.0f} → {one['after']:,.0f}{mark}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topology", default="testbed")
    parser.add_argument("--switch", default="wormcast", choices=["wormcast", "bmv2"])
    parser.add_argument("--rate", type=float, default=100.0, help="Mb/s of each link")
    parser.add_argument(
        "--members",
        type=lambda text: [int(each) for each in text.split(",")],
        default=list(MEMBERS),
        help="of the groups, the source among them: as in 2,4,8,15; those that the topology has no hosts for are left out",
    )
    parser.add_argument("--most", type=int, default=64 << 20, help="longest message, bytes")
    parser.add_argument("--step", type=int, default=4, help="each length is so many times the one before")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each scheme and length, about")
    parser.add_argument("--measure-costs", action="store_true", help="run `wormcast costs measure` first")
    parser.add_argument("--json", type=Path, help="write all times here")
    parser.add_argument("--plot", type=Path, help="write a picture of the times here")
    parser.add_argument("--send", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send:
        return send(options.send, options.most, options.step, options.seconds)
    found = measure(options)
    print(conclude(found))
    if options.json:
        times = {count: {length.size: length.seconds for length in each} for count, each in found.items()}
        options.json.write_text(json.dumps(times))
    if options.plot:
        plot(found, options.plot)
    return None


def plot(found: dict[int, list[Length]], path: Path) -> None:
    """Time against length, a line for each scheme; a picture for each number of members."""
    from matplotlib import pyplot as plt

    figure, all_axes = plt.subplots(
        1, len(found), layout="constrained", squeeze=False, figsize=(5 * len(found), 5)
    )
    for (count, lengths), axes in zip(found.items(), all_axes[0], strict=True):
        for scheme, marker in zip(lengths[0].seconds, itertools.cycle(MARKERS), strict=False):
            points = [(one.size, one.median(scheme) * 1000) for one in lengths if scheme in one.seconds]
            style = {"linewidth": 2.5, "color": "black"} if scheme == AUTO else {}
            axes.loglog(*zip(*points, strict=True), label=scheme, marker=marker, markersize=4, **style)
        axes.set_title(f"{count} members")
        axes.set_xlabel("bytes of a message")
        axes.set_ylabel("ms until all members have it")
    all_axes[0][0].legend(frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
