"""Why a request cannot be served."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest

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
        known = None if choices is None else list(choices)
        self.choices = known if known is None or len(known) <= CHOICES_MAX else _nearest(value, known)
        self.message = message + _advice(bound, self.choices, 0 if known is None else len(known))
        super().__init__(self.message)

    def at(self, place: str) -> RequestError:
        """The same about one part of a request."""
        self.message = f"{place}: {self.message}"
        return self


def _advice(bound: str | None, choices: list[object] | None, known: int) -> str:
    """What would do, as the end of a sentence."""
    if choices is not None:
        names = ", ".join(map(str, choices))
        if len(choices) < known:
            return f"; nearest of {known} are {names}"
        return f"; there are {names}" if choices else "; there are none"
    return f"; possible: {bound}" if bound is not None else ""


def _nearest(value: object, choices: list[object]) -> list[object]:
    """The choices that are most like what was given: numbers near it, names that begin like it."""
    number = as_number(value) if isinstance(value, int | str) else None
    wanted = str(value)

    def distance(choice: object) -> tuple[int, int]:
        if number is not None and isinstance(choice, int):
            return 0, abs(choice - number)
        name = str(choice)
        same = next((n for n, (a, b) in enumerate(zip(wanted, name, strict=False)) if a != b), len(name))
        return -min(same, len(wanted)), abs(len(name) - len(wanted))

    return nsmallest(NEAREST_MAX, choices, key=distance)


CHOICES_MAX = 32
"""Choices named in an error; of more only the nearest are."""
NEAREST_MAX = 8


def unknown(what: str, value: object, choices: Iterable[object]) -> RequestError:
    """404 with the choices there are."""
    return RequestError(404, f"there is no {what} {value!r}", value=value, choices=choices)


def as_number(key: int | str) -> int | None:
    """The number of a host or group that is named by one; None for a name. Names have letters."""
    return key if isinstance(key, int) else read_decimal(key)
