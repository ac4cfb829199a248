"""The demo's report: report.json, report.md and the pictures in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from wormcast.counted import counted

mpl.use("Agg")
from matplotlib import pyplot as plt
from wormcast.mininet import drawing
from wormcast.mininet.transfer import Result

# About what a packet of a 1500-byte frame carries; only k-binomial's shape depends on it.
PACKET_BYTES = 1400

SCHEME_NOTES = {
    "repeat": "the source unicasts to each receiver",
    "circuit": "a Hamiltonian circuit in order of host id; every host forwards to the next (WORM §5)",
    "tree": "a rooted tree of hosts, fan-out 3; every host forwards to its neighbours in it (WORM §6)",
    "k-binomial": "a k-binomial tree with the k that is best for a long message (PACKET §4)",
    "postal": "the optimal tree of hosts where a message is under way for λ send times (NIC §5.5)",
    "u-torus": "recursive halving in the order of the coordinates (TORUS §3)",
    "s-torus": "one chain of hosts along a Hamiltonian path (TORUS §3)",
    "md-torus": "a chain of hosts on each ring of the last dimension (TORUS §3)",
    "mu-torus": "chains of hosts along a Hamiltonian path, as long as a ring (TORUS §3)",
    "switch": "one tree source route; the switches replicate (WORM §3)",
    "table": "one group number; the switches replicate by their tables (WORM §8.1)",
    "broadcast": "up to the root and down the spanning tree to all hosts; others than members drop it (WORM §3)",
    "auto": "each message takes the scheme that suits its length, by the costs of the fabric",
}


def write(out: Path, topology: dict[str, Any], facts: dict[str, Any], results: list[Result]) -> None:
    """Write the whole report into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "topology.json").write_text(json.dumps(topology, indent=1) + "\n")
    document = {**facts, "schemes": [result.as_json() for result in results]}
    (out / "report.json").write_text(json.dumps(document, indent=2) + "\n")
    drawing.draw_fabric(topology, out / "topology.png")
    schemes = [result.scheme for result in results]
    drawing.draw_groups(
        topology, schemes, facts["source"], max(1, facts["file_bytes"] // PACKET_BYTES), out / "groups.png"
    )
    draw_chart(results, facts, out / "schemes.png")
    (out / "report.md").write_text(markdown(topology, facts, results))


def ideal_seconds(facts: dict[str, Any]) -> float | None:
    """Time the file alone takes on one link; None without a rate."""
    if facts["rate_mbps"] is None:
        return None
    return float(facts["file_bytes"] * 8 / (facts["rate_mbps"] * 1e6))


def draw_chart(results: list[Result], facts: dict[str, Any], path: Path) -> None:
    """Completion time and bytes over the links, a bar for each scheme."""
    names = [result.scheme for result in results]
    height = 1.4 + 0.5 * len(names)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, height), sharey=True, layout="constrained")
    bars = left.barh(names, [result.seconds for result in results], color="#3b6ea5")
    # The line of the rate may be just behind a number.
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    left.bar_label(bars, [f"{result.seconds:.1f}" for result in results], padding=3, bbox=white)
    ideal = ideal_seconds(facts)
    if ideal is not None:
        left.axvline(
            ideal, color="#a53b3b", linewidth=1, linestyle="--", label=f"file / rate = {ideal:.2f} s"
        )
    left.set_title("until every receiver has the file")
    left.set_xlabel("seconds")
    mib = 2**20
    width = 0.4
    for offset, label, colour, sizes in (
        (-width / 2, "sent by the source", "#7aa95c", [r.source_bytes / mib for r in results]),
        (width / 2, "over all links", "#c28f3a", [r.link_bytes / mib for r in results]),
    ):
        bars = right.barh(
            [place + offset for place in range(len(names))], sizes, width, label=label, color=colour
        )
        right.bar_label(bars, [f"{size:,.0f}" for size in sizes], padding=3, fontsize=8)
    right.set_title("what it cost the network")
    right.set_xlabel("MiB")
    left.invert_yaxis()
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.12)
    # Below all bars, since the long ones may reach anywhere.
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def markdown(topology: dict[str, Any], facts: dict[str, Any], results: list[Result]) -> str:
    """report.md."""
    ideal = ideal_seconds(facts)
    rate = "no set rate" if facts["rate_mbps"] is None else f"{facts['rate_mbps']:g} Mb/s each way"
    lines = [
        "# One file to every member",
        "",
        f"{facts['file_bytes']:,} bytes from h{facts['source']} to {results[0].receivers} receivers; "
        f"{counted(len(topology['switches']), 'P4 switch')} ({facts['switch']}), {counted(len(topology['hosts']), 'host')}, "
        f"topology {facts['topology']}, links of {rate}"
        + (f", impairments on every port: {facts['impair']}" if facts["impair"] else "")
        + (f", switching {facts['switching']}" if facts["switching"] else "")
        + (", one link between switches cut in the middle of each transfer" if facts["cut"] else "")
        + f". Machine: {facts['machine']}. Seed {facts['seed']}.",
        "",
    ]
    if ideal is not None:
        lines += [f"The file alone takes {ideal:.2f} s on one link.", ""]
    lines += [
        "| scheme | completion s | goodput of each receiver Mb/s | source sent B | over all links B | busiest link B | sent again | every member intact |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {r.scheme} | {r.seconds:.2f} | {r.goodput_mbps:.1f} | {r.source_bytes:,} | {r.link_bytes:,} "
        f"| {r.busiest_link_bytes:,} | {r.retransmissions:,} | {'yes, sha256 equal' if r.intact else '**no**'} |"
        for r in results
    ]
    lines += ["", "![What each scheme cost](schemes.png)", "", "## The fabric", ""]
    lines += ["Thick: the up*/down* spanning tree; its root is filled.", "", "![Topology](topology.png)", ""]
    lines += ["## The group under each scheme", "", "![Groups](groups.png)", ""]
    lines += [f"- **{r.scheme}**: {SCHEME_NOTES[r.scheme]}." for r in results]
    lines += [
        "",
        "Bytes over links are frames with all headers, acknowledgements included, counted by the kernel.",
        "",
    ]
    return "\n".join(lines)
