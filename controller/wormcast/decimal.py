"""Whole numbers as people and files write them."""

from __future__ import annotations

DIGITS_MAX = 18
"""So many digits always fit 64 bits with a sign."""


def read_decimal(text: str | bytes) -> int | None:
    """The number that ASCII digits alone stand for; None for anything else, also for too many digits.

    `str.isdigit()` says yes to more than `int()` takes ("²"), and to digits of other scripts.
    """
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    if not 0 < len(text) <= DIGITS_MAX or not text.isascii() or not text.isdigit():
        return None
    return int(text)
