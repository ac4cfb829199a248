"""The vector files of protocol/vectors."""

import json
from typing import Any

from rig.targets import REPOSITORY


def load_vectors(name: str) -> dict[str, Any]:
    """A file by name, e.g. `worm.json`."""
    document: dict[str, Any] = json.loads((REPOSITORY / "protocol" / "vectors" / name).read_text())
    return document
