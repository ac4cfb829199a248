"""Why a request cannot be served."""

from __future__ import annotations

from collections.abc import Iterable

from wormcast.decimal import read_decimal


class RequestError(Exception):
    """A request refused: what was given, and what would do; the message says both.

    `status` is the HTTP status: 404 unknown, 409 in conflict with what is
    there, 422 out of bounds, 503 too much to do (`retry_after_s` says when to ask
    again), 504 not done in time, 507 no room. `code` is a word for programs, where
    the status does not say enough.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        value: object = None,
        bound: str | None = None,
        choices: Iterable[object] | None = None,
        code: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s
        self.line: int | None = None
        self.column: int | None = None
        self.value = value
        self.bound = bound
        self.choices = None if choices is None else list(choices)[:CHOICES_MAX]
        self.message = message + _advice(bound, self.choices)
        super().__init__(self.message)

    def at(self, place: str) -> RequestError:
        """The same about one part of a request."""
        self.message = f"{place}: {self.message}"
        return self


def _advice(bound: str | None, choices: list[object] | None) -> str:
    """What would do, as the end of a sentence."""
    if choices is not None:
        return f"; there are {', '.join(map(str, choices))}" if choices else "; there are none"
    return f"; possible: {bound}" if bound is not None else ""


CHOICES_MAX = 32
"""Choices named in an error; of more only the first are."""


def unknown(what: str, value: object, choices: Iterable[object]) -> RequestError:
    """404 with the choices there are."""
    return RequestError(404, f"there is no {what} {value!r}", value=value, choices=choices)


def as_number(key: int | str) -> int | None:
    """The number of a host or group that is named by one; None for a name. Names have letters."""
    return key if isinstance(key, int) else read_decimal(key)
