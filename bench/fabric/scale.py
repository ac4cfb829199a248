"""How large a fabric one machine carries: time until it is up, memory, processor time, a thousand groups, large groups.

Each size is one row, with a verdict: what was late in the end, and by how much.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rig import Row, completions, group_of, say
from wormcast import routing
from wormcast.client import AgentError
from wormcast.mininet import fabric as fabrics
from wormcast.mininet.keep import how_late
from wormcast.network.groups import SCHEMES, SCHEMES_ANYWHERE

READY_SECONDS_MAX = 900.0
GROUPS_AT_ONCE = 500
GROUP_MEMBERS = 6
SETTLE_SECONDS_MAX = 300.0


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--sizes", nargs="+", default=["128x256", "320x1024"], help="SWITCHESxHOSTS")
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=200, help="of the group that gets the file")
    parser.add_argument("--bytes", type=int, default=262_144, help="of the file")
    parser.add_argument(
        "--schemes", nargs="+", default=[s for s in SCHEMES_ANYWHERE if s != "auto"], choices=SCHEMES
    )
    parser.add_argument("--rate", type=float, default=20.0, help="Mb/s of every link")
    parser.add_argument("--rest", type=float, default=12.0, help="seconds after which the verdict is given")
    parser.add_argument("--seed", type=int, default=1)


def network(switches: int, hosts: int, seed: int) -> dict[str, Any]:
    """An irregular network of so many switches and hosts, these spread as evenly as can be."""
    made: dict[str, Any] = routing.make(f"irregular:{switches}:{seed}:{-(-hosts // switches)}:4")
    by_port = sorted(made["hosts"], key=lambda host: (host["port"], host["switch"]))[:hosts]
    kept = sorted(by_port, key=lambda host: (host["switch"], host["port"]))
    return {**made, "hosts": [{**host, "id": number} for number, host in enumerate(kept)]}


def measure(chosen: argparse.Namespace) -> list[Row]:
    """A fabric of each size."""
    rows = []
    for size in chosen.sizes:
        switches, hosts = (int(part) for part in size.split("x"))
        settings = fabrics.Options(network(switches, hosts, chosen.seed), rate_mbps=chosen.rate)
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as directory, fabrics.Fabric(settings, Path(directory)) as fabric:
            started = time.monotonic() - began
            fabric.wait_ready(READY_SECONDS_MAX)
            up = {"wired_s": round(started, 1), "up_s": round(time.monotonic() - began, 1)}
            row = say(switches=switches, hosts=hosts, **up, **used(fabric))
            time.sleep(chosen.rest)
            row |= say(verdict=verdict(fabric))
            row |= say(**thousand(fabric, chosen))
            row |= say(verdict_with_groups=verdict(fabric), **used(fabric))
            members = random.Random(chosen.seed).sample(sorted(fabric.hosts), min(chosen.members, hosts))
            for scheme in chosen.schemes:
                seconds = one(fabric, scheme, members, chosen.bytes)
                row |= say(**{f"{scheme}_s": seconds, f"{scheme}_mib": memory(fabric)})
            row |= say(verdict_at_the_end=verdict(fabric))
            rows.append(row)
    return rows


def one(fabric: fabrics.Fabric, scheme: str, members: list[int], size: int) -> float | str:
    """Seconds that a file takes; where it does not arrive in time, why."""
    try:
        with group_of(fabric, scheme, members) as group:
            return round(completions(fabric, group, members[0], members[1:], size, 1)[0], 2)
    except (AgentError, TimeoutError) as error:
        return f"failed: {error}"


def verdict(fabric: fabrics.Fabric) -> str:
    """Whether the machine keeps up."""
    return how_late(fabric.get("status")["late"]) or "this machine keeps up"


def thousand(fabric: fabrics.Fabric, chosen: argparse.Namespace) -> Row:
    """Groups made in large requests, until every member has them."""
    drawn = random.Random(chosen.seed)
    hosts = sorted(fabric.hosts)
    bodies = [
        {"scheme": "k-binomial", "members": drawn.sample(hosts, GROUP_MEMBERS)} for _ in range(chosen.groups)
    ]
    began = time.monotonic()
    for place in range(0, len(bodies), GROUPS_AT_ONCE):
        fabric.post("groups", {"groups": bodies[place : place + GROUPS_AT_ONCE]})
    made_s = time.monotonic() - began
    want = len(bodies) * GROUP_MEMBERS
    while (have := sum(host["groups"]["installed"] for host in fabric.get("hosts")["hosts"])) < want:
        if time.monotonic() - began > SETTLE_SECONDS_MAX:
            raise TimeoutError(f"{have} of {want} memberships after {SETTLE_SECONDS_MAX:.0f} s")
        time.sleep(0.5)
    return {
        "groups": len(bodies),
        "groups_made_s": round(made_s, 1),
        "groups_installed_s": round(time.monotonic() - began, 1),
    }


def running(fabric: fabrics.Fabric) -> dict[str, list[int]]:
    """The processes of each kind."""
    processes: dict[str, list[subprocess.Popen[bytes] | None]] = {
        "controller": [fabric.controller],
        "switches": [fabric.shared.process]
        if fabric.shared
        else [s.process for s in fabric.switches.values()],
        "agents": [fabric.shared_agents.process] if fabric.shared_agents else list(fabric.agents.values()),
    }
    return {
        name: [process.pid for process in each if process is not None] for name, each in processes.items()
    }


def used(fabric: fabrics.Fabric) -> Row:
    """Processor time and memory of the processes so far."""
    row: Row = {}
    for name, processes in running(fabric).items():
        row[f"{name}_cpu_s"] = round(sum(cpu_seconds(pid) for pid in processes), 1)
    return row | {f"{name}_mib": mib for name, mib in memory(fabric).items()}


def memory(fabric: fabrics.Fabric) -> dict[str, int]:
    """Resident MiB of the processes of each kind."""
    processes = running(fabric).items()
    return {name: round(sum(resident_mib(pid) for pid in each)) for name, each in processes}


def cpu_seconds(pid: int) -> float:
    """User and system time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def draw(rows: list[Row], figure: Figure) -> None:
    """Time until the fabric is up."""
    panel = figure.add_subplot()
    names = [f"{row['switches']} x {row['hosts']}" for row in rows]
    panel.bar(names, [row["up_s"] for row in rows])
    panel.set(ylabel="seconds until up", xlabel="switches x hosts")
