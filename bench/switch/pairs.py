"""Two pairs of ports beside one, and what more threads bring."""

import json
import statistics
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass

from cases import pairs
from rig import INJECTED_BYTES_MAX, OURS, Programs, flood_of, received_packets, running

RATES = (None, 100e3, 200e3, 300e3, 400e3, 500e3, 600e3, 700e3)
"""Offered by each pair, where the best sum is looked for; `None`: as many as go."""
WORKERS = (1, 2, 3)


@dataclass(frozen=True)
class Run:
    """wormcast-switch with some threads and pairs, in one repeat."""

    workers: int
    pairs: int
    size: int
    best_pps: float
    """Sum of all pairs."""


def measure(programs: Programs, workers: int, count: int, size: int, seconds: float, port: int) -> Run:
    """Offers the same rates on all pairs at once."""
    options = ["--workers", str(workers)]
    chosen = pairs(count)
    best = 0.0
    with ExitStack() as stack:
        stack.enter_context(running(OURS, programs, chosen[0], port, options))
        floods = [stack.enter_context(flood_of(case, size, size <= INJECTED_BYTES_MAX)) for case in chosen]
        sinks = [f"g{case.ports_out[0]}" for case in chosen]
        floods[0].run(programs, 0.2, None)  # caches and tables are warm from here on
        for rate in RATES:
            before = received_packets(sinks)
            commands = [[*flood.command(programs, seconds, rate), "--json"] for flood in floods]
            started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
            outputs = [json.loads(process.communicate()[0]) for process in started]
            span = max(output["seconds"] for output in outputs)
            best = max(best, (received_packets(sinks) - before) / span)
    return Run(workers, count, size, best)


def run(programs: Programs, size: int, seconds: float, repeats: int, port: int) -> tuple[list[Run], str]:
    """All of it, and the result as markdown."""
    runs = []
    for repeat in range(repeats):
        for workers in WORKERS:
            for count in (1, 2):
                port += 1
                runs.append(measure(programs, workers, count, size, seconds, port))
                print(f"{repeat + 1}/{repeats} {runs[-1]}", file=sys.stderr, flush=True)

    def best(workers: int, count: int) -> float:
        return statistics.median(run.best_pps for run in runs if (run.workers, run.pairs) == (workers, count))

    lines = [
        "| threads | one pair, kpps | two pairs, kpps | two beside one | two beside one pair, one thread |",
        "|---|---|---|---|---|",
    ]
    for workers in WORKERS:
        one, two = best(workers, 1), best(workers, 2)
        lines.append(
            f"| {workers} | {one / 1e3:.0f} | {two / 1e3:.0f} | {two / one:.2f}x | {two / best(1, 1):.2f}x |"
        )
    return runs, "\n".join(lines)
