"""One link of a large fabric fails: milliseconds from its event until all agents have confirmed the routes around it.

Links between switches, drawn with the seed, are cut one after another and mended again. Each row is one cut: when the
controller had the event, how long after it the plan was made, and how long until the change was done.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from reconvergence import wait_links
from rig import Row, label, say
from scale import READY_SECONDS_MAX, network
from wormcast.mininet import fabric as fabrics

DONE_SECONDS_MAX = 60.0


def options(parser: argparse.ArgumentParser) -> None:
    """What may be chosen."""
    parser.add_argument("--size", default="256x256", help="SWITCHESxHOSTS")
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--rate", type=float, default=20.0, help="Mb/s of every link")
    parser.add_argument(
        "--rest", type=float, default=3.0, help="seconds between a mended link and the next cut"
    )
    parser.add_argument("--seed", type=int, default=1)


def measure(chosen: argparse.Namespace) -> list[Row]:
    """All cuts in one fabric."""
    switches, hosts = (int(part) for part in chosen.size.split("x"))
    settings = fabrics.Options(network(switches, hosts, chosen.seed), rate_mbps=chosen.rate)
    drawn = random.Random(chosen.seed)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory, fabrics.Fabric(settings, Path(directory)) as fabric:
        fabric.wait_ready(READY_SECONDS_MAX)
        time.sleep(10.0)
        between = [link for link in fabric.links if link.host is None]
        for number in range(chosen.cuts):
            link = drawn.choice(between)
            last = max((event["number"] for event in kept(fabric, 0)), default=0)
            cut = time.time()
            fabric.set_link(link, up=False)
            row = {"switches": switches, "hosts": hosts, "cut": number, **wait_done(fabric, last, cut)}
            rows.append(say(**row))
            fabric.set_link(link, up=True)
            wait_links(fabric, len(between))
            time.sleep(chosen.rest)
    done = sorted(row["done_ms"] for row in rows)
    say(cuts=len(done), median_ms=statistics.median(done), worst_ms=done[-1])
    return rows


def kept(fabric: fabrics.Fabric, after: int) -> list[dict[str, Any]]:
    """Events above a number."""
    events: list[dict[str, Any]] = fabric.get(f"events?after={after}&follow=false")["events"]
    return events


def wait_done(fabric: fabrics.Fabric, last: int, cut: float) -> Row:
    """Times of the change that follows the loss of a link, in ms."""
    deadline = time.monotonic() + DONE_SECONDS_MAX
    while time.monotonic() < deadline:
        events = kept(fabric, last)
        at = {event["kind"]: event["time_s"] for event in reversed(events)}
        if "link_down" in at and "change_done" in at:
            planned = next(event for event in events if event["kind"] == "change_planned")
            return {
                "event_ms": round(1000 * (at["link_down"] - cut)),
                "planned_ms": round(1000 * (at["change_planned"] - at["link_down"])),
                "done_ms": round(1000 * (at["change_done"] - at["link_down"])),
                **{name: planned[name] for name in ("method", "steps", "routes")},
            }
        time.sleep(0.2)
    raise TimeoutError(f"the routes have not changed {DONE_SECONDS_MAX:.0f} s after a cut")


def draw(rows: list[Row], figure: Figure) -> None:
    """How large a part of the cuts is planned around, and done with, in so many ms."""
    panel = figure.add_subplot()
    for name in ("planned_ms", "done_ms"):
        times = sorted(row[name] for row in rows)
        panel.step(times, [(n + 1) / len(times) for n in range(len(times))], where="post", label=label(name))
    panel.set(xlabel="ms from the event", ylabel="part of the cuts")
    panel.legend()
