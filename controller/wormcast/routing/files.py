"""Files as text: JSON, with one entry of a list a line, so that they can be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def to_text(file: Mapping[str, Any]) -> str:
    """A topology, routes, group or verify file as text; ends with a newline."""
    fields = ",\n ".join(f"{json.dumps(name)}: {_field(value)}" for name, value in file.items())
    return f"{{{fields}}}\n"


def _field(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(json.dumps(row) for row in value) + "]"
    return json.dumps(value)
