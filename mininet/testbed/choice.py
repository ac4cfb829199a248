"""Which of the running fabrics is meant, and what it says of itself."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wormcast.mininet import sandbox

FABRIC = "WORMCAST_FABRIC"
"""Variable of the environment: the name of the fabric that commands without --name and --out mean."""
STATE_FILE = "fabric.json"
NAMED_MAX = 16


class NotFound(ValueError):
    """No such fabric or host; the text lists those there are."""


def find(name: str | None, out: Path | None) -> sandbox.Running:
    """The fabric that the options mean; says so where it was one of several. Raises `NotFound`."""
    if os.geteuid() != 0:
        raise NotFound(f"user id {os.geteuid()} may not enter a fabric; run as root")
    running = sandbox.running()
    meant = choose(running, name, out, os.environ)
    if len(meant) > 1:
        names = [one.name for one in meant]
        others = [
            f"--name {one.name}" if names.count(one.name) == 1 else f"--out {one.directory}"
            for one in meant[:-1]
        ]
        print(
            f"wormcast: {len(meant)} fabrics are running; this goes to {meant[-1].name!r}, the newest. "
            f"Others: {', '.join(others)}, or {FABRIC}=NAME",
            file=sys.stderr,
        )
    return meant[-1]


def choose(
    running: Sequence[sandbox.Running], name: str | None, out: Path | None, environment: Mapping[str, str]
) -> list[sandbox.Running]:
    """The fabrics that are meant: by name, by directory, by `FABRIC`, or all. Those on their way up come first, then
    the newest last. Raises `NotFound`."""
    if not running:
        raise NotFound("no fabric runs; start one with `wormcast up`")
    if name is not None and out is not None:
        raise NotFound("--name and --out both name the fabric; give one of them")
    by_variable = name is None and out is None and environment.get(FABRIC)
    if by_variable:
        name = by_variable
    meant = [
        one
        for one in running
        if (name is None or one.name == name) and (out is None or one.directory == out.resolve())
    ]
    if not meant:
        choices = "; ".join(f"--name {one.name} (--out {one.directory})" for one in running)
        wanted = f"in {out}" if out is not None else f"under the name {name!r}"
        says = f", which {FABRIC} says" if by_variable else ""
        raise NotFound(f"no fabric runs {wanted}{says}; running: {choices}")
    return sorted(meant, key=lambda one: ((one.directory / STATE_FILE).exists(), one.started))


def state_of(fabric: sandbox.Running) -> dict[str, Any]:
    """What a fabric that is up wrote of itself. Raises `NotFound`."""
    try:
        state: dict[str, Any] = json.loads((fabric.directory / STATE_FILE).read_text())
    except FileNotFoundError:
        raise NotFound(
            f"the fabric {fabric.name!r} is not up yet; its logs are in {fabric.directory}"
        ) from None
    return state


def name_all(names: Sequence[str]) -> str:
    """Names for a message: all of a few, the first and the last of many."""
    return ", ".join(names) if len(names) <= NAMED_MAX else f"{names[0]} to {names[-1]}"
