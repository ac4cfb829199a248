"""Processor time of a trial, by part. In a sandbox /proc shows the sandbox alone."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
MOVERS = "dataplane"
"""How an agent's threads are called that move frames."""


def threads(pid: int) -> dict[str, float]:
    """Seconds of the processor that the threads of a process have taken, by their names."""
    found: dict[str, float] = {}
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            name, _, fields = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        user, system = fields.split()[11:13]
        found[name] = found.get(name, 0.0) + (int(user) + int(system)) / TICKS
    return found


def whole(pid: int) -> float:
    """Seconds of a process, with threads that have ended."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS


def daemons(agents: Mapping[int, subprocess.Popen[bytes]], switches: list[int]) -> dict[str, float]:
    """What agents and switches have taken so far."""
    pids = [process.pid for process in agents.values()]
    frames = sum(seconds for pid in pids for name, seconds in threads(pid).items() if name.startswith(MOVERS))
    total = sum(whole(pid) for pid in pids)
    return {
        "agents, frames": frames,
        "agents, files": total - frames,
        "switches": sum(whole(pid) for pid in switches),
    }


def programs() -> float:
    """What all programs took that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def since(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What came between."""
    return {part: round(after[part] - before[part], 3) for part in after}
