"""Why a request cannot be served."""

from __future__ import annotations

from collections.abc import Iterable


class RequestError(Exception):
    """A request refused: what was given, and what would do; the message says both.

    `status` is the HTTP status: 404 unknown, 409 in conflict with what is
    there, 422 out of bounds, 507 no room.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        value: object = None,
        bound: str | None = None,
        choices: Iterable[object] | None = None,
    ) -> None:
        self.status = status
        self.value = value
        self.bound = bound
        self.choices = None if choices is None else list(choices)[:CHOICES_MAX]
        self.message = message + _advice(bound, self.choices)
        super().__init__(self.message)


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
