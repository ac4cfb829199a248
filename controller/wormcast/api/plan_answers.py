"""Answers of `/v1/plan`, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from wormcast.api.answers import Answer


class MaskedValue(Answer):
    """A value under a mask."""

    value: int
    mask: int


class Entry(Answer):
    """A table entry, with the names of the P4Info."""

    table: str
    match: Annotated[dict[str, int | MaskedValue], Field(description="value by key")]
    priority: int
    action: str
    parameters: dict[str, int]


class Replica(BaseModel):
    """A copy that a replication group makes."""

    model_config = ConfigDict(extra="forbid")
    port: int
    instance: int
    backups: list[Any]


class Multicast(Answer):
    """A replication group."""

    mgid: int
    ports: list[int]
    replicas: list[Replica]


class Default(Answer):
    """The default action of a table."""

    table: str
    action: str
    parameters: dict[str, int]


class SwitchPlan(Answer):
    """What a switch must hold."""

    id: int
    entries: list[Entry]
    multicast: list[Multicast]
    defaults: list[Default]


class PlannedGroup(Answer):
    """A group of such a plan, and the number of its address."""

    id: int
    class_d: str
    number: int
    members: list[int]


class Plan(Answer):
    """What switches must hold that another controller programs."""

    switches: list[SwitchPlan]
    groups: list[PlannedGroup]
    failures: Annotated[list[str], Field(description="what could not be planned, and why")]
