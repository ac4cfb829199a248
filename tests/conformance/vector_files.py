"""The vector files of wire/vectors."""

import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).resolve().parents[2] / "wire" / "vectors"


def load_vectors(name: str) -> dict[str, Any]:
    """A file by name, e.g. `worm.json`."""
    document: dict[str, Any] = json.loads((VECTORS / name).read_text())
    return document
