"""Answers of `/v1/transfers`, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wormcast.api.answers import Answer


class Transfer(Answer):
    """A file that a host sends, or has sent, to a group."""

    number: int
    state: Annotated[
        Literal["under_way", "stable", "failed", "cancelled", "stream_ended", "agent_gone", "unknown"],
        Field(
            description="stable: what became of it at each member is known, and one has it at least; failed: none has it; "
            "cancelled: before its end, so nobody has it; stream_ended: the group was removed, or the origin left it; "
            "agent_gone: the agent has started anew; unknown: the agent has not reported how it ended"
        ),
    ]
    origin: int
    group: int
    group_name: str
    name: Annotated[str, Field(description="of the file")]
    bytes: Annotated[int | None, Field(description="of the file; null: not known")]
    seconds: Annotated[float, Field(description="until it ended; under way: until the last report")]
    delivered: Annotated[int, Field(description="members that have confirmed it")]
    failed: Annotated[int, Field(description="members that will not have it")]
    left_out: Annotated[int, Field(description="members that took no part when it began")]
    unknown: Annotated[int, Field(description="members of which nobody knows whether they have it")]
    reason: Annotated[str | None, Field(description="why it did not become stable")]
    message: Annotated[int, Field(description="of this origin to this group, from 0")]
    scheme: str
    began: Annotated[str, Field(description="UTC, by the clock of the origin")]
    retransmissions: Annotated[
        int | None,
        Field(description="packets of the stream sent again meanwhile; files that overlap share them"),
    ]
    agent_connected: Annotated[
        bool | None, Field(description="of one under way: whether there is word from the agent of the origin")
    ]


class Transfers(Answer):
    """The kept transfers."""

    transfers: list[Transfer]
    not_recorded: Annotated[
        int, Field(description="files that have ended since the controller started, and have no record")
    ]


class TransferMember(Answer):
    """What became of a file at a member."""

    host: int
    state: Literal["delivered", "failed", "left_out", "unknown"]
    reason: str | None


class TransferWithMembers(Transfer):
    """A transfer and what became of it at each member."""

    members: list[TransferMember]
