"""Where the programs are that a fabric is made of."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
"""Beside this Python: where an installation puts them."""
SWITCHES = {"wormcast": "wormcast-switch", "bmv2": "simple_switch_grpc"}
AGENT = "wormcast-agent"


class NotInstalled(FileNotFoundError):
    """A program is neither beside this Python nor on the PATH."""


def find(program: str) -> str:
    """Path of a program. Raises `NotInstalled`."""
    beside = BIN / program
    found = str(beside) if beside.exists() else shutil.which(program)
    if found is None:
        ours = program.startswith("wormcast")
        hint = "install the wormcast package, or run `make build`" if ours else f"put {program} on the PATH"
        raise NotInstalled(f"{program} is not installed; {hint}")
    return found


def find_switch(kind: str) -> str:
    """Path of the binary of switch `kind` ("wormcast" or "bmv2"). Raises `NotInstalled`, ValueError."""
    if kind not in SWITCHES:
        raise ValueError(f"switch {kind!r} is not one of: {', '.join(SWITCHES)}")
    return find(SWITCHES[kind])
