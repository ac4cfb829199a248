"""Every failure answers with the refusal file (routing/schemas/refusal.schema.json):
{"error": {"code", "message", "line", "column", and "value", "bound" or "choices"}}."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from wormcast.reconcile.errors import RequestError
from wormcast.routing import RoutingError
from wormcast.store.database import StoreError
from wormcast.strict_json import JsonError

MESSAGE_CHARACTERS_MAX = 2000
"""Of a longer message the middle is left out: what was given may be long, what would do is at the end."""
VALUE_CHARACTERS_MAX = 200

_CODES = {
    400: "syntax",
    403: "forbidden",
    404: "not-found",
    405: "unknown-method",
    408: "timeout",
    409: "conflict",
    413: "too-large",
    415: "unsupported",
    422: "outside-bounds",
    503: "busy",
    504: "timeout",
    507: "no-room",
}


def describe(
    message: str,
    value: object = None,
    bound: str | None = None,
    choices: list[Any] | None = None,
    *,
    code: str = "refused",
    line: int | None = None,
    column: int | None = None,
) -> dict[str, Any]:
    """The body of an error answer."""
    detail: dict[str, Any] = {"code": code, "message": _shorten(message), "line": line, "column": column}
    if value is not None and (plain := _plain(value)) is not None:
        detail["value"] = plain
    if bound is not None:
        detail["bound"] = bound
    if choices is not None:
        detail["choices"] = choices
    return {"error": detail}


def refuse(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    """An error answer. Whatever it repeats of the request becomes text that any client can read."""
    content = json.dumps(body, ensure_ascii=False).encode(errors="replace")
    return Response(content, status, headers, media_type="application/json")


class Refusal(HTTPException):
    """A body that is refused; an HTTPException, because FastAPI takes others for broken JSON."""

    def __init__(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        super().__init__(status, headers=headers)
        self.body = body


class TooLarge(Refusal):
    """A body beyond the bound."""

    def __init__(self, bytes_max: int) -> None:
        body = describe("the body is too large", bound=f"{bytes_max} bytes", code=_CODES[413])
        super().__init__(413, body, {"connection": "close"})


def refuse_json(error: JsonError) -> Refusal:
    """The refusal of a text that is not JSON."""
    message = error.message if error.bound is None else f"{error.message}; possible: {error.bound}"
    return Refusal(
        400,
        describe(message, error.value, error.bound, code=error.code, line=error.line, column=error.column),
    )


def answer_refusal(error: Refusal) -> Response:
    """The answer that a refusal stands for."""
    return refuse(error.status_code, error.body, dict(error.headers or {}))


def answer_request_error(error: RequestError) -> Response:
    """The answer to a request that cannot be served."""
    code = error.code or _CODES.get(error.status, "refused")
    headers = None if error.retry_after_s is None else {"retry-after": str(error.retry_after_s)}
    body = describe(
        error.message,
        error.value,
        error.bound,
        error.choices,
        code=code,
        line=error.line,
        column=error.column,
    )
    return refuse(error.status, body, headers)


def install(app: FastAPI) -> None:
    """Makes all failures of the app answer alike."""

    @app.exception_handler(RequestError)
    async def _refused(_: Request, error: RequestError) -> Response:
        return answer_request_error(error)

    @app.exception_handler(StoreError)
    async def _unkept(_: Request, error: StoreError) -> Response:
        return refuse(507, describe(f"nothing was changed: {error}", code=_CODES[507]))

    @app.exception_handler(RoutingError)
    async def _unplannable(_: Request, error: RoutingError) -> Response:
        return refuse(422, describe(str(error), code=getattr(error, "code", "refused")))

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in _BRANCHES)
        code = _FIELD_CODES.get(first["type"], "wrong-type")
        return refuse(422, describe(f"{place}: {_sentence(first)}", first.get("input"), code=code))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        if isinstance(error, Refusal):
            return answer_refusal(error)
        code = _CODES.get(error.status_code, "refused")
        headers = dict(error.headers or {})
        if error.status_code == 404:
            paths = sorted(app.openapi()["paths"])
            body = describe("there is no such resource", request.url.path, choices=paths, code=code)
        elif error.status_code == 405:
            body = describe(f"{request.url.path} does not take this method", request.method, code=code)
        else:
            body = describe(str(error.detail), code=code)
        return refuse(error.status_code, body, headers)

    @app.exception_handler(Exception)
    async def _bug(_: Request, error: Exception) -> Response:
        return refuse(500, describe(f"the controller has a bug: {type(error).__name__}", code="bug"))


_BRANCHES = ("int", "str", "one", "several", "list")
"""What pydantic puts into a place for the alternative it tried."""

_FIELD_CODES = {
    "missing": "missing-field",
    "extra_forbidden": "unknown-field",
    "greater_than_equal": "outside-bounds",
    "less_than_equal": "outside-bounds",
    "too_long": "outside-bounds",
    "int_parsing_size": "outside-bounds",
}


def _sentence(error: dict[str, Any]) -> str:
    if error["loc"][-1] == "int":
        return "neither an integer nor text"
    match error["type"]:
        case "missing":
            return "missing"
        case "extra_forbidden":
            return "unknown field"
        case _:
            message = str(error["msg"])
            return message[0].lower() + message[1:]


def _shorten(message: str) -> str:
    if len(message) <= MESSAGE_CHARACTERS_MAX:
        return message
    half = MESSAGE_CHARACTERS_MAX // 2
    return f"{message[:half]} … {message[-half:]}"


def _plain(value: object) -> object:
    """The value as JSON, shortened; a whole body is not repeated."""
    if isinstance(value, dict):
        return None
    if isinstance(value, str):
        return value if len(value) <= VALUE_CHARACTERS_MAX else f"{value[:VALUE_CHARACTERS_MAX]}…"
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)[:VALUE_CHARACTERS_MAX]
    return value if len(text) <= VALUE_CHARACTERS_MAX else f"{text[:VALUE_CHARACTERS_MAX]}…"
