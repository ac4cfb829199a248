"""Latency through a switch at a share of its best rate, as percentiles."""

import json
import statistics
import subprocess
from dataclasses import dataclass

from cases import Case
from rig import BMV2, OURS, Programs, running


@dataclass(frozen=True)
class Run:
    """One switch at one rate, in one repeat."""

    switch: str
    case: str
    size: int
    rate_pps: float
    p50_us: float
    p99_us: float
    max_us: float
    sent: int
    lost: int


def measure(
    programs: Programs,
    name: str,
    case: Case,
    size: int,
    rates: list[float],
    seconds: float,
    port: int,
    options: list[str],
) -> list[Run]:
    """One frame size at some rates."""
    runs = []
    frame = case.frames(size)[0].hex()
    with running(name, programs, case, port, options):
        for rate in rates:
            command = [
                programs.example("latency"),
                "g0",
                f"g{case.ports_out[-1]}",
                str(seconds),
                f"{rate:.0f}",
            ]
            output = subprocess.run([*command, frame, "--json"], check=True, capture_output=True, text=True)
            got = json.loads(output.stdout)
            runs.append(
                Run(
                    name,
                    case.name,
                    size,
                    rate,
                    got["p50_us"],
                    got["p99_us"],
                    got["max_us"],
                    got["sent"],
                    got["lost"],
                )
            )
    return runs


def table(runs: list[Run]) -> str:
    """The result as markdown."""
    lines = [
        "| case | frame | kpps | switch | p50 us | p99 us | lost | of BMv2's p50, p99 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    cells = sorted({(run.case, run.size, round(run.rate_pps)) for run in runs})
    for case, size, rate in cells:
        of = {
            name: [
                run
                for run in runs
                if (run.switch, run.case, run.size, round(run.rate_pps)) == (name, case, size, rate)
            ]
            for name in (OURS, BMV2)
        }
        middle = {
            name: (
                statistics.median(run.p50_us for run in mine),
                statistics.median(run.p99_us for run in mine),
            )
            for name, mine in of.items()
            if mine
        }
        for name, (p50, p99) in middle.items():
            beside = ""
            if name == OURS and BMV2 in middle:
                beside = f"{p50 / middle[BMV2][0]:.2f}, {p99 / middle[BMV2][1]:.2f}"
            lost = sum(run.lost for run in of[name]) / sum(run.sent for run in of[name])
            lines.append(
                f"| {case} | {size} B | {rate / 1e3:.1f} | {name} | {p50:.1f} | {p99:.1f} | {lost:.2%} | {beside} |"
            )
    return "\n".join(lines)
