"""JSON Schemas (draft 2020-12) of the files and answers of the commands that plan, one
`<kind>.schema.json` each. Fields may be added to files; what a schema names stays.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

SUFFIX = ".schema.json"


def kinds() -> list[str]:
    """Kinds that have a schema, in order."""
    names = (entry.name for entry in resources.files(__name__).iterdir())
    return sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))


def text(kind: str) -> str:
    """The schema of a kind as text. Raises `KeyError` if there is none."""
    if kind not in kinds():
        raise KeyError(kind)
    return (resources.files(__name__) / f"{kind}{SUFFIX}").read_text()


def load(kind: str) -> dict[str, Any]:
    """The schema of a kind. Raises `KeyError` if there is none."""
    schema: dict[str, Any] = json.loads(text(kind))
    return schema
