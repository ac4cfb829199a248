"""One trial: one case by one contender, once. In a sandbox of its own; the result is the last line it prints.

`python -m wormcast.mininet.sandbox trial CASE CONTENDER SIZE PLACE`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import content
import messages
import ours
import peers
from bridge import PeerError
from cases import BY_NAME, Case
from wormcast.mininet.fabric import FabricError


def missing(case: Case, contender: str) -> str | None:
    """Why this cannot be measured here."""
    if contender.startswith("wormcast "):
        return ours.missing(case.kind)
    if case.kind == "messages":
        return messages.missing(contender)
    return peers.missing(contender, case.loss)


def run(case: Case, contender: str, place: Path) -> dict[str, Any]:
    """What came of it. `place`: an empty directory."""
    own, _, scheme = contender.partition(" ")
    if case.kind == "messages":
        if own == "wormcast":
            return ours.messages(case, scheme)
        return messages.exchange(case, contender)
    source, old = place / "source", None
    if case.kind == "file":
        content.file(source, case.size)
    elif case.kind == "files":
        content.small_files(source, case.size)
    else:
        old = content.mixed_files(place / "old", case.size)
        content.copy(old, source)
        content.change(source, case.size)
    if own == "wormcast":
        return ours.deliver(case, scheme, source, old, place)
    return peers.deliver(case, contender, source, old, place)


def main() -> None:
    name, contender, size, place = sys.argv[1:]
    tempfile.tempdir = place
    case = BY_NAME[name].of_size(int(size))
    try:
        result = run(case, contender, Path(place))
    except (PeerError, FabricError) as error:
        result = {"failed": str(error)[:500]}
    print(json.dumps(result), flush=True)
    # What still runs ends with the sandbox.
    os._exit(0)


if __name__ == "__main__":
    main()
