"""Packets a second: the best rate, and the rate when flooded, of each switch, case and size."""

import os
import statistics
import sys
import time
from dataclasses import dataclass

from cases import Case
from rig import BARE, BMV2, INJECTED_BYTES_MAX, OURS, Programs, cpu_s, flood_of, received_packets, running

STEPS = (0.7, 0.9, 1.1, 1.5, 2.0, 2.5, 3.0)
"""Offered rates beside what was delivered under the flood, where the best one is looked for."""


@dataclass(frozen=True)
class Run:
    """One switch with one case and size, in one repeat."""

    switch: str
    case: str
    size: int
    offered_pps: float
    """By the flood."""
    flooded_pps: float
    """Packets taken in whose copies all came out, under the flood."""
    best_pps: float
    """The most, over all offered rates."""
    cpu_us_per_packet: float
    load: float


def measure(
    programs: Programs, name: str, case: Case, sizes: list[int], seconds: float, port: int, options: list[str]
) -> list[Run]:
    """All sizes through one switch."""
    sinks = [f"g{number}" for number in case.ports_out]
    runs = []
    with running(name, programs, case, port, options) as pid:
        for size in sizes:
            with flood_of(case, size, max(sizes) <= INJECTED_BYTES_MAX) as flood:
                flood.run(programs, 0.2, None)  # caches and tables are warm from here on
                time.sleep(0.2)

                def once(length: float, rate: float | None) -> tuple[float, float, float]:
                    packets, cpu = received_packets(sinks), cpu_s(pid)
                    offered = flood.run(programs, length, rate)
                    time.sleep(0.3)  # what is still in the switch comes out
                    delivered = (received_packets(sinks) - packets) / len(sinks)
                    return offered, delivered / length, (cpu_s(pid) - cpu) / max(delivered, 1) * 1e6

                offered, flooded, cpu = once(seconds, None)
                best = flooded
                for step in STEPS:
                    rate = step * max(flooded, 1000)
                    if rate < offered:
                        best = max(best, once(seconds / 3, rate)[1])
            runs.append(Run(name, case.name, size, offered, flooded, best, cpu, os.getloadavg()[0]))
    return runs


def median_of(runs: list[Run], field: str) -> float:
    return statistics.median(getattr(run, field) for run in runs)


def table(runs: list[Run], chosen: list[Case]) -> str:
    """The result as markdown; ratios of this run."""
    lines = [
        "| case | frame | switch | best kpps: median (least-greatest) | flooded kpps | offered kpps "
        "| CPU a packet | beside BMv2: best, flooded | of the bare forwarder |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    sizes = sorted({run.size for run in runs})
    for case in chosen:
        for size in sizes:
            cell = {
                name: [
                    run
                    for run in runs
                    if (run.switch, run.size) == (name, size) and run.case in (case.name, "")
                ]
                for name in (OURS, BMV2, BARE)
            }
            for name in (OURS, BMV2):
                mine = cell[name]
                if not mine:
                    continue
                best, flooded = median_of(mine, "best_pps"), median_of(mine, "flooded_pps")
                least, greatest = min(r.best_pps for r in mine), max(r.best_pps for r in mine)
                beside = ""
                if name == OURS and cell[BMV2]:
                    beside = (
                        f"{best / median_of(cell[BMV2], 'best_pps'):.1f}x, "
                        f"{flooded / median_of(cell[BMV2], 'flooded_pps'):.1f}x"
                    )
                limit = f"{best / median_of(cell[BARE], 'best_pps'):.0%}" if cell[BARE] else ""
                lines.append(
                    f"| {case.title} | {size} B | {name} | {best / 1e3:.0f} "
                    f"({least / 1e3:.0f}-{greatest / 1e3:.0f}) | {flooded / 1e3:.0f} "
                    f"| {median_of(mine, 'offered_pps') / 1e3:.0f} "
                    f"| {median_of(mine, 'cpu_us_per_packet'):.2f} us | {beside} | {limit} |"
                )
    for size in sizes:
        bare = [run for run in runs if (run.switch, run.size) == (BARE, size)]
        if bare:
            lines.append(
                f"| bare forwarder | {size} B | - | {median_of(bare, 'best_pps') / 1e3:.0f} "
                f"| {median_of(bare, 'flooded_pps') / 1e3:.0f} | {median_of(bare, 'offered_pps') / 1e3:.0f} "
                f"| {median_of(bare, 'cpu_us_per_packet'):.2f} us | | |"
            )
    return "\n".join(lines)


def say(run: Run, repeat: int, repeats: int) -> None:
    """A line of progress."""
    print(
        f"{repeat + 1}/{repeats} {run.switch:20} {run.case:8} {run.size:5} B best {run.best_pps / 1e3:8.1f}, "
        f"flooded {run.flooded_pps / 1e3:8.1f} of {run.offered_pps / 1e3:.1f} kpps offered, "
        f"{run.cpu_us_per_packet:.2f} us CPU a packet",
        file=sys.stderr,
        flush=True,
    )
