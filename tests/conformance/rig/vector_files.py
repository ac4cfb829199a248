"""The vector files of wire/vectors."""

import json
from typing import Any

from rig.targets import REPOSITORY


def load_vectors(name: str) -> dict[str, Any]:
    """A file by name, e.g. `worm.json`."""
    document: dict[str, Any] = json.loads((REPOSITORY / "wire" / "vectors" / name).read_text())
    return document
