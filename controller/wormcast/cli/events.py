"""`wormcast events`."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from wormcast.cli.rest import Client, api_options


@click.command()
@click.option(
    "--after",
    type=click.IntRange(min=0),
    help="First print the kept events with a number above this; 0 prints all of them.",
)
@click.option("--follow/--no-follow", default=True, help="Wait for new events, or end after the kept ones.")
@api_options
def events(after: int | None, follow: bool, api: str, as_json: bool) -> None:
    """Print what happens in the fabric, as it happens. With --json each line is an object."""
    client = Client(api)
    if follow:
        source = client.follow("/events", after=after)
    else:
        source = iter(client.get("/events", after=after, follow="false")["events"])
    for event in source:
        click.echo(json.dumps(event) if as_json else _line(event))


def _line(event: dict[str, Any]) -> str:
    at = (
        time.strftime("%H:%M:%S", time.localtime(event["time_s"]))
        + f".{round(event['time_s'] % 1 * 1000):03d}"
    )
    rest = " ".join(f"{k}={v}" for k, v in event.items() if k not in ("number", "time_s", "kind"))
    return f"{at} {event['kind']} {rest}"
