"""`wormcast trace`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from wormcast.cli.completion import complete_groups, complete_hosts
from wormcast.cli.refusal import Refusal
from wormcast.cli.rest import Client, api_options, print_json, print_table
from wormcast.decimal import read_decimal
from wormcast.exits import Exit

Json = dict[str, Any]
POLL_S = 0.1
PROGRESS_S = 2.0
SECONDS_DEFAULT = 10.0
SECONDS_MAX = 60.0


def _key(value: str) -> int | str:
    number = read_decimal(value)
    return value if number is None else number


@click.command()
@click.option("--from", "origin", metavar="HOST", shell_complete=complete_hosts, help="Host that sends.")
@click.option("--to", metavar="HOST", shell_complete=complete_hosts, help="Host that receives.")
@click.option(
    "--group",
    metavar="GROUP",
    shell_complete=complete_groups,
    help="Messages of HOST, or the lowest member, to a group.",
)
@click.option(
    "--route", type=click.IntRange(0, 19), help="Only this of several routes to a host. [default: each]"
)
@click.option(
    "--bytes",
    "size",
    type=click.IntRange(min=0),
    help="Length of the messages, for scheme auto. [default: the longest]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, SECONDS_MAX),
    default=SECONDS_DEFAULT,
    show_default=True,
    help="Seconds to wait for all hosts. Probes that are missed are sent again.",
)
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the fabric with the ways in this file.",
)
@api_options
def trace(
    origin: str | None,
    to: str | None,
    group: str | None,
    route: int | None,
    size: int | None,
    timeout: float,
    svg: Path | None,
    api: str,
    as_json: bool,
) -> None:
    """Show the ways of worms: each switch with its ports, queue and time.

    Probes go by the very routes that messages take. HOST and GROUP are ids or names.

    \b
    wormcast trace --from 0 --to 5            each route of the pair
    wormcast trace --group 3 --from 0         what switches copy, or hosts send on
    """
    if (to is None) == (group is None):
        raise Refusal("give one of --to and --group", code="syntax")
    if svg is not None and svg.suffix.lower() not in ("", ".svg"):
        raise Refusal(
            f"--svg {svg}: it is an SVG picture; name the file .svg", code="unsupported", value=svg.suffix
        )
    if svg is not None and not svg.absolute().parent.is_dir():
        raise Refusal(
            f"--svg {svg}: there is no directory {svg.absolute().parent}", code="cannot-write", value=str(svg)
        )
    if to is not None and origin is None:
        raise Refusal("--to needs --from, the host that sends", code="syntax")
    body: Json = {"from": origin, "to": to, "group": group}
    body = {name: None if value is None else _key(value) for name, value in body.items()}
    client = Client(api)
    started = client.send("POST", "/trace", {**body, "route": route, "bytes": size, "seconds": timeout})
    found = _await(client, started, timeout)
    if svg is not None:
        _draw(client, found, svg)
    if as_json:
        print_json(found)
    else:
        _print(found)
    if found["errors"]:
        first = found["errors"][0]
        raise Refusal(
            f"host {first['host']} traces nothing: {first['error']}", code="refused", exit_code=Exit.NO
        )
    if not found["complete"]:
        sys.exit(Exit.NO)


def _await(client: Client, found: Json, timeout: float) -> Json:
    """The trace when all has come, or its time is over; says on standard error what it waits for."""
    began = time.monotonic()
    reported_at = began
    while not found["complete"] and not found["ended"]:
        time.sleep(POLL_S)
        found = client.get(f"/trace/{found['trace']}")
        if time.monotonic() - reported_at >= PROGRESS_S and not found["complete"]:
            reported_at = time.monotonic()
            waited = f"{reported_at - began:.0f} of {timeout:g} s"
            click.echo(f"no answer yet from {_awaited(found)}; waiting, {waited}", err=True)
    return found


def _awaited(found: Json) -> str:
    agents = [f"the agent of host {host}" for host in found["no_answer"]]
    hosts = sorted({lost["host"] for way in found["ways"] for lost in way["missing"]})
    return ", ".join(agents + [f"host {host}" for host in hosts]) or "anybody"


def _print(found: Json) -> None:
    for way in found["ways"]:
        _print_way(way)
    waits = [
        f"host {host}: its agent has not answered, so its part of the way is not known"
        for host in found["no_answer"]
    ]
    for line in waits:
        click.echo(line)
    if any("apart_us" in hop for way in found["ways"] for a in way["arrived"] for hop in a["hops"]):
        click.echo("apart: since it left the switch before, by two clocks; only changes of it mean something")


def _title(way: Json) -> str:
    hosts = ", ".join(map(str, way["to"]))
    parts = [f"host {way['from']} → host{'s' if len(way['to']) > 1 else ''} {hosts}", way["kind"]]
    if "alternative" in way:
        parts.append(f"route {way['alternative']}, {way['share'] / 126:g} % of messages")
    if "tree" in way:
        parts.append(f"tree {way['tree']}")
    return "; ".join(parts)


def _print_way(way: Json) -> None:
    title = _title(way)
    if way["kind"] == "UNICAST":
        for arrival in way["arrived"]:
            print_table(
                title,
                ["hop", "switch", "in", "out", "to", "queue", "stay µs", "apart µs", ""],
                _rows(arrival),
            )
    else:
        click.echo(title)
        for line in draw_tree(way):
            click.echo(line)
    for arrival in way["arrived"]:
        if "other_than_planned" in arrival:
            planned = " → ".join(f"s{switch}:{port}" for switch, port in arrival["other_than_planned"])
            click.echo(f"host {arrival['host']}: the route says {planned}")
    for lost in way["missing"]:
        click.echo(f"{lost['text']} ({way['probes']} probe{'s' if way['probes'] != 1 else ''} sent)")
    click.echo()


def _rows(arrival: Json) -> list[list[object]]:
    return [
        [
            hop["hop"],
            f"s{hop['switch']}",
            hop["ingress_port"],
            hop["egress_port"],
            _place(hop["to"]),
            f"{'≥ ' if hop['queue_at_least'] else ''}{hop['queue']}",
            f"{'≥ ' if hop['stay_at_least'] else ''}{hop['stay_us']}",
            hop.get("apart_us"),
            hop.get("surprise", ""),
        ]
        if "switch" in hop
        else [hop["hop"], "no record", None, None, None, None, None, None, ""]
        for hop in arrival["hops"]
    ]


def _place(to: Json | None) -> str:
    if to is None:
        return "?"
    if "host" in to:
        return f"host {to['host']}"
    return f"s{to['switch']}" + (f" port {to['port']}" if "port" in to else " again")


def draw_tree(way: Json) -> list[str]:
    """The way of a worm that switches copy, as a tree of text; each copy with its queue and time."""
    root: Json = {}
    for arrival in way["arrived"]:
        node = root
        for hop in arrival["hops"]:
            node = node.setdefault(_node(hop), {})
        node[f"host {arrival['host']}" + (", no member" if arrival.get("uninvited") else "")] = {}
    for lost in way["missing"]:
        root[f"host {lost['host']}: nothing came back"] = {}
    return [f"host {way['from']}", *_branches(root, "")]


def _node(hop: Json) -> str:
    if "switch" not in hop:
        return f"hop {hop['hop']}: no record"
    text = f"s{hop['switch']} port {hop['ingress_port']} → port {hop['egress_port']}"
    return f"{text}  queue {hop['queue']}, {hop['stay_us']} µs"


def _branches(node: Json, indent: str) -> Iterator[str]:
    last = len(node) - 1
    for number, (text, below) in enumerate(node.items()):
        yield f"{indent}{'└─ ' if number == last else '├─ '}{text}"
        yield from _branches(below, indent + ("   " if number == last else "│  "))


def _draw(client: Client, found: Json, path: Path) -> None:
    from wormcast import pictures
    from wormcast.cli.files import planned, write_text

    topology = client.get("/topology")
    routes = [
        {
            "src": way["from"],
            "dst": arrival["host"],
            "switches": [hop["switch"] for hop in arrival["hops"] if "switch" in hop],
            "ports": [hop["egress_port"] for hop in arrival["hops"] if "switch" in hop],
        }
        for way in found["ways"]
        for arrival in way["arrived"]
    ]
    write_text(planned(lambda: pictures.svg(topology, routes=routes)), path)
