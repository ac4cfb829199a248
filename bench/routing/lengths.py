"""Path lengths of OpenSM's updn beside ours, on the same graphs with the same root: pair by pair,
and whether OpenSM's tables keep to up*/down* and are free of deadlock.

Hosts of one switch share its routes, so that one host of each switch speaks for all.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import opensm
from rich.console import Console
from rich.progress import track
from rich.table import Table
from wormcast import routing, verify

SPECS = ("irregular:16:{}", "irregular:32:{}", "irregular:64:{}", "irregular:128:{}")
REGULAR = ("torus:6", "mesh:6", "fat-tree:4", "shufflenet:2:3", "ring:9")


@dataclass
class Comparison:
    """What OpenSM and we made of one topology; pairs are ordered pairs of switches."""

    topology: str
    pairs: int
    same: int
    """As long as ours."""
    longer: int
    """OpenSM's is longer, though a shorter legal path exists: ours."""
    illegal: int
    """OpenSM's turns from down to up."""
    shorter_and_legal: int
    """Would be a mistake of ours."""
    opensm_deadlock_free: bool
    cycle: list[dict[str, Any]]
    """The cycle of channels in OpenSM's tables, and who makes it; empty if there is none."""


def compare(spec: str) -> Comparison:
    """Routes one topology with both and compares every pair of switches."""
    topology = routing.make(spec)
    tree = routing.spanning_tree(topology)
    answer = opensm.route(topology, "updn", tree["root"], tables=True)
    if answer.engine != "updn":
        raise opensm.OpenSmError(f"{spec}: updn gave up, {answer.engine} took over")
    level = {row["switch"]: row["level"] for row in tree["levels"]}
    speaker = {host["switch"]: host for host in reversed(topology["hosts"])}
    ours = {
        (row["src"], row["dst"]): len(row["switches"]) - 1
        for row in routing.routes(topology, "osud", tree["root"])["routes"]
    }
    theirs = walk(topology, answer.ports, speaker)
    result = Comparison(spec, len(theirs), 0, 0, 0, 0, True, [])
    for row in theirs:
        length, best = len(row["switches"]) - 1, ours[row["src"], row["dst"]]
        # Up is towards the root, at equal level towards the lower id (WORM §2).
        rank = [(level[switch], switch) for switch in row["switches"]]
        climbs = [after < before for before, after in itertools.pairwise(rank)]
        if any(up and not before for before, up in itertools.pairwise(climbs)):
            result.illegal += 1
        elif length < best:
            result.shorter_and_legal += 1
        elif length > best:
            result.longer += 1
        else:
            result.same += 1
    verdict = verify.verify(topology, {"routes": theirs})
    result.opensm_deadlock_free = verdict["deadlock_free"]
    result.cycle = verdict.get("cycle", [])
    return result


def walk(
    topology: Mapping[str, Any], ports: Mapping[int, Mapping[int, int]], speaker: Mapping[int, Any]
) -> list[dict[str, Any]]:
    """Routes between the speakers of all switches, as OpenSM's tables lead."""
    ends = {}
    for link in topology["links"]:
        ends[link["a"], link["a_port"]] = link["b"]
        ends[link["b"], link["b_port"]] = link["a"]
    routes = []
    for src in speaker.values():
        for dst in speaker.values():
            if src is dst:
                continue
            at, row = src["switch"], {"src": src["id"], "dst": dst["id"], "switches": [], "ports": []}
            while True:
                port = ports[at][dst["id"]]
                row["switches"].append(at)
                row["ports"].append(port)
                if at == dst["switch"]:
                    break
                if len(row["ports"]) > len(ports):
                    raise opensm.OpenSmError(f"OpenSM's tables lead in a circle from {src} to {dst}")
                at = ends[at, port]
            routes.append(row)
    return routes


def main() -> None:
    """Compares and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="irregular networks of each size (default 10)")
    parser.add_argument("--out", type=Path, default=Path("out/bench-routing"), help="folder for lengths.json")
    arguments = parser.parse_args()
    if missing := opensm.missing():
        parser.exit(2, f"not installed: {', '.join(missing)} (packages opensm and ibsim-utils)\n")
    specs = [spec.format(seed) for spec in SPECS for seed in range(1, arguments.seeds + 1)]
    results = [compare(spec) for spec in track([*specs, *REGULAR], "OpenSM updn beside osud")]
    table = Table(
        "topology", "graphs", "pairs", "same length", "OpenSM longer", "OpenSM illegal", "can deadlock"
    )
    for kind in [*(spec.split(":{")[0] for spec in SPECS), *REGULAR]:
        rows = [row for row in results if row.topology == kind or row.topology.startswith(kind + ":")]
        total = {
            key: sum(getattr(row, key) for row in rows) for key in ("pairs", "same", "longer", "illegal")
        }
        stuck = sum(not row.opensm_deadlock_free for row in rows)
        table.add_row(kind, str(len(rows)), *map(str, total.values()), f"{stuck} of {len(rows)}")
    Console().print(table)
    wrong = [row.topology for row in results if row.shorter_and_legal]
    print("ours is never longer than a legal path of OpenSM" if not wrong else f"OURS IS LONGER on {wrong}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "lengths.json").write_text(json.dumps([asdict(row) for row in results], indent=1) + "\n")


if __name__ == "__main__":
    main()
