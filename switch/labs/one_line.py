"""One line of a file of somebody else's, changed in a copy."""

from __future__ import annotations

import difflib
from pathlib import Path

from labs.rig import LabError


def change_line(original: Path, copy: Path, start: str, line: str, name: str) -> str:
    """Write `copy`, with the only line of `original` that starts with `start` replaced; give the difference.

    Raises LabError where there is not exactly one such line.
    """
    before = original.read_text().splitlines(keepends=True)
    places = [number for number, text in enumerate(before) if text.startswith(start)]
    if len(places) != 1:
        raise LabError(f"{original}: {len(places)} lines start with {start.strip()!r}, not 1")
    after = [*before]
    after[places[0]] = line + "\n"
    copy.write_text("".join(after))
    return "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=0))
