"""A bound on what a request may bring."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from wormcast.api.failures import TooLarge, answer_too_large

BODY_BYTES_MAX = 32 << 20
"""Largest request body: a routes file of some hundred hosts for /v1/verify."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class BodyLimit:
    """ASGI middleware that answers 413 to bodies beyond `BODY_BYTES_MAX`, announced or not."""

    def __init__(self, app: Application, bytes_max: int = BODY_BYTES_MAX) -> None:
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        left = self._bytes_max

        async def receive_bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise TooLarge(self._bytes_max)
            return message

        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._bytes_max:
            await answer_too_large(TooLarge(self._bytes_max))(scope, receive, send)
        else:
            await self._app(scope, receive_bounded, send)
