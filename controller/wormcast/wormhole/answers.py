"""Answers of `/v1/switching`, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wormcast.api.answers import Answer


class Switching(Answer):
    """How switches pass worms on."""

    mode: Literal["packet", "wormhole"]
    scheme: Literal["plain", "flush", "interrupt"] | None
    train_frames: Annotated[int, Field(description="how long trains of agents may be; 1: none")]
    tree_train_frames: Annotated[int, Field(description="the same of TREE worms")]
    settled: Annotated[
        bool, Field(description="all is as asked for: trains come after wormhole mode and go before it")
    ]
    warnings: Annotated[list[str], Field(description="what worms may run into")]
