"""A PFC storm and a real deadlock, named port by port; then legal routes, and no deadlock."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from labs.lossless_hosts import Flow, Host, mac
from labs.queues import parse_rate
from labs.report import Report
from labs.rig import L2_PROGRAM, LabError, SwitchProcess, make_cable, running_switch, wait_until
from labs.watched import Watched

LOSSLESS, OTHER = 3, 4
"""Priorities: the one that storms and deadlocks, and one that must not notice."""
FRAME_BYTES = 1_000
HOST, NEXT, BEFORE = 0, 1, 2
"""Ports of a switch of the ring: to its host, clockwise, counter-clockwise."""
PATIENCE_S = 60.0
"""Only against waiting for ever."""
QUIET_S = 1.0
DETECT = "1s"
WAITS = re.compile(r"switch (\d+) port (\d+) priority (\d+)")
STORM = re.compile(r"port (\d+).* priority (\d+): paused by its neighbour .* from ports ([\d, ]+)")

Entries = Mapping[int, Mapping[int, int]]
"""For each switch the port that leads to each host."""


async def install(address: str, entries: Entries) -> None:
    """Give every switch the program, and the port for each host's address."""
    import finsy as fy

    logging.getLogger("finsy").setLevel(logging.ERROR)  # it warns of every switch that it has no gNMI
    options = {
        device: fy.SwitchOptions(
            p4info=L2_PROGRAM / "l2.p4info.txtpb", p4blob=L2_PROGRAM / "l2.json", device_id=device
        )
        for device in entries
    }
    for device, ports in entries.items():
        async with fy.Switch(f"s{device}", address, options[device]) as switch:
            table = [
                +fy.P4TableEntry(
                    "addresses",
                    match=fy.Match(dst=int.from_bytes(mac(host), "big")),
                    action=fy.Action("forward", port=port),
                )
                for host, port in ports.items()
            ]
            await switch.write(table)


def set_up(switch: SwitchProcess, address: str, entries: Entries) -> None:
    """The same, and say what the switch said if it fails."""
    try:
        asyncio.run(asyncio.wait_for(install(address, entries), PATIENCE_S))
    except Exception as error:
        raise LabError(f"loading the program: {error!r}; the switch says: {switch.log()[-400:]}") from error


def end_all(hosts: Sequence[Host]) -> None:
    for host in hosts:
        if host.is_alive():
            host.end()


def await_quiet(hosts: Sequence[Host]) -> None:
    """Wait until no host has received anything for a while."""
    seen, since = -1, time.monotonic()
    deadline = since + PATIENCE_S
    while time.monotonic() - since < QUIET_S and time.monotonic() < deadline:
        now = sum(host.received() for host in hosts)
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.05)


def drops(statistics: Mapping[str, Any]) -> int:
    """Frames that a switch dropped, for whatever cause but a storm."""
    causes = {name: count for name, count in statistics["pipeline"].items() if name.startswith("drop.")}
    causes.pop("drop.queue_full", None)  # these are counted at their port, as tail drops or as the storm's
    pipeline = sum(causes.values())
    ports = ("receive_ring_full", "queue_tail_drops", "send_failed", "send_bad_length", "no_link")
    at_ports = sum(port[count] for port in statistics["ports"] for count in ports)
    return int(pipeline + at_ports + sum(port["headroom_full"] for port in statistics["lossless"]["ports"]))


# --- the storm ------------------------------------------------------------------------------


def storm(report: Report, rate_bps: float, rate: str) -> Watched:
    """One switch. Host 0 sends to hosts 1 and 2; host 1 pauses priority 3 for ever."""
    address = "127.0.0.1:50051"
    for port in range(3):
        make_cable(f"h{port}", f"p{port}")
    argv = ["--no-p4", *(word for port in range(3) for word in ("-i", f"{port}@p{port}"))]
    argv += [
        "--device-id",
        "0",
        "--lossless",
        "--link-rate",
        rate,
        "--watchdog",
        f"detect={DETECT},action=drop",
    ]
    flows = [Flow(1, LOSSLESS), Flow(2, LOSSLESS), Flow(2, OTHER)]
    watched = Watched("storm: host 1 pauses priority 3 for ever")
    with running_switch([*argv, "--", "--grpc-server-addr", address], report.directory) as switch:
        set_up(switch, address, {0: {host: host for host in range(3)}})
        hosts = [Host(n, f"h{n}", rate_bps, FRAME_BYTES, flows if n == 0 else []) for n in range(3)]
        start = time.monotonic()

        def mark(what: str) -> None:
            watched.moments.append((time.monotonic() - start, what))

        try:
            for host in hosts:
                host.start()
            hosts[0].sending.set()
            wait_until(lambda: hosts[1].received() > 100, "frames flow", PATIENCE_S)
            mark("storm begins")
            hosts[1].storming.set()
            wait_until(lambda: bool(STORM.search(switch.log())), "the watchdog finds the storm", PATIENCE_S)
            mark("watchdog drops")
            behind = hosts[2].arrived[0, LOSSLESS].frames
            wait_until(
                lambda: hosts[2].arrived[0, LOSSLESS].frames > behind + 100, "the others go on", PATIENCE_S
            )
            mark("storm ends")
            hosts[1].calm()
            wait_until(lambda: "storm is over" in switch.log(), "the storm is over", PATIENCE_S)
            mark("queue as before")
            before = hosts[1].received()
            wait_until(lambda: hosts[1].received() > before + 100, "host 1 receives again", PATIENCE_S)
            hosts[0].sending.clear()
            await_quiet(hosts)
        finally:
            end_all(hosts)
        found = STORM.search(switch.log())
        said = next(line for line in switch.log_lines("paused by its neighbour"))
        statistics = switch.stop()
    told = statistics["lossless"]["storms"]
    for name, key, to in (
        ("to host 1, priority 3 (the storm's)", (0, LOSSLESS), 1),
        ("to host 2, priority 3 (behind it)", (0, LOSSLESS), 2),
        ("to host 2, priority 4", (0, OTHER), 2),
    ):
        watched.flows[name] = [at - start for at in hosts[to].arrived[key].times]
    report.check(
        "the watchdog names port 1 and priority 3, and that the frames came from port 0; no other port is named",
        said[said.find("port") :].strip(),
        found is not None
        and found.groups() == ("1", "3", "0")
        and [(s["port"], s["priority"]) for s in told] == [(1, 3)],
    )
    dropped = sum(port["storm_drops"] for port in statistics["lossless"]["ports"])
    at_one, behind_it, other = (hosts[h].arrived[0, p] for h, p in ((1, LOSSLESS), (2, LOSSLESS), (2, OTHER)))
    lost = flows[0].sent - at_one.frames
    report.check(
        "frames for host 1 are dropped while the storm lasts, and only they; each is counted",
        f"{flows[0].sent} sent to host 1, {at_one.frames} arrived, {lost} did not; {dropped} counted as dropped",
        lost == dropped and dropped > 0 and drops(statistics) == 0,
    )
    for flow, arrivals, words in (
        (
            flows[1],
            behind_it,
            "priority 3 to host 2 stands still behind the storm, then goes on: it loses nothing",
        ),
        (flows[2], other, "priority 4 does not notice: it loses nothing"),
    ):
        report.check(
            words,
            f"{flow.sent} sent, {arrivals.frames} arrived, {arrivals.out_of_order} out of order; "
            f"longest gap {longest_gap(arrivals.times):.2f} s",
            flow.sent == arrivals.frames and arrivals.out_of_order == 0,
        )
    report.check(
        "when the storm has ended, host 1 receives again",
        f"storm found at {told[0]['found_us'] / 1e6:.1f} s, over at {(told[0]['recovered_us'] or 0) / 1e6:.1f} s",
        told[0]["recovered_us"] is not None,
    )
    report.figures["storm"] = {"storms": told, "storm_drops": dropped, "pauses_at_sender": hosts[0].pauses}
    return watched


def longest_gap(times: Sequence[float]) -> float:
    """Seconds between two frames, at most."""
    return max((later - sooner for sooner, later in itertools.pairwise(times)), default=0.0)


# --- the ring -------------------------------------------------------------------------------


def around(switches: int) -> dict[int, dict[int, int]]:
    """Routes that go around the ring clockwise, all of them: channels wait for one another in a circle."""
    return {at: {to: HOST if to == at else NEXT for to in range(switches)} for at in range(switches)}


def along_a_line(switches: int) -> dict[int, dict[int, int]]:
    """Routes that never use the link between the last switch and the first: up*/down* with that link left out."""
    return {
        at: {to: HOST if to == at else NEXT if to > at else BEFORE for to in range(switches)}
        for at in range(switches)
    }


def topology(switches: int) -> dict[str, Any]:
    """The ring as `wormcast` commands take it."""
    return {
        "switches": [{"id": at, "ports": 3} for at in range(switches)],
        "hosts": [{"id": at, "switch": at, "port": HOST} for at in range(switches)],
        "links": [
            {"a": at, "a_port": NEXT, "b": (at + 1) % switches, "b_port": BEFORE} for at in range(switches)
        ],
    }


def destination(host: int, switches: int) -> int:
    """Where a host sends: as far clockwise as there is."""
    return (host - 1) % switches


def routes(entries: Entries) -> dict[str, Any]:
    """The routes that the entries make, as `wormcast verify` takes them."""
    switches = len(entries)
    made: list[dict[str, Any]] = []
    for source in entries:
        to = destination(source, switches)
        at = source
        crossed: list[int] = []
        ports: list[int] = []
        while not ports or ports[-1] != HOST:
            port = entries[at][to]
            crossed.append(at)
            ports.append(port)
            at = (at + (1 if port == NEXT else -1)) % switches if port != HOST else at
        made.append({"src": source, "dst": to, "switches": crossed, "ports": ports})
    return {"algorithm": "tables", "root": 0, "routes": made, "unreachable": []}


def verify(entries: Entries, directory: Path, name: str) -> dict[str, Any]:
    """What `wormcast verify` says of the routes, before a frame is sent."""
    net, planned = directory / "ring.json", directory / f"{name}-routes.json"
    net.write_text(json.dumps(topology(len(entries))))
    planned.write_text(json.dumps(routes(entries)))
    command = [
        sys.executable,
        "-m",
        "wormcast.cli.main",
        "verify",
        "--json",
        "--topology",
        str(net),
        "--routes",
        str(planned),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise LabError(f"wormcast verify: {done.stderr.strip() or done.stdout.strip()}") from error
    return answer


def ring(
    report: Report, rate_bps: float, rate: str, entries: Entries, *, seconds: float, title: str
) -> tuple[Watched, list[str], dict[str, Any]]:
    """Run the ring with these routes. Without deadlock it sends for so long; gives what the log says of deadlocks."""
    switches = len(entries)
    address = "127.0.0.1:50051"
    fabric = report.directory / "fabric.json"
    fabric.write_text(
        json.dumps(
            {
                "switches": [{"name": f"s{at}", "device_id": at} for at in range(switches)],
                "links": [
                    {"ends": [f"s{at}:{NEXT}", f"s{(at + 1) % switches}:{BEFORE}"]} for at in range(switches)
                ],
                "edges": [{"port": f"s{at}:{HOST}", "interface": f"r{at}"} for at in range(switches)],
            }
        )
    )
    argv = ["--fabric", str(fabric), "--lossless", "--link-rate", rate, "--watchdog", "off"]
    watched = Watched(title)
    with running_switch([*argv, "--", "--grpc-server-addr", address], report.directory) as switch:
        set_up(switch, address, entries)
        hosts = [
            Host(at, f"g{at}", rate_bps, FRAME_BYTES, [Flow(destination(at, switches), LOSSLESS)])
            for at in entries
        ]
        start = time.monotonic()
        try:
            for host in hosts:
                host.start()
            for host in hosts:
                host.sending.set()
            deadline = start + seconds
            while time.monotonic() < deadline and "deadlock:" not in switch.log():
                time.sleep(0.05)
            named = switch.log_lines("deadlock:")
            if named:
                watched.moments.append((time.monotonic() - start, "the switch names the ring"))
                await_quiet(hosts)
                stuck = sum(host.received() for host in hosts)
                time.sleep(QUIET_S)
                report.figures["moved_after_deadlock"] = sum(host.received() for host in hosts) - stuck
            for host in hosts:
                host.sending.clear()
            await_quiet(hosts)
            watched.moments.append((time.monotonic() - start, "end"))
        finally:
            end_all(hosts)
        statistics = switch.stop()
    for host in hosts:
        for (source, _), arrivals in sorted(host.arrived.items()):
            watched.flows[f"host {source} to {host.number}"] = [at - start for at in arrivals.times]
    outcome = {
        "sent": sum(host.sent() for host in hosts),
        "received": sum(host.received() for host in hosts),
        "wrong": sum(a.missing + a.out_of_order for host in hosts for a in host.arrived.values()),
        "dropped": sum(drops(one) for one in statistics.values()),
        "held_frames_by_switch": {
            device: sum(q["depth"] for p in one["ports"] for q in p["queues"])
            for device, one in statistics.items()
        },
    }
    return watched, named, outcome


def deadlock(report: Report, rate_bps: float, rate: str, switches: int, seconds: float) -> list[Watched]:
    """The ring with routes that may not be, then with routes that may."""
    for at in range(switches):
        make_cable(f"g{at}", f"r{at}")
    illegal, legal = around(switches), along_a_line(switches)
    answer = verify(illegal, report.directory, "around")
    cycle = channels(answer)
    watched, named, outcome = ring(
        report, rate_bps, rate, illegal, seconds=PATIENCE_S, title="routes around the ring: deadlock"
    )
    text = named[0][named[0].find("deadlock:") :] if named else "nothing"
    found = [tuple(map(int, match)) for match in WAITS.findall(text)]
    expected = {(at, NEXT, LOSSLESS) for at in range(switches)}
    report.check(
        f"routes around the ring: the switch names a deadlock of all {switches} switches, port by port",
        text,
        bool(found) and set(found) == expected,
    )
    report.check(
        "`wormcast verify` had named the same channels from the routes alone, before a frame was sent",
        f"free of deadlock: {answer['deadlock_free']}; cycle over "
        + ", ".join(f"switch {at} port {port}" for at, port in sorted(cycle)),
        answer["deadlock_free"] is False and cycle == {(at, port) for at, port, _ in found},
    )
    report.check(
        "nothing moves any more; no frame was dropped, they wait",
        f"{report.figures.get('moved_after_deadlock')} frames moved afterwards; {outcome['sent']} sent, "
        f"{outcome['received']} received, {outcome['dropped']} dropped, "
        f"waiting by switch: {outcome['held_frames_by_switch']}",
        report.figures.get("moved_after_deadlock") == 0
        and outcome["dropped"] == 0
        and all(outcome["held_frames_by_switch"].values()),
    )
    free = verify(legal, report.directory, "line")
    legal_watched, legal_named, legal_outcome = ring(
        report, rate_bps, rate, legal, seconds=seconds, title="the same traffic on legal routes"
    )
    report.check(
        "the same pairs of hosts on legal routes: `wormcast verify` finds no cycle, and the switch names no deadlock",
        f"free of deadlock: {free['deadlock_free']}; named: {len(legal_named)}",
        free["deadlock_free"] is True and not legal_named,
    )
    report.check(
        "every frame arrives, once and in order",
        "{sent} sent, {received} received, {wrong} out of order or missing, {dropped} dropped".format(
            **legal_outcome
        ),
        legal_outcome["sent"] == legal_outcome["received"] > 0
        and legal_outcome["wrong"] == 0
        and legal_outcome["dropped"] == 0,
    )
    report.figures |= {"deadlock": {"named": named, **outcome}, "legal": legal_outcome, "verify": answer}
    return [watched, legal_watched]


def channels(answer: Mapping[str, Any]) -> set[tuple[int, int]]:
    """The cycle that `wormcast verify` names, as switches and their ports; none where there is none."""
    ends = [link["channel"]["from"] for link in answer.get("cycle", [])]
    return {(end["switch"], end["port"]) for end in ends if "switch" in end}


@click.command()
@click.option("--rate", default="5mbit", show_default=True, help="Rate of every link.")
@click.option(
    "--switches", type=click.IntRange(3, 16), default=4, show_default=True, help="Switches in the ring."
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 600),
    default=3.0,
    show_default=True,
    help="How long hosts send on legal routes.",
)
def lab(report: Report, rate: str, switches: int, seconds: float) -> None:
    """Lossless switches (--lossless) without hardware. First a host pauses a priority for ever: the watchdog names
    the port. Then a ring of switches with routes that go around it: it deadlocks, and the switch names every port
    of the ring. Then the same traffic on legal routes: nothing is lost.
    """
    from labs import pfc_picture

    rate_bps = parse_rate(rate)
    click.echo("a storm", err=True)
    watched = [storm(report, rate_bps, rate)]
    click.echo("a ring of switches", err=True)
    watched += deadlock(report, rate_bps, rate, switches, seconds)
    report.draw(pfc_picture.draw(watched), "pfc")
