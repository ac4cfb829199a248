"""How long OpenSM and we take to route the same networks with the same root, one thread each.

Ours is timed by `routing/examples/forwarding.rs`: parsing the file, directions, next hops, and
the table of every switch × host. OpenSM is timed by its own log: from the start of the routing
engine until the tables are written, discovery and the writing into switches left out as far as
the log tells. They take turns, and the table has medians and ranges.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opensm
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from wormcast import routing

ROOT = Path(__file__).resolve().parents[2]
MEBI = 1024


@dataclass(frozen=True)
class Case:
    """A network, and what is asked of it."""

    switches: int
    links: int
    hosts_per_switch: int
    engines: tuple[str, ...]

    @property
    def spec(self) -> str:
        """As `topo make` takes it."""
        return f"irregular:{self.switches}:1:{self.hosts_per_switch}:{self.links}"

    @property
    def title(self) -> str:
        """Switches / hosts / links of a switch."""
        return f"{self.switches:,} / {self.switches * self.hosts_per_switch:,} / {self.links}"


CASES = {
    "small": Case(256, 8, 4, ("updn", "nue")),
    "1024x8": Case(1024, 8, 4, ("updn", "nue")),
    "1024x16": Case(1024, 16, 8, ("updn", "nue")),
    "2048x16": Case(2048, 16, 8, ("updn",)),
}
ALONE = {
    "minimal 2048x8": ("minimal", "irregular:2048:1:4:8", ("--algorithm", "omit")),
    "minimal 2048x16": ("minimal", "irregular:2048:1:8:16", ("--algorithm", "omit")),
    "10,000 switches": ("forwarding", "irregular:10000:1:4:8", ()),
}
"""Cases without OpenSM: program, network, options."""


def run_ours(program: Path, network: str, *options: str) -> dict[str, Any]:
    """One run of a timing program; its JSON line."""
    done = subprocess.run([program, network, *options], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    phases = ("parse_ms", "updown_ms", "next_hops_ms", "plan_ms", "expand_ms")
    answer["total_ms"] = sum(answer.get(phase, 0) for phase in phases)
    return answer


def measure(case: Case, programs: Path, repeats: int, engines: Sequence[str], step: Any) -> dict[str, Any]:
    """Times one network with everybody, in turns."""
    topology = routing.make(case.spec)
    root = routing.spanning_tree(topology)["root"]
    ours: list[dict[str, Any]] = []
    theirs: dict[str, list[opensm.Answer]] = {engine: [] for engine in engines}
    failed: dict[str, str] = {}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(topology, file)
        file.flush()
        for repeat in range(repeats):
            ours.append(run_ours(programs / "forwarding", file.name, "--root", str(root)))
            step()
            for engine in engines:
                # The slow engines are run once: minutes each.
                if engine not in failed and (engine == "updn" or repeat == 0):
                    try:
                        theirs[engine].append(opensm.route(topology, engine, root, timeout=1200))
                    except opensm.OpenSmError as error:
                        failed[engine] = str(error)
                step()
    return {
        "network": case.title,
        "spec": case.spec,
        "root": root,
        "ours": ours,
        "opensm": {
            engine: [{"engine": run.engine, "seconds": run.seconds, "peak_kib": run.peak_kib} for run in runs]
            for engine, runs in theirs.items()
        },
        "failed": failed,
    }


def show(rows: Sequence[Mapping[str, Any]], alone: Mapping[str, Mapping[str, Any]]) -> None:
    """The tables, for people."""
    table = Table("switches / hosts / links", "OpenSM updn", "Nue", "ours", "of that next hops", "times updn")
    for row in rows:
        ours = [run["total_ms"] / 1000 for run in row["ours"]]
        updn = [run["seconds"] for run in row["opensm"].get("updn", [])]
        nue = [run["seconds"] for run in row["opensm"].get("nue", [])]
        hops = statistics.median(run["next_hops_ms"] for run in row["ours"])
        ratio = f"{statistics.median(updn) / statistics.median(ours):.1f}" if updn else "–"
        table.add_row(row["network"], spread(updn), spread(nue), spread(ours), f"{hops:.0f} ms", ratio)
    console = Console()
    console.print(table)
    if alone:
        table = Table("without OpenSM", "seconds", "peak MiB")
        for title, run in alone.items():
            table.add_row(title, f"{run['total_ms'] / 1000:.2f}", f"{run['peak_kib'] / MEBI:,.0f}")
        console.print(table)


def spread(seconds: Sequence[float]) -> str:
    """Median, and from least to greatest where there are several."""
    if not seconds:
        return "–"
    median = f"{statistics.median(seconds):.2f} s"
    return median if len(seconds) == 1 else f"{median} ({min(seconds):.2f}–{max(seconds):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release/examples")
    parser.add_argument("--cases", default="1024x8,1024x16,2048x16", help=f"of {', '.join(CASES)}")
    parser.add_argument("--engines", default="updn,nue", help="engines of OpenSM (default updn,nue)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-alone", action="store_true", help="leave out what OpenSM is not asked for")
    parser.add_argument("--out", type=Path, default=Path("out/bench-routing"))
    arguments = parser.parse_args()
    names = arguments.cases.split(",")
    for name in names:
        if name not in CASES:
            parser.error(f"there is no case {name!r}; cases are {', '.join(CASES)}")
    missing = opensm.missing()
    if missing:
        print(f"not installed: {', '.join(missing)} (packages opensm and ibsim-utils); only ours is measured")
    chosen = {
        name: [engine for engine in CASES[name].engines if engine in arguments.engines.split(",")]
        for name in names
    }
    if missing:
        chosen = {name: [] for name in names}
    rows, alone = [], {}
    with Progress(transient=True) as progress:
        steps = sum(arguments.repeats * (1 + len(engines)) for engines in chosen.values())
        task = progress.add_task("routing", total=steps + (0 if arguments.no_alone else len(ALONE)))

        def step() -> None:
            progress.advance(task)

        for name in names:
            progress.update(task, description=CASES[name].title)
            rows.append(measure(CASES[name], arguments.programs, arguments.repeats, chosen[name], step))
        for title, (program, network, options) in {} if arguments.no_alone else ALONE.items():
            progress.update(task, description=title)
            alone[title] = run_ours(arguments.programs / program, network, *options)
            step()
    show(rows, alone)
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {
        "machine": platform.processor() or platform.machine(),
        "kernel": platform.release(),
        "own_peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "cases": rows,
        "alone": alone,
    }
    (arguments.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
