"""Every failure answers {"error": {"message", "value", "bound" or "choices"}}."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from wormcast.control.errors import RequestError
from wormcast.plan import RoutingError
from wormcast.store.database import StoreError


def describe(
    message: str, value: object = None, bound: str | None = None, choices: list[Any] | None = None
) -> dict[str, Any]:
    """The body of an error answer."""
    detail: dict[str, Any] = {"message": message}
    if value is not None:
        detail["value"] = value
    if bound is not None:
        detail["bound"] = bound
    if choices is not None:
        detail["choices"] = choices
    return {"error": detail}


class TooLarge(HTTPException):
    """A body beyond the bound; an HTTPException, because FastAPI takes others for broken JSON."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(413)
        self.bytes_max = bytes_max


def answer_too_large(error: TooLarge) -> JSONResponse:
    """The answer to a body that is too large."""
    body = describe("the body is too large", bound=f"{error.bytes_max} bytes")
    return JSONResponse(body, 413, {"connection": "close"})


def install(app: FastAPI) -> None:
    """Makes all failures of the app answer alike."""

    @app.exception_handler(RequestError)
    async def _refused(_: Request, error: RequestError) -> JSONResponse:
        return JSONResponse(describe(error.message, error.value, error.bound, error.choices), error.status)

    @app.exception_handler(StoreError)
    async def _unkept(_: Request, error: StoreError) -> JSONResponse:
        return JSONResponse(describe(f"nothing was changed: {error}"), 507)

    @app.exception_handler(RoutingError)
    async def _unplannable(_: Request, error: RoutingError) -> JSONResponse:
        return JSONResponse(describe(str(error)), 422)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return JSONResponse(describe("the body is not JSON", bound="a JSON object"), 400)
        place = ".".join(str(part) for part in first["loc"] if part not in _BRANCHES)
        return JSONResponse(describe(f"{place}: {_sentence(first)}", _plain(first.get("input"))), 422)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error, TooLarge):
            return answer_too_large(error)
        if error.status_code == 404:
            paths = sorted(app.openapi()["paths"])
            return JSONResponse(describe("there is no such resource", request.url.path, choices=paths), 404)
        if error.status_code == 405:
            return JSONResponse(
                describe(f"{request.url.path} does not take this method", request.method), 405, error.headers
            )
        return JSONResponse(describe(str(error.detail)), error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def _bug(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse(describe(f"the controller has a bug: {type(error).__name__}"), 500)


_BRANCHES = ("int", "str", "one", "several")
"""What pydantic puts into a place for the alternative it tried."""


def _sentence(error: dict[str, Any]) -> str:
    if error["loc"][-1] == "int":
        return "neither an integer nor a text"
    match error["type"]:
        case "missing":
            return "missing"
        case "extra_forbidden":
            return "unknown field"
        case _:
            message = str(error["msg"])
            return message[0].lower() + message[1:]


def _plain(value: object) -> object:
    """The value as JSON, shortened; a whole body is not repeated."""
    if isinstance(value, dict):
        return None
    try:
        return value if len(json.dumps(value)) <= 200 else f"{json.dumps(value)[:200]}…"
    except (TypeError, ValueError):
        return str(value)[:200]
