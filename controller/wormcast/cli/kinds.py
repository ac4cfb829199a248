"""Which kind of file of ours a JSON object is, so that a wrong one is called by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Fields that together only such a file has; the first kind that fits counts.
_MARKS: dict[str, tuple[str, ...]] = {
    "schema": ("$schema",),
    "topology": ("switches", "links"),
    "switches": ("switches",),
    "verify": ("deadlock_free",),
    "change": ("steps", "summary"),
    "balance": ("plain", "chosen"),
    "route summary": ("baseline", "pairs"),
    "routes": ("routes", "algorithm"),
    "group": ("scheme", "members"),
    "costs": ("set", "packet_send_ns"),
    "tables": ("tables",),
}
_MADE_BY = {
    "topology": "wormcast topo make KIND",
    "routes": "wormcast route --topology FILE --json",
    "group": "wormcast group plan --topology FILE --json",
    "verify": "wormcast verify --topology FILE --json",
    "costs": "wormcast costs --json",
    "tables": "wormcast verify --p4runtime SWITCHES --save-tables FILE",
}


def kind_of(value: Mapping[str, Any]) -> str | None:
    """The kind of file, or None if it is none that is known."""
    fits = (kind for kind, marks in _MARKS.items() if all(mark in value for mark in marks))
    return next(fits, None)


def mismatch(value: object, wanted: str) -> str | None:
    """What is wrong with a file of which a kind is wanted; None if it is not another kind."""
    kind = kind_of(value) if isinstance(value, Mapping) else None
    if kind is None or kind == wanted:
        return None
    made_by = f", which '{_MADE_BY[wanted]}' makes" if wanted in _MADE_BY else ""
    return f"it is a {kind} file; wanted a {wanted} file{made_by}"
