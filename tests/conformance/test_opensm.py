"""Lengths of our up*/down* routes beside those of OpenSM's engine updn, on the same graphs with
the same root: recorded once, and compared anew where OpenSM and ibsim are installed.

Record again with `python tests/conformance/test_opensm.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from wormcast import routing

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/routing"))
import opensm  # noqa: E402 - after the path is set

RECORD = Path(__file__).parent / "recorded/opensm-hops.json"
SPECS = (
    *(f"irregular:16:{seed}" for seed in (1, 2, 3, 4)),
    *(f"irregular:32:{seed}" for seed in (1, 2, 3)),
    "irregular:64:3",
    "torus:5",
    "mesh:5",
    "fat-tree:4",
    "shufflenet:2:3",
    "line:6",
    "full-mesh:7",
)
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
"""Hops from one switch to all others, one character each."""
MOST_ODD = 0.006
"""Most pairs, of all, that may differ (see `test_lengths`)."""


def hops_of_ours(topology: dict[str, Any], root: int) -> list[str]:
    """Links from every switch to every other, a text for each switch."""
    speaker = {host["switch"]: host["id"] for host in reversed(topology["hosts"])}
    lengths = {
        (row["src"], row["dst"]): len(row["switches"]) - 1
        for row in routing.routes(topology, "osud", root)["routes"]
    }
    lengths |= {(host, host): 0 for host in speaker.values()}
    return [
        "".join(DIGITS[lengths[speaker[src], speaker[dst]]] for dst in sorted(speaker))
        for src in sorted(speaker)
    ]


def hops_of_opensm(topology: dict[str, Any], root: int) -> list[str]:
    """The same from OpenSM's table of hops."""
    answer = opensm.route(topology, "updn", root, tables=True)
    assert answer.engine == "updn"
    return ["".join(DIGITS[row.get(to, 0)] for to in sorted(row)) for _, row in sorted(answer.hops.items())]


def network(spec: str) -> tuple[dict[str, Any], int]:
    """A topology whose switches all have hosts, and its root."""
    topology = routing.make(spec)
    bare = {switch["id"] for switch in topology["switches"]} - {host["switch"] for host in topology["hosts"]}
    used = {(link[end], link[f"{end}_port"]) for link in topology["links"] for end in "ab"}
    for number, switch in enumerate(sorted(bare)):
        port = next(port for port in range(254) if (switch, port) not in used)
        topology["hosts"].append({"id": 60000 + number, "switch": switch, "port": port})
        next(row for row in topology["switches"] if row["id"] == switch)["ports"] = 16
    return topology, routing.spanning_tree(topology)["root"]


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[str]]:
    """What OpenSM said when it was asked."""
    record: dict[str, list[str]] = json.loads(RECORD.read_text())
    return record


@pytest.mark.parametrize("spec", SPECS)
def test_lengths(spec: str, recorded: dict[str, list[str]]) -> None:
    """As long as OpenSM's, pair by pair.

    OpenSM keeps one direction a switch in its search: where a switch is reached as soon by going
    up as by going down, it either misses the way on (longer than ours) or takes a turn that is
    not legal (shorter). Those are few, and not the same from a to b as from b to a, which the
    shortest legal paths are.
    """
    topology, root = network(spec)
    ours, theirs = hops_of_ours(topology, root), recorded[spec]
    assert [len(row) for row in ours] == [len(row) for row in theirs]
    pairs = [(a, b) for a in range(len(ours)) for b in range(len(ours)) if a != b]
    assert all(ours[a][b] == ours[b][a] for a, b in pairs)
    odd = [(a, b) for a, b in pairs if ours[a][b] != theirs[a][b]]
    assert all(theirs[a][b] != theirs[b][a] for a, b in odd)
    assert len(odd) <= MOST_ODD * len(pairs), odd


@pytest.mark.skipif(bool(opensm.missing()), reason="needs OpenSM and ibsim (opensm, ibsim-utils)")
@pytest.mark.parametrize("spec", SPECS)
def test_opensm_says_so_still(spec: str, recorded: dict[str, list[str]]) -> None:
    """What was recorded is what OpenSM routes."""
    assert hops_of_opensm(*network(spec)) == recorded[spec]


if __name__ == "__main__":
    RECORD.write_text(json.dumps({spec: hops_of_opensm(*network(spec)) for spec in SPECS}, indent=1) + "\n")
