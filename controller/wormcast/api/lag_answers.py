"""Answers of `/v1/groups/{group}/lag`, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wormcast.api.answers import Answer


class Known(Answer):
    """By whom it is known how far a member is."""

    way: Annotated[
        Literal["switch", "host", "itself"],
        Field(
            description="switch: the least of the members behind a port, as the switch has gathered; host: what it "
            "acknowledged to its parent; itself: its agent says so, nobody has its ACK"
        ),
    ]
    switch: int | None = None
    port: int | None = None
    host: Annotated[int | None, Field(description="way host: the parent")] = None
    members: Annotated[int | None, Field(description="how many members the numbers stand for")] = None


class MemberLag(Answer):
    """How far a member is. Numbers are packets from the first of the stream; null where nobody knows. Of several ACKs the
    one that says most counts."""

    host: int
    acknowledged: Annotated[int | None, Field(description="it has these, as far as is known")]
    stable: Annotated[int | None, Field(description="it and all members below it have these")]
    behind: Annotated[int | None, Field(description="sent, and not acknowledged by it")]
    unstable: Annotated[int | None, Field(description="sent, and not stable below it")]
    by: Annotated[Known | None, Field(description="null: nobody knows anything of it")]
    why: Annotated[str | None, Field(description="why nothing is known of it")] = None
    given_up: Annotated[bool | None, Field(description="true: its parent has given it up")] = None


class BranchLag(Answer):
    """How far all members behind a port of a switch are, as the switch has gathered."""

    switch: int
    port: int
    members: list[int]
    acknowledged: int | None
    stable: int | None
    why: Annotated[
        str | None,
        Field(
            description="why it is not known: no answer after four requests, or nothing acknowledged in this life of the "
            "stream"
        ),
    ] = None


class Lag(Answer):
    """How far each member is with what an origin sends, in packets from the first of the stream."""

    group: int
    origin: int
    sent: int
    stable: Annotated[int, Field(description="all members have confirmed these")]
    members: Annotated[list[MemberLag], Field(description="those most behind first")]
    no_answer: Annotated[list[int], Field(description="hosts whose agents did not answer")]
    branches: Annotated[list[BranchLag], Field(description="ports of switches that were asked")]
