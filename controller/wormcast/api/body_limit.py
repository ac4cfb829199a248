"""A bound on what a request may bring."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from wormcast.api.failures import TooLarge, answer_refusal

BODY_BYTES_MAX = 1 << 20
"""Largest request body: some thousand groups at once."""
FILE_BYTES_MAX = 32 << 20
"""Largest body that holds a file: the routes of some hundred hosts for /v1/verify."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class BodyLimit:
    """ASGI middleware that answers 413 to bodies that are too large, announced or not."""

    def __init__(
        self, app: Application, bytes_max: int = BODY_BYTES_MAX, by_path: Mapping[str, int] | None = None
    ) -> None:
        self._app = app
        self._bytes_max = bytes_max
        self._by_path = dict(by_path or {})

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        bytes_max = left = self._by_path.get(scope["path"], self._bytes_max)

        async def receive_bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise TooLarge(bytes_max)
            return message

        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and (len(announced) > 20 or int(announced) > bytes_max):
            await answer_refusal(TooLarge(bytes_max))(scope, receive, send)
        else:
            await self._app(scope, receive_bounded, send)
