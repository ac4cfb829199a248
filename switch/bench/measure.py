"""One switch beside BMv2: packets a second, latency, table writes. See README.md.

Runs in a network namespace of its own (switch/bench/run makes it). Switches take turns, so that
what else the machine does falls on all of them.
"""

import argparse
import json
import logging
import shutil
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import latency
import pairs
import throughput
from cases import ROOT, cases
from rig import BARE, BMV2, OURS, Programs, machine, make_links, running

LOAD = 0.1
"""Share of the best rate at which latency is measured."""
LATENCY_SECONDS = 5.0


def measure_throughput(given: argparse.Namespace, programs: Programs, names: list[str]) -> dict[str, Any]:
    """Best and flooded rates of all cases and sizes."""
    chosen = [cases()[name] for name in given.cases]
    runs: list[throughput.Run] = []
    port = 20000
    for repeat in range(given.repeats):
        for index, case in enumerate(chosen):
            for name in names + ([BARE] if index == 0 else []):
                port += 1
                for run in throughput.measure(
                    programs, name, case, given.sizes, given.seconds, port, given.options
                ):
                    throughput.say(run, repeat, given.repeats)
                    bare = {"case": ""} if name == BARE else {}
                    runs.append(throughput.Run(**asdict(run) | bare))
    return {"runs": [asdict(run) for run in runs], "table": throughput.table(runs, chosen)}


def measure_latency(given: argparse.Namespace, programs: Programs, names: list[str]) -> dict[str, Any]:
    """At a tenth of the best rate of BMv2 (of ours, where BMv2 is not), for both."""
    runs: list[latency.Run] = []
    port = 30000
    size = given.sizes[0]
    for case in (cases()[name] for name in given.cases):
        rates = []
        for name in names:
            port += 1
            best = throughput.measure(programs, name, case, [size], 1.0, port, given.options)[0].best_pps
            rates.append(round(best * LOAD))
        for repeat in range(given.repeats):
            for name in names:
                port += 1
                # The rate of the slowest for all, and its own for each.
                own = sorted({min(rates), rates[names.index(name)]})
                for run in latency.measure(
                    programs, name, case, size, own, LATENCY_SECONDS, port, given.options
                ):
                    print(f"{repeat + 1}/{given.repeats} {run}", file=sys.stderr, flush=True)
                    runs.append(run)
    return {"runs": [asdict(run) for run in runs], "table": latency.table(runs)}


def measure_writes(given: argparse.Namespace, programs: Programs, names: list[str]) -> dict[str, Any]:
    """Table entries a second through P4Runtime, in batches of 100."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    port = 40000
    for _ in range(given.repeats):
        for name in names:
            port += 1
            with running(name, programs, None, port, given.options) as pid:
                command = [programs.example("table_writes"), "--address", f"127.0.0.1:{port}"]
                command += ["--device-id", "1", "--json", "--pid", str(pid)]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            results[name].append(json.loads(output))
            print(f"{name}: {output.strip()}", file=sys.stderr, flush=True)
    kinds = ("insert", "modify", "delete")

    def middle(name: str, kind: str, field: str) -> float:
        return statistics.median(run[kind][field] for run in results[name])

    lines = ["| switch | kind | writes/s | server's CPU a write | beside BMv2 |", "|---|---|---|---|---|"]
    for name in names:
        for kind in kinds:
            rate = middle(name, kind, "writes_per_second")
            cpu = middle(name, kind, "server_cpu_us_per_write")
            beside = ""
            if name == OURS and BMV2 in names:
                beside = f"{rate / middle(BMV2, kind, 'writes_per_second'):.1f}x"
            lines.append(f"| {name} | {kind} | {rate:,.0f} | {cpu:.1f} us | {beside} |")
    return {"runs": results, "table": "\n".join(lines)}


def measure_pairs(given: argparse.Namespace, programs: Programs, _names: list[str]) -> dict[str, Any]:
    """Two pairs of ports at once, with one thread and with more."""
    runs, table = pairs.run(programs, given.sizes[0], given.seconds / 2, given.repeats, 50000)
    return {"runs": [asdict(run) for run in runs], "table": table}


MEASUREMENTS = {
    "throughput": measure_throughput,
    "latency": measure_latency,
    "writes": measure_writes,
    "pairs": measure_pairs,
}


def arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        unknown = sorted(set(text.split(",")) - cases().keys())
        if unknown:
            message = f"no case {', '.join(unknown)}; there are {', '.join(cases())}"
            raise argparse.ArgumentTypeError(message)
        return text.split(",")

    def sizes(text: str) -> list[int]:
        values = [int(value) for value in text.split(",")]
        if any(not 64 <= value <= 9000 for value in values):
            raise argparse.ArgumentTypeError(f"{text}: frames have 64 to 9000 bytes")
        return values

    parser = argparse.ArgumentParser(prog="switch/bench/run", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"{', '.join(MEASUREMENTS)}; all unless said")
    parser.add_argument("--switch", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--examples", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument(
        "--bmv2", default=shutil.which("simple_switch_grpc"), help="another simple_switch_grpc"
    )
    parser.add_argument("--cases", type=names, default=list(cases()), help=f"of {','.join(cases())}")
    parser.add_argument("--sizes", type=sizes, default=[64, 1500], help="bytes: 64,1500")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a flood")
    parser.add_argument("--repeats", type=int, default=3, help="of everything")
    parser.add_argument("--option", dest="options", action="append", default=[], help="for wormcast-switch")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench-switch")
    given = parser.parse_args()
    unknown = sorted(set(given.what) - MEASUREMENTS.keys())
    if unknown:
        parser.error(f"no measurement {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}")
    return given


def main() -> int:
    given = arguments()
    logging.getLogger("finsy").setLevel(logging.ERROR)
    programs = Programs(given.switch, given.examples, given.bmv2)
    names = [OURS]
    if programs.bmv2:
        names.append(BMV2)
    else:
        print("simple_switch_grpc is not installed: measured without it", file=sys.stderr)
    make_links(given.sizes)
    on = machine()
    result: dict[str, Any] = {"machine": on}
    lines = [
        f"{on['processor']}, {on['cores']} cores, Linux {on['kernel']}; medians of {given.repeats} repeats, "
        f"switches in turn, floods of {given.seconds:g} s."
    ]
    for what in given.what or MEASUREMENTS:
        result[what] = MEASUREMENTS[what](given, programs, names)
        lines += ["", f"## {what}", "", result[what]["table"]]
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    (given.out / "result.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
