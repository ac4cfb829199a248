"""The agent's status as text: no line wider than 80 columns, no value cut."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import click

from wormcast.client import Status

WIDTH = 80
_STREAM = {
    "origin": "origin",
    "sent": "data_sent_bytes",
    "received": "data_received_bytes",
    "delivered": "delivered_bytes",
    "resent": "retransmissions",
}


def print_status(status: Status, problems: Sequence[str] = ()) -> None:
    """Prints what the agent says of itself, and what the controller says of links."""
    lines = [*_lines(status), *(line for problem in problems for line in _wrap(problem, "  "))]
    click.echo("\n".join(lines))


def _lines(status: Status) -> Iterator[str]:
    link, controller = status["link"], status["controller"]
    host = "not registered" if status["host"] is None else f"host {status['host']}"
    yield from _wrap(f"{status['name']}: {host}, wormcast-agent {status['version']}", "")
    state = click.style("up", fg="green") if link["up"] else click.style("down", fg="red")
    yield f"  link: {link['interface']} {state}, {link['mac']}, MTU {link['mtu_bytes']}"
    if controller["connected"]:
        text = f"connected for {controller['since_s']} s"
    else:
        text = f"not connected: {controller['last_error'] or 'not tried yet'}"
    yield from _wrap(f"controller: {controller['address']} {text}", "  ")
    yield f"  plan: {status['plan_epoch'] or 'none'}; up for {status['uptime_s']} s"
    yield from _groups(status["groups"])
    yield from _routes(status["routes"], status["routes_left_out"])
    for failed in status["failed_members"]:
        yield from _wrap(
            f"failed {failed['age_s']} s ago: host {failed['host']} in group {failed['group']}, "
            f"stream of host {failed['origin']}: {failed['reason']}",
            "  ",
        )
    counters = {name: value for name, value in status["counters"].items() if value}
    if counters:
        yield ""
        yield from _table(["counter", "value"], [[name, str(value)] for name, value in counters.items()], 1)


def _groups(groups: Sequence[dict[str, Any]]) -> Iterator[str]:
    if not groups:
        yield "  groups: none"
    for group in groups:
        label = f"{group['group']} ({group['name']})" if group["name"] else str(group["group"])
        members = " ".join(str(member) for member in group["members"])
        yield ""
        yield from _wrap(f"group {label}: {group['scheme']}, members {members}", "")
        if group.get("mtu_bytes") is not None:
            yield f"  frames of {group['mtu_bytes']} bytes at most: a link on its ways carries no longer ones"
        yield from _structures(group["structures"], group["streams"])
        yield f"  {group['senders']} senders and {group['receivers']} receivers open on this host"
        streams = [[str(stream.get(field, "")) for field in _STREAM.values()] for stream in group["streams"]]
        if streams:
            yield from (f"  {line}" for line in _table(list(_STREAM), streams, 0))
        for stream in group["streams"]:
            yield from _behind(stream)


def _behind(stream: dict[str, Any]) -> Iterator[str]:
    """Who keeps a stream back, the one most behind first."""
    for member in stream.get("behind", []):
        below = f" or one of {member['below']} below it" if member["below"] else ""
        text = f"stream of host {stream['origin']}: host {member['host']}{below} is {member['bytes']} bytes behind"
        yield from _wrap(text, "  ")
    if left_out := stream.get("behind_left_out"):
        yield f"  stream of host {stream['origin']}: {left_out} more are behind"


def _structures(structures: Sequence[dict[str, Any]], streams: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Scheme auto: what messages take by their length, how many did, and what each is expected to take."""
    rows = []
    for number, one in enumerate(structures):
        most = "any" if one["bytes_most"] is None else str(one["bytes_most"])
        messages = sum(stream.get(f"messages_by_structure.{number}", 0) for stream in streams)
        first = [one["scheme"], most, str(messages)]
        for expected in one.get("expected", []):
            rows.append([*first, str(expected["bytes"]), f"{expected['microseconds'] / 1000:.2f}"])
            first = [""] * len(first)
    if rows:
        titles = ["messages take", "up to bytes", "so far", "those of bytes", "in about ms"]
        yield from (f"  {line}" for line in _table(titles, rows, 1))


def _routes(routes: Sequence[dict[str, Any]], left_out: int) -> Iterator[str]:
    """Messages by each of the routes to a host, where there is more than one."""
    shown = [route for route in routes if len(route["messages"]) > 1]
    if shown:
        yield ""
        yield "messages by each of the routes to a host"
    for route in shown:
        yield from _wrap(f"host {route['host']}: {' '.join(map(str, route['messages']))}", "  ")
    if left_out:
        yield f"  routes to {left_out} more hosts are used"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    """Columns as wide as they have to be; the first `left` of them to the left."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for number, row in enumerate([titles, *rows]):
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        yield click.style(line, bold=True) if number == 0 else line


def _wrap(text: str, indent: str) -> list[str]:
    """Lines that are cut between words, if the words allow it."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
