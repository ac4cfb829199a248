"""Answers of `/v1/guard`, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wormcast.api.answers import Answer


class Rate(Answer):
    """How fast a host may send."""

    host: int
    bps: int


class PortLeads(Answer):
    """What a port leads to, as the operator says."""

    switch: int
    port: int
    leads_to: Annotated[Literal["link", "host"] | None, Field(description="null: what is found there")]


class Guard(Answer):
    """What is asked of the guard."""

    on: bool
    closed: list[int]
    rates: list[Rate]
    ports: list[PortLeads] = Field(
        default=[], description="absent: the operator has said of no port what it leads to"
    )
