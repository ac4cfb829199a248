"""`wormcast verify` on paths and tables of others: how long it takes, and what it says of OpenSM's updn.

Timed are the whole process, from its start to its end, and the library alone, from the texts to the
text of the answer. Paths are ours (osud), as a CSV file. Tables are ours (tree-only, which looks at the
destination alone), as dump_lfts prints them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import opensm
from rich.console import Console
from rich.progress import track
from rich.table import Table
from wormcast import routing, verify

ROUTES = 10_000
PATHS_ON = ("irregular:32:1", "irregular:256:1", "irregular:1024:1")
TABLES_ON = ("irregular:32:1", "irregular:256:1", "irregular:1024:1")
GRAPHS = tuple(f"irregular:{size}:{seed}" for size in (16, 32, 64, 128) for seed in (1, 2, 3, 4, 5))


@dataclass
class Timing:
    """Seconds, of each repetition."""

    what: str
    network: str
    process: list[float]
    library: list[float]


def paths_file(topology: dict[str, Any]) -> str:
    """`ROUTES` paths, from hosts that are spread over the network."""
    hosts = sorted(host["id"] for host in topology["hosts"])
    sources = hosts[:: max(1, (len(hosts) - 1) * len(hosts) // ROUTES)]
    each = (routing.routes(topology, "osud", src=src)["routes"] for src in sources)
    rows = ["src,dst,path"]
    for row in itertools.islice(itertools.chain.from_iterable(each), ROUTES):
        hops = " ".join(f"s{s}:{p}" for s, p in zip(row["switches"], row["ports"], strict=True))
        rows.append(f"h{row['src']},h{row['dst']},{hops}")
    if len(rows) <= ROUTES:
        raise ValueError(f"{len(rows) - 1} routes")
    return "\n".join(rows) + "\n"


def dump(topology: dict[str, Any]) -> tuple[str, str]:
    """What ibnetdiscover and dump_lfts would print, if host n had the LID 1 + n."""
    net = routing.write(topology, "ibnetdiscover")
    own = re.compile(r'(?m)^(Ca.*"host (\d+)"\n.*# lid )0')
    net = own.sub(lambda found: f"{found[1]}{1 + int(found[2])}", net)
    tables = routing.forwarding(topology, "tree-only")
    lines = []
    for switch in tables.switches:
        guid = 0x5743_0001_0000_0000 + (switch << 8)
        lines.append(f"Unicast lids [0x0-0xffff] of switch Lid 0 guid {guid:#018x} ('s{switch}'):")
        lines += [
            f"{1 + host:#06x} {1 + port:03} : (Channel Adapter)" for host, port in tables.row(switch).items()
        ]
    return net, "\n".join(lines) + "\n"


def timed(work: Callable[[], object], repeats: int) -> list[float]:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return seconds


def measure_all(folder: Path, repeats: int) -> list[Timing]:
    """Every case; the first run of each warms up."""
    program = Path(sys.executable).with_name("wormcast")

    def run(*arguments: object) -> None:
        argv = [program, "verify", *map(str, arguments), "--output", "/dev/null"]
        subprocess.run(list(map(str, argv)), check=True)

    found = []
    file, net = folder / "file", folder / "net"
    for spec in PATHS_ON:
        topology = routing.make(spec)
        file.write_text(text := paths_file(topology))
        net.write_text(network := json.dumps(topology))
        process = timed(lambda: run("--paths", file, "--topology", net), repeats + 1)[1:]
        library = timed(lambda: verify.verify_paths(text, network), repeats)
        found.append(Timing(f"{ROUTES:,} paths", spec, process, library))
    for spec in TABLES_ON:
        topology = routing.make(spec)
        network, text = dump(topology)
        net.write_text(network)
        file.write_text(text)
        process = timed(lambda: run("--tables", file, "--topology", net), repeats + 1)[1:]
        library = timed(lambda: verify.verify_tables(network, [text]), repeats)  # noqa: B023
        hosts = len(topology["hosts"])
        found.append(Timing(f"tables, {hosts * (hosts - 1):,} pairs", spec, process, library))
    return found


def judge_opensm(graphs: tuple[str, ...]) -> dict[str, int]:
    """Length of the cycle in the dump of updn's tables, by network; 0: free of deadlock."""
    found = {}
    for spec in track(graphs, "OpenSM updn"):
        topology = routing.make(spec)
        made = opensm.dump(topology, "updn", routing.spanning_tree(topology)["root"])
        if made.engine != "updn":
            raise opensm.OpenSmError(f"{spec}: updn gave up, {made.engine} took over")
        answer = verify.verify_tables(made.ibnetdiscover, [made.tables["dump_lfts"]])
        found[spec] = len(answer.get("cycle", []))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("out/bench-routing"), help="folder for verify.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        timings = measure_all(Path(name), arguments.repeats)
    table = Table("", "network", "process, s", "library, s")
    for row in timings:
        spread = [
            f"{statistics.median(times):.3f} ({min(times):.3f}–{max(times):.3f})"
            for times in (row.process, row.library)
        ]
        table.add_row(row.what, row.network, *spread)
    Console().print(table)
    report: dict[str, Any] = {"timings": [asdict(row) for row in timings]}
    if missing := opensm.missing(*opensm.DUMPERS):
        print(f"SKIPPED OpenSM's tables: not installed: {', '.join(missing)}")
    else:
        report["cycles"] = judge_opensm(GRAPHS)
        stuck = [spec for spec, length in report["cycles"].items() if length]
        print(f"OpenSM updn: {len(stuck)} of {len(GRAPHS)} networks can deadlock: {', '.join(stuck)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "verify.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
