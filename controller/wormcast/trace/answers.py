"""Answers of `/v1/trace`, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wormcast.api.answers import Answer


class Place(Answer):
    """What is behind a port."""

    host: int | None = None
    switch: int | None = None
    port: int | None = None


class Hop(Answer):
    """A switch on the way; without a record `hop` alone."""

    hop: int
    switch: int | None = None
    ingress_port: int | None = None
    egress_port: int | None = None
    stay_us: int | None = None
    queue: int | None = None
    left_us: int | None = None
    stay_at_least: bool | None = None
    queue_at_least: bool | None = None
    to: Place | None = None
    apart_us: int | None = None
    surprise: str | None = None


class Arrival(Answer):
    """A probe that came to a host."""

    host: int
    attempt: int
    switches: int
    room: int
    count: int
    marked: int | bool
    hops: list[Hop]
    uninvited: bool | None = None
    other_than_planned: list[list[int]] | None = None


class Missing(Answer):
    """A host from which nothing came."""

    host: int
    text: str


class Way(Answer):
    """A way of worms."""

    from_: Annotated[int, Field(alias="from")]
    number: int
    kind: str
    route: str
    to: list[int]
    alternative: int | None = None
    share: int | None = None
    tree: int | None = None
    probes: int
    arrived: list[Arrival]
    missing: list[Missing]


class HostError(Answer):
    """Why an agent traces nothing."""

    host: int
    error: str


class Trace(Answer):
    """A trace: what has come so far."""

    trace: int
    from_: Annotated[int | None, Field(alias="from")] = None
    to: int | None = None
    group: int | None = None
    scheme: str | None = None
    members: list[int] | None = None
    complete: bool
    ended: bool
    clocks: str
    no_answer: list[int]
    errors: list[HostError]
    ways: list[Way]
    arrivals_left_out: int | None = None
