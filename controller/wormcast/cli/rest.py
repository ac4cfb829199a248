"""The CLI's side of the REST API, on the standard library alone: starting must be quick."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import click

from wormcast.cli.refusal import Refusal
from wormcast.exits import Exit

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

API_ENVIRONMENT = "WORMCAST_API"
API_DEFAULT = "http://127.0.0.1:8080"
TIMEOUT_S = 10.0

STATUS_CODES = {400: "syntax", 404: "not-found", 409: "conflict", 413: "too-large", 507: "no-room"}
"""Codes of refusals, of controllers that give none."""

F = TypeVar("F", bound=Callable[..., Any])


class Refused(Refusal):
    """The controller answered with an error."""

    def __init__(self, detail: dict[str, Any], status: int) -> None:
        known: dict[str, Any] = {
            name: detail.get(name) for name in ("line", "column", "value", "bound", "choices")
        }
        code = detail.get("code") or STATUS_CODES.get(status, "refused")
        super().__init__(str(detail.get("message", "refused")), code=str(code), **known)


class Unavailable(Refusal):
    """No controller answers."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="unavailable", exit_code=Exit.UNAVAILABLE)


class Client:
    """Requests to one controller."""

    def __init__(self, address: str, *, timeout_s: float | None = TIMEOUT_S) -> None:
        """`address` is `http://host:port`, `host:port` or `unix:/path`; `timeout_s` None: an answer may take any time."""
        self._address = address
        self._timeout_s = timeout_s

    def get(self, path: str, **query: object) -> Any:
        """The answer as JSON. Raises `Refused`, `Unavailable`."""
        return self._request("GET", path, query)

    def send(self, method: str, path: str, body: object = None) -> Any:
        """POST, PUT or DELETE. Raises `Refused`, `Unavailable`."""
        return self._request(method, path, {}, body)

    def follow(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        """Server-sent events, for ever. Raises `Refused`, `Unavailable`."""
        from wormcast.cli.connecting import FAULTS

        connection, response = self._open("GET", path, query, None, None)
        try:
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        except (ValueError, RecursionError) as error:
            raise self._stranger() from error
        except FAULTS as error:
            raise self._unavailable(error) from error
        finally:
            connection.close()
        raise Unavailable(f"the controller at {self._address} closed the stream")

    def _request(self, method: str, path: str, query: dict[str, object], body: object = None) -> Any:
        from wormcast.cli.connecting import FAULTS

        connection, response = self._open(method, path, query, body, self._timeout_s)
        try:
            text = response.read()
            return json.loads(text) if text else None
        except FAULTS as error:
            raise self._unavailable(error) from error
        except (ValueError, RecursionError) as error:
            raise self._stranger() from error
        finally:
            connection.close()

    def _open(
        self, method: str, path: str, query: dict[str, object], body: object, timeout_s: float | None
    ) -> tuple[HTTPConnection, HTTPResponse]:
        from wormcast.cli.connecting import FAULTS, connection_to

        wanted = {name: value for name, value in query.items() if value is not None}
        try:
            target = f"/v1{path}" + (f"?{urlencode(wanted)}" if wanted else "")
        except UnicodeEncodeError as error:
            raise Refusal("an option is not UTF-8 text", code="syntax") from error
        data = None if body is None else json.dumps(body).encode()
        connection = connection_to(self._address, timeout_s)
        if connection is None:
            raise click.BadParameter(
                f"{self._address!r} is not an address; write http://host:port or unix:/path",
                param_hint="--api",
            )
        try:
            connection.request(method, target, data, {"Content-Type": "application/json"} if data else {})
            response = connection.getresponse()
        except FAULTS as error:
            raise self._unavailable(error) from error
        if response.status >= 400:
            raise Refused(_detail(response.read(), response.status), response.status)
        return connection, response

    def _stranger(self) -> Unavailable:
        return Unavailable(f"{self._address} does not answer like a controller; {self._hint()}")

    def _unavailable(self, error: Exception) -> Unavailable:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Unavailable(f"no controller at {self._address}: {reason}; {self._hint()}")

    def _hint(self) -> str:
        from wormcast.cli import nearby

        text = f"start one with 'wormcast controller run', or say where it is with --api or {API_ENVIRONMENT}"
        return text + (nearby.hint(API_ENVIRONMENT) if self._address == API_DEFAULT else "")


def api_address(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Where the controller is: as given, as the environment says, or on this machine."""
    return environment.get(API_ENVIRONMENT) or API_DEFAULT if given is None else given


def segment(key: str) -> str:
    """A name or id as one part of a path."""
    if not key:
        raise Refusal("a name or id is empty; give one", code="not-found", value=key)
    try:
        return quote(key, safe="")
    except UnicodeEncodeError as error:
        raise Refusal(f"the name {key!r} is not UTF-8 text", code="syntax") from error


def _detail(text: bytes, status: int) -> dict[str, Any]:
    try:
        detail = json.loads(text)["error"]
        return detail if isinstance(detail, dict) else {"message": str(detail)}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {"message": f"the controller answered with status {status} and no explanation"}


def api_options(command: F) -> F:
    """Adds --api and --json."""
    command = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")(command)
    return click.option(
        "--api",
        default=lambda: api_address(None),
        show_default=f"${API_ENVIRONMENT} or {API_DEFAULT}",
        help="Controller, as http://host:port or unix:/path.",
    )(command)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")


def print_table(
    title: str, columns: list[str], rows: list[list[object]], *, folded: Collection[str] = ()
) -> None:
    """A table on standard output; plain columns where that is no terminal. `folded`: columns that may take several
    lines on a narrow terminal, of all columns where none is named."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=bool(folded) and column not in folded)
    for row in rows:
        table.add_row(*["-" if cell is None else str(cell) for cell in row])
    Console(soft_wrap=not sys.stdout.isatty(), highlight=False).print(table)
