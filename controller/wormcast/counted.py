"""Numbers of things, as people say them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 host`, `2 hosts`, `2 switches`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}es" if noun.endswith(("ch", "sh", "s")) else f"{number} {noun}s"
