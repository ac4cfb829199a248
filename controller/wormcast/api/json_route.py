"""Routes whose bodies are JSON in UTF-8, said to be so, and read strictly."""

from __future__ import annotations

import email.message
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.datastructures import Headers
from fastapi.responses import Response
from fastapi.routing import APIRoute

from wormcast.api.failures import Refusal, describe, refuse_json
from wormcast.strict_json import JsonError, read_json

CONTENT_TYPE = "application/json"


class JsonRoute(APIRoute):
    """A route that refuses bodies of another kind, and text that is not quite JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def handle_json(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return handle_json


class _JsonRequest(Request):
    async def body(self) -> bytes:
        raw = await super().body()
        if raw:
            check_kind(self.headers)
        return raw

    async def json(self) -> Any:
        try:
            return read_json(await self.body())
        except JsonError as error:
            raise refuse_json(error) from None


def check_kind(headers: Headers) -> None:
    """Raises `Refusal` unless the body is said to be JSON in UTF-8 and not packed."""
    given = headers.get("content-type", "")
    kind = email.message.Message()
    kind["content-type"] = given
    if not given or (
        kind.get_content_type() != CONTENT_TYPE and not kind.get_content_type().endswith("+json")
    ):
        what = f"the body has the content type {given!r}" if given else "the body has no content type"
        raise _unsupported(
            f"{what}; give the header 'content-type: {CONTENT_TYPE}' (curl: -H)", given, CONTENT_TYPE
        )
    charset = str(kind.get_param("charset", "utf-8"))
    if charset.lower() not in ("utf-8", "utf8", "us-ascii"):
        raise _unsupported(f"the body is in {charset!r}; possible: UTF-8", charset, "utf-8")
    encoding = headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise _unsupported(
            f"the body is compressed with {encoding!r}; possible: no compression", encoding, "identity"
        )


def _unsupported(message: str, value: str, bound: str) -> Refusal:
    return Refusal(415, describe(message, value or None, bound, code="unsupported"))
