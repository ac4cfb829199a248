"""JSON as RFC 8259 has it, within bounds: what Python's parser lets through besides is refused by name."""

from __future__ import annotations

import json
import math
import re
from typing import Any

DEPTH_MAX = 64
"""Arrays and objects within each other."""
DIGITS_MAX = 32
"""Digits of an integer; every id, size and epoch has fewer."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonError(ValueError):
    """Text that is not taken. `code` is as in the refusal file; `line` and `column` count from 1."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        value: object = None,
        bound: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.value, self.bound = code, message, value, bound
        self.line, self.column = line, column


def read_json(raw: bytes) -> Any:
    """The value of a text in UTF-8. Raises `JsonError`."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise JsonError("syntax", f"byte {error.start} of the body is not UTF-8", bound="UTF-8") from None
    try:
        value = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
            parse_int=_parse_int,
            object_pairs_hook=_parse_object,
        )
    except json.JSONDecodeError as error:
        # Python counts newlines only; what it says of the place is what an editor shows.
        raise JsonError(
            "syntax",
            f"the body is not JSON: line {error.lineno}, column {error.colno}: {error.msg}",
            bound="a JSON object",
            line=error.lineno,
            column=error.colno,
        ) from None
    except RecursionError:
        raise _too_deep() from None
    # No text with few brackets is deep, and most have few.
    if text.count("[") + text.count("{") > DEPTH_MAX:
        _check_depth(value)
    if _SURROGATE.search(text):
        _check_surrogates(value)
    return value


def _refuse_constant(name: str) -> Any:
    raise JsonError("syntax", f"{name} is not JSON", value=name, bound="finite numbers")


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise JsonError("outside-bounds", f"{text[:40]} is too large a number", bound="-1.7e308 to 1.7e308")
    return value


def _parse_int(text: str) -> int:
    digits = len(text.lstrip("-"))
    if digits > DIGITS_MAX:
        raise JsonError(
            "outside-bounds", f"a number of {digits} digits: {text[:20]}…", bound=f"{DIGITS_MAX} digits"
        )
    return int(text)


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise JsonError(
            "duplicate-field", f"field {twice[:40]!r} occurs twice", value=twice, bound="each field once"
        )
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        parts = (part for part in level if isinstance(part, dict | list))
        level = [
            inner
            for part in parts
            for inner in (part.values() if isinstance(part, dict) else part)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> JsonError:
    return JsonError("outside-bounds", "the body is nested too deeply", bound=f"{DEPTH_MAX} levels")


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        number = ord(error.object[error.start])
        raise JsonError(
            "syntax", f"\\u{number:04x} is half a character", value=f"\\u{number:04x}", bound="Unicode text"
        ) from None
