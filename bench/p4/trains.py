"""Worms of many frames in wormhole and in packet mode, by load: deadlocks, arrivals, delays, frames held.

Runs the example `trains` of tests/fabric, which has the P4 program on virtual time, for three kinds of traffic side by
side, and leaves `trains.json` and `trains.svg`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
TRAFFIC = {
    "unicast": ["--multicast", "0"],
    "one host multicasts": ["--multicast", "1", "--multicast-hosts", "1"],
    "all multicast": ["--multicast", "0.2"],
}
"""Options of the program, by what is sent."""
PANELS = {
    "deadlock": "runs that were stuck, %",
    "arrived": "arrived, of links of hosts",
    "small_us_p99": "p99 of worms of one frame, µs",
    "held": "frames held at one switch, most",
}

Row = dict[str, Any]


def rows(program: Path, options: list[str]) -> list[Row]:
    """All that the program says, each line with the traffic it is about."""
    found: list[Row] = []
    for traffic, chosen in TRAFFIC.items():
        with subprocess.Popen([program, *options, *chosen], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                row: Row = {"traffic": traffic, **json.loads(line)}
                row["deadlock"] = round(100 * row["left"] / row["runs"], 1)
                row["held"] = max(row["waited_max"], row["queued_max"])
                found.append(row)
                print(
                    f"{traffic:<20} {row['scheme']:<7} load {row['load']:<5} stuck {row['deadlock']:5.1f} %"
                    f"  arrived {row['arrived']:.3f}  small p50, p99 {row['small_us_p50']}, {row['small_us_p99']} µs"
                    f"  held {row['held']}",
                    flush=True,
                )
        if process.returncode != 0:
            sys.exit(process.returncode)
    return found


def draw(found: list[Row]) -> Figure:
    """A row of panels for each traffic, a line for each scheme."""
    figure = Figure(figsize=(16, 10), layout="constrained")
    panels = figure.subplots(len(TRAFFIC), len(PANELS), sharex=True)
    for traffic, line in zip(TRAFFIC, panels, strict=True):
        for (name, title), panel in zip(PANELS.items(), line, strict=True):
            of_traffic = [row for row in found if row["traffic"] == traffic]
            for scheme in dict.fromkeys(row["scheme"] for row in of_traffic):
                points = [(row["load"], row[name]) for row in of_traffic if row["scheme"] == scheme]
                panel.plot(*zip(*points, strict=True), marker="o", label=scheme)
            panel.set(xlabel="load of each host", ylabel=title, title=traffic)
            if name in ("small_us_p99", "held"):
                panel.set_yscale("symlog")
    panels[0][0].legend()
    return figure


def main() -> None:
    """Command line; what is not known here goes to the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench-p4")
    given, options = parser.parse_known_args()
    given.out.mkdir(parents=True, exist_ok=True)
    found = rows(given.program, options)
    (given.out / "trains.json").write_text(json.dumps({"options": options, "rows": found}, indent=1) + "\n")
    draw(found).savefig(given.out / "trains.svg")
    print(f"{given.out}/trains.json, trains.svg")


if __name__ == "__main__":
    main()
