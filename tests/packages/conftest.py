"""Packages that are made once, and clean machines for them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import clean
import pytest


@pytest.fixture(scope="session")
def dist() -> Path:
    if (given := os.environ.get("WORMCAST_DIST")) is not None:
        return Path(given).resolve()
    subprocess.run([sys.executable, clean.ROOT / "packaging" / "package.py"], check=True, cwd=clean.ROOT)
    return clean.ROOT / "dist"


@pytest.fixture
def machine(dist: Path) -> Iterator[clean.Machine]:
    """A clean machine that sees the packages, and the Mininet script, in /dist and /script.py."""
    # Not below pytest's own directory, which would be kept: these are large.
    with tempfile.TemporaryDirectory(prefix="wormcast-clean-", dir=clean.KEPT.parent) as directory:
        yield clean.Machine(Path(directory), {"/dist": dist})
