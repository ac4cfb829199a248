"""What was measured, as tables and a picture. `publish` puts them where readers find them."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cases import CASES, Case
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Results = dict[str, Any]
NAMES = {"tcp": "N × TCP", "uftp": "UFTP", "aeron": "Aeron", "norm": "NORM", "mpi": "MPI_Bcast"}
FIRST_OF_DEMO = ("switch", "table", "broadcast", "circuit", "k-binomial", "auto")
BLOCK = re.compile(r"(<!-- bench/transport: .*? -->\n).*?(<!-- end -->)", re.DOTALL)
OURS, THEIRS = "#3b6ea5", "#b9b2a3"
DIED = "–"


def trials(kept: Results, case: Case, contender: str) -> list[Results]:
    """Those of a case, with the settings of the first: results of other sizes are not mixed."""
    of_case = [one for one in kept["trials"] if one["case"] == case.name]
    settings = of_case[-1]["settings"] if of_case else None
    return [one for one in of_case if one["contender"] == contender and one["settings"] == settings]


def median(kept: Results, case: Case, contender: str, what: str = "seconds") -> float | None:
    """None: nobody measured it, or it failed more often than not."""
    every = trials(kept, case, contender)
    values = [one[what] for one in every if what in one]
    return statistics.median(values) if 2 * len(values) > len(every) else None


def a_gigabyte(kept: Results, case: Case, contender: str) -> dict[str, float]:
    """Processor seconds a GB delivered to one receiver, by part."""
    done = [one for one in trials(kept, case, contender) if "seconds" in one]
    if not done:
        return {}
    of_file = {"files": 4_096}.get(case.kind, 1)
    settings = done[0]["settings"]
    gigabytes = settings["size"] * of_file * settings["receivers"] / 1e9
    return {
        part: statistics.median(one["processor"][part] for one in done) / gigabytes
        for part in done[0]["processor"]
    }


def called(contender: str) -> str:
    """As a reader knows it: `uftp 800` is UFTP, `wormcast switch` is scheme `switch`."""
    if contender.startswith("wormcast "):
        return f"`{contender.removeprefix('wormcast ')}`"
    over, _, name = contender.partition(" ")[0].rpartition("+")
    return f"{over} over {NAMES.get(name, name)}" if over else NAMES.get(name, name)


def best(kept: Results, case: Case, what: str, ours: bool) -> tuple[str, float] | None:
    """Who of us or of the others has least of this (most where it is a rate), and how much."""
    values = [
        (name, value)
        for name in case.contenders
        if name.startswith("wormcast ") == ours and (value := median(kept, case, name, what)) is not None
    ]
    order = max if what == "rate" else min
    return order(values, key=lambda one: one[1], default=None)


def row(kept: Results, case: Case, label: str, what: str) -> str:
    """Ours, the best of the others, and how many times as fast ours is."""
    both = [best(kept, case, what, ours) for ours in (True, False)]
    cells = []
    for found in both:
        if found is None:
            cells.append("failed")
            continue
        name, value = found
        if what == "rate":
            cells.append(f"{called(name)} {value:,.0f}")
        elif what == "p50_us":
            cells.append(f"{called(name)} {value:,.0f}, {median(kept, case, name, 'p99_us'):,.0f}")
        else:
            cells.append(f"{called(name)} {value:.1f} ({sum(a_gigabyte(kept, case, name).values()):.1f})")
    times = DIED
    if both[0] is not None and both[1] is not None:
        own, other = both[0][1], both[1][1]
        times = f"{own / other if what == 'rate' else other / own:.2g}"
    return f"| {label} | {cells[0]} | {cells[1]} | {times} |"


def measured(kept: Results, *kinds: str) -> list[Case]:
    return [case for case in CASES if case.kind in kinds and any(one["case"] == case.name for one in kept["trials"])]  # fmt: skip


def says(kept: Results, case: Case) -> str:
    """With the size where it is another than the case's."""
    size = next(one["settings"]["size"] for one in reversed(kept["trials"]) if one["case"] == case.name)
    return case.says if size == case.size else f"{case.says} (scaled to {size:,})"


def table(kept: Results) -> str:
    """The tables of docs/compare.md."""
    turns = max((one["turn"] for one in kept["trials"]), default=0) + 1
    once = "one turn" if turns == 1 else f"median of {turns} turns"
    loads = [one["load"] for one in kept["trials"]] or [0]
    lines = [
        f"Seconds, {once}; in brackets processor seconds a GB delivered; load {min(loads)} to {max(loads)}:",
        "",
    ]
    lines += ["| | Wormcast | best of the others | times as fast |", "|---|---:|---:|---:|"]
    files = [case for case in measured(kept, "file", "files", "changed") if case.rate is None]
    lines += [row(kept, case, says(kept, case), "seconds") for case in files]
    for case in measured(kept, "messages"):
        lines.append(row(kept, case, f"{says(kept, case)}, a second", "rate"))
        lines.append(row(kept, case, "p50, p99, µs", "p50_us"))
    lines.append("")
    if rated := [case for case in measured(kept, "file") if case.rate is not None]:
        counts = ", ".join(str(case.receivers) for case in rated)
        took = [median(kept, case, "wormcast switch") for case in rated]
        seconds = ", ".join(DIED if one is None else f"{one:.2f}" for one in took)
        lines += [f"64 MiB at 100 Mb/s to {counts} hosts by `switch`: {seconds} s.", ""]
    if schemes := demo(kept):
        there = [scheme for scheme in FIRST_OF_DEMO if scheme in schemes]
        seconds = ", ".join(f"`{scheme}` {schemes[scheme]:.2f}" for scheme in there)
        lines += [f"`make demo`, where one link needs 5.37 s: {seconds} s.", ""]
    return "\n".join(lines)


def demo(kept: Results) -> dict[str, float]:
    """Median seconds of each scheme."""
    runs = [one["schemes"] for one in kept["trials"] if "schemes" in one]
    return {scheme: statistics.median(run[scheme] for run in runs) for scheme in runs[0]} if runs else {}


def parts(kept: Results) -> str:
    """Processor seconds a GB delivered, by part."""
    lines = ["| case | who | processor seconds a GB delivered, by part |", "|---|---|---|"]
    for case in measured(kept, "file", "files", "changed"):
        for name in case.contenders:
            if found := a_gigabyte(kept, case, name):
                each = ", ".join(f"{part} {seconds:.2f}" for part, seconds in found.items())
                lines.append(f"| {case.name} | {name} | {each} |")
    if engines := kept.get("engine", {}):
        lines += [
            "",
            "| engine alone, packets a second on one core: origin, member | " + " | ".join(engines) + " |",
        ]
        lines.append("|---" + "|---:" * len(engines) + "|")
        for case in dict.fromkeys(case for found in engines.values() for case in found):
            each = [found.get(case) for found in engines.values()]
            cells = [DIED if one is None else f"{one['origin']:,}, {one['member']:,}" for one in each]
            lines.append(f"| {case} | " + " | ".join(cells) + " |")
    failures = {(one["case"], one["contender"], one["failed"]) for one in kept["trials"] if "failed" in one}
    return "\n".join(
        [*lines, "", *[f"- {case}, {name} failed: {why}" for case, name, why in sorted(failures)]]
    )


def draw(kept: Results, path: Path) -> None:
    """A panel of bars for each case."""
    cases = [case for case in measured(kept, "file", "files", "changed", "messages") if case.rate is None]
    if not cases:
        return
    rows = -(-len(cases) // 2)
    figure = Figure(figsize=(8, 0.6 + 1.75 * rows), layout="constrained")
    panels = figure.subplots(rows, 2, squeeze=False).flatten()
    for panel, case in zip(panels, cases, strict=False):
        bars(kept, case, panel)
    for panel in panels[len(cases) :]:
        panel.set_visible(False)
    # The same bytes for the same results.
    with mpl.rc_context({"svg.hashsalt": "transport", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})


def bars(kept: Results, case: Case, panel: Axes) -> None:
    """Who took part, and what came of it: seconds, or microseconds of a message."""
    messages = case.kind == "messages"
    names = [name for name in case.contenders if trials(kept, case, name)]
    values = [median(kept, case, name, "p50_us" if messages else "seconds") for name in names]
    colours = [OURS if name.startswith("wormcast") else THEIRS for name in names]
    drawn = panel.barh(names, [value or 0 for value in values], color=colours)
    rates = [median(kept, case, name, "rate") if messages else None for name in names]
    texts = [
        "failed" if value is None else f"{value:.1f} s" if rate is None else f"{value:,.0f} µs, {rate:,.0f}/s"
        for value, rate in zip(values, rates, strict=True)
    ]
    panel.bar_label(drawn, texts, padding=3, fontsize=8)
    panel.set_title(says(kept, case), fontsize=9, loc="left")
    panel.invert_yaxis()
    panel.margins(x=0.45 if messages else 0.28)
    panel.tick_params(labelsize=8)
    panel.set_xticks([])
    panel.spines[["top", "right", "bottom"]].set_visible(False)


def write(kept: Results, markdown: Path, picture: Path) -> None:
    """Everything, beside the results."""
    markdown.parent.mkdir(parents=True, exist_ok=True)
    markdown.write_text(f"{table(kept)}\n{parts(kept)}\n")
    draw(kept, picture)


def publish(kept: Results, folder: Path, page: Path) -> None:
    """Results and picture into `folder`, the tables into a page between two comments."""
    (folder / "result.json").write_text(json.dumps(kept, indent=1) + "\n")
    draw(kept, folder / "result.svg")
    page.write_text(BLOCK.sub(lambda found: f"{found[1]}\n{table(kept)}\n{found[2]}", page.read_text()))
