"""Two pairs of ports beside one, and what a second thread brings.

A pair needs a generator, the switch, and the kernel on both sides. With one pair on one core and two
pairs on two, each core has the same to do, and the ratio says what the threads lose to one another.
Left alone, one pair already has both cores: the generator's and the switch's.
"""

import json
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from cases import pairs
from rig import INJECTED_BYTES_MAX, OURS, Flood, Programs, flood_of, received_packets, running

RATES = (None, 150e3, 200e3, 250e3, 300e3, 350e3, 400e3, 500e3, 600e3, 700e3)
"""Offered by each pair, where the best sum is looked for; `None`: as many as go."""
SPREAD_S = 0.7
"""Within this the switch has spread its ports over its threads."""


@dataclass(frozen=True)
class Setting:
    title: str
    workers: int
    pairs: int
    cores: int | None
    """The pair N and thread N of the switch are on core N; `None`: where the kernel puts them."""


SETTINGS = (
    Setting("one pair on one core", 1, 1, 1),
    Setting("two pairs on two cores", 2, 2, 2),
    Setting("two pairs on two cores, one thread", 1, 2, 2),
    Setting("one pair, not pinned", 1, 1, None),
    Setting("one pair, not pinned, two threads", 2, 1, None),
    Setting("two pairs, not pinned", 1, 2, None),
    Setting("two pairs, not pinned, two threads", 2, 2, None),
)


@dataclass(frozen=True)
class Run:
    """wormcast-switch in one setting and repeat."""

    setting: str
    size: int
    best_pps: float
    """Sum of all pairs."""


def pin_threads(pid: int, cores: int) -> None:
    """Thread N of the data plane on core N, all others on the first."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text(encoding="ascii").strip()
        thread = int(name.partition(".")[2] or 0) if name.startswith("dataplane-") else 0
        os.sched_setaffinity(int(task.name), {thread % cores})


def offer(
    floods: list[Flood], programs: Programs, setting: Setting, seconds: float, rate: float | None
) -> float:
    """Runs a generator for each pair; gives the seconds of the longest."""
    started = []
    for number, flood in enumerate(floods):
        command = [*flood.command(programs, seconds, rate), "--json"]
        if setting.cores is not None:
            command = ["taskset", "-c", str(number % setting.cores), *command]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    outputs = [json.loads(process.communicate()[0]) for process in started]
    return float(max(output["seconds"] for output in outputs))


def measure(programs: Programs, setting: Setting, size: int, seconds: float, port: int) -> Run:
    """Offers the same rates on all pairs at once."""
    chosen = pairs(setting.pairs)
    best = 0.0
    with ExitStack() as stack:
        options = ["--workers", str(setting.workers)]
        pid = stack.enter_context(running(OURS, programs, chosen[0], port, options))
        if setting.cores is not None:
            pin_threads(pid, setting.cores)
        floods = [stack.enter_context(flood_of(case, size, size <= INJECTED_BYTES_MAX)) for case in chosen]
        sinks = [f"g{case.ports_out[0]}" for case in chosen]
        offer(floods, programs, setting, SPREAD_S, None)  # caches and tables are warm from here on
        for rate in RATES:
            before = received_packets(sinks)
            span = offer(floods, programs, setting, seconds, rate)
            best = max(best, (received_packets(sinks) - before) / span)
    return Run(setting.title, size, best)


def run(programs: Programs, size: int, seconds: float, repeats: int, port: int) -> tuple[list[Run], str]:
    """All of it, and the result as markdown."""
    runs = []
    for repeat in range(repeats):
        for setting in SETTINGS:
            port += 1
            runs.append(measure(programs, setting, size, seconds, port))
            print(f"{repeat + 1}/{repeats} {runs[-1]}", file=sys.stderr, flush=True)

    def best(setting: Setting) -> float:
        return statistics.median(run.best_pps for run in runs if run.setting == setting.title)

    on_one_core, one_pair = best(SETTINGS[0]), best(SETTINGS[3])
    lines = ["| | kpps | beside one pair on one core | beside one pair, not pinned |", "|---|---:|---:|---:|"]
    for setting in SETTINGS:
        found = best(setting)
        lines.append(
            f"| {setting.title} | {found / 1e3:.0f} | {found / on_one_core:.2f}x | {found / one_pair:.2f}x |"
        )
    return runs, "\n".join(lines)
