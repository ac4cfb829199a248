"""Queues that behave like links: a port of a given rate, two priorities, beside a fluid model."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import click
import numpy as np

from labs.packets import build, parse
from labs.queues_model import BULK, NAMES, URGENT, Comparison, Run, Setup, arrivals_of, compare
from labs.report import Report
from labs.rig import PROGRAMS, LabError, switch_binary

PROGRAM = PROGRAMS / "queues.json"
VIRTUAL = "wormcast-virtual-switch"
"""The program beside wormcast-switch that runs one switch on virtual time."""
WITHIN = 0.05
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
FRAMES_PER_S_MAX = 20_000
"""What a Python program sends in time on a small machine."""


def virtual_switch() -> Path | None:
    """The program that runs a switch on virtual time; None where it is not built."""
    path = switch_binary().resolve().with_name(VIRTUAL)
    return path if path.is_file() else None


def run_on_virtual_time(setup: Setup, program: Path, binary: Path) -> Run:
    """The switch's own code, on time that stands still while it works."""
    schedule = [(round(time_s * 1e6), priority) for time_s, priority in setup.schedule()]
    lines = [
        f"{time_us} 0 {build(priority, number, time_us * 1000, setup.frame_bytes).hex()}"
        for number, (time_us, priority) in enumerate(schedule)
    ]
    command = [
        str(binary),
        str(program),
        "--port-rate",
        setup.rate,
        "--queue-frames",
        str(setup.queue_frames),
    ]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(f"{binary.name}: {done.stderr.strip()}")
    packets, dropped = [], {URGENT: 0, BULK: 0}
    for line in done.stdout.splitlines():
        words = line.split()
        if words[0] == "drops":
            dropped[int(words[2])] = int(words[3])
        else:
            packet = parse(bytes.fromhex(words[2]), int(words[0]) * 1000)
            if packet is not None:
                packets.append(packet)
    sent = {p: [time_us * 1e-6 for time_us, priority in schedule if priority == p] for p in NAMES}
    return Run(packets, sent, dropped)


def parse_rate(text: str) -> float:
    """bit/s of a rate such as 4mbit. Raises LabError."""
    for unit, factor in UNITS.items():
        number = text.removesuffix(unit)
        if number != text and number.replace(".", "", 1).isdigit() and float(number) > 0:
            return float(number) * factor
    raise click.BadParameter(f"rate {text!r} is not a number above 0 with a unit of {', '.join(UNITS)}")


def check_setup(rate: str, frame_bytes: int, queue_frames: int) -> Setup:
    """A setup that can be measured. Raises click.BadParameter."""
    setup = Setup(rate, parse_rate(rate), frame_bytes, queue_frames)
    frames_per_s = 1.5 * setup.rate_bps / setup.frame_bits
    if frames_per_s > FRAMES_PER_S_MAX:
        raise click.BadParameter(
            f"{rate} and frames of {frame_bytes} bytes are {frames_per_s:.0f} frames a second at most; "
            f"this sender keeps up with {FRAMES_PER_S_MAX}: take a lower --rate or a larger --frame-bytes"
        )
    return setup


@click.command()
@click.option("--rate", default="1mbit", show_default=True, help="Rate of the port, as --port-rate takes it.")
@click.option(
    "--frame-bytes", type=click.IntRange(64, 1_514), default=250, show_default=True, help="Length of a frame."
)
@click.option(
    "--queue-frames",
    type=click.IntRange(20, 100_000),
    default=200,
    show_default=True,
    help="Room of a queue.",
)
@click.option("--strict", is_flag=True, help="Fail too when the live run is further than 5 % from the model.")
def lab(report: Report, rate: str, frame_bytes: int, queue_frames: int, strict: bool) -> None:
    """Two priorities share a port of wormcast-switch (--port-rate). The P4 program puts the depth of the queue and
    the wait of each packet into the packet. The lab sends at rates that change, computes what a fluid would do, and
    compares rate, depth, delay and loss. Once on virtual time, where nothing disturbs, and once live, on interfaces.
    """
    from labs import live, queues_picture

    setup = check_setup(rate, frame_bytes, queue_frames)
    nominal = setup.model([setup.offered(URGENT), setup.offered(BULK)])
    report.figures["setup"] = {
        "rate_bps": setup.rate_bps,
        "frame_bytes": frame_bytes,
        "queue_frames": queue_frames,
        "phases": [dict(zip(("seconds", "urgent", "bulk"), phase, strict=True)) for phase in setup.phases],
    }
    binary = virtual_switch()
    if binary is None:
        report.skip(
            f"the run on virtual time: there is no {VIRTUAL} beside wormcast-switch; `make build` makes it"
        )
    else:
        run = run_on_virtual_time(setup, PROGRAM, binary)
        found = compare(run, setup, nominal)
        for priority, comparison in found.items():
            report.check(
                f"virtual time, {NAMES[priority]}: rate, depth, delay and loss within {WITHIN:.0%} of the fluid model",
                describe(comparison),
                comparison.worst <= WITHIN,
            )
        report.figures["virtual"] = figures(run, found)
    click.echo(f"sending for {setup.seconds:.1f} s", err=True)
    with live.real_time() as granted:
        run = live.run_live(setup, PROGRAM, report.directory, setup.schedule())
    if not granted:
        report.skip(
            "real-time priority for the live run: not allowed here (CAP_SYS_NICE); other work disturbs more"
        )
    model = setup.model(arrivals_of(run, setup))
    found = compare(run, setup, model)
    judge(report, setup, run)
    for priority, comparison in found.items():
        report.check(
            f"live, {NAMES[priority]}: the same, as near as the machine lets it",
            describe(comparison),
            comparison.worst <= WITHIN if strict else None,
        )
    report.figures["live"] = figures(run, found)
    report.draw(queues_picture.draw(setup, run, model), "queues")


def judge(report: Report, setup: Setup, run: Run) -> None:
    """What must hold on any machine, however busy."""
    in_order = all(
        all(one.number < next_.number for one, next_ in itertools.pairwise(run.of(priority)))
        for priority in NAMES
    )
    sent, arrived, dropped = (
        sum(map(len, run.sent.values())),
        len(run.packets),
        sum(run.dropped.values()) + run.dropped_before,
    )
    report.check(
        "every packet has arrived, in the order of its priority, or is counted as dropped",
        f"{sent} sent, {arrived} arrived, {dropped} dropped, {'in order' if in_order else 'out of order'}",
        arrived + dropped == sent and in_order,
    )
    bulk, urgent = run.of(BULK), run.of(URGENT)
    deepest = max((packet.depth_before for packet in bulk), default=0)
    lost = {priority: run.dropped[priority] / len(run.sent[priority]) for priority in NAMES}
    report.check(
        f"the bulk queue fills up to its {setup.queue_frames} packets and drops; the urgent one loses nothing",
        f"a bulk packet found {deepest} before it; dropped: {lost[BULK]:.1%} of the bulk, {lost[URGENT]:.1%} urgent",
        deepest == setup.queue_frames - 1 and lost[URGENT] < lost[BULK],
    )
    late = {name: max(packet.waited_s for packet in of) for name, of in (("urgent", urgent), ("bulk", bulk))}
    report.check(
        "urgent packets overtake: the longest wait is far longer for the bulk",
        f"urgent {late['urgent'] * 1e3:.0f} ms, bulk {late['bulk'] * 1e3:.0f} ms",
        late["urgent"] < late["bulk"],
    )
    apart = [abs((packet.received_s - packet.sent_s) - packet.waited_s) for packet in run.packets]
    report.check(
        "the wait that the switch wrote into a packet (deq_timedelta) is the delay that its ends measure",
        f"apart by {float(np.median(apart)) * 1e3:.2f} ms in the median, {max(apart) * 1e3:.1f} ms at most",
        None,
    )


def describe(comparison: Comparison) -> str:
    """The deviations in words."""
    parts = [
        f"{name} {mean:.1%} in the mean, {worst:.1%} at worst"
        for name, (worst, mean) in (
            ("rate", comparison.rate),
            ("depth", comparison.depth),
            ("delay", comparison.delay),
        )
    ]
    return "off by: " + "; ".join([*parts, f"loss {comparison.lost:.1%}"])


def figures(run: Run, found: dict[int, Comparison]) -> dict[str, Any]:
    """The numbers for the report."""
    return {
        NAMES[priority]: {
            "sent": len(run.sent[priority]),
            "received": len(run.of(priority)),
            "dropped": run.dropped[priority],
            "deviation": {
                **{
                    name: dict(zip(("worst", "mean"), getattr(comparison, name), strict=True))
                    for name in ("rate", "depth", "delay")
                },
                "loss": comparison.lost,
            },
        }
        for priority, comparison in found.items()
    }
