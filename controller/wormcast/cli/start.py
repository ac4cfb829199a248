"""The program `wormcast`: Ctrl-C while it is loaded ends it as it does later, without a word about Python."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Load what the command needs, and run it."""
    try:
        _refuse_a_copy(Path(sys.argv[0]).resolve().parent.parent)
        from wormcast.cli.main import main as run

        run()
    except KeyboardInterrupt:
        from wormcast.exits import Exit

        sys.exit(Exit.INTERRUPTED)


def _refuse_a_copy(environment: Path) -> None:
    """End where this program lies in a virtual environment that was copied: it would run what is at the first place."""
    if (environment / "pyvenv.cfg").is_file() and environment != Path(sys.prefix).resolve():
        from wormcast.exits import Exit

        print(
            f"Error: {environment} is a copy of {sys.prefix}, whose programs it runs; `make build` makes it anew",
            file=sys.stderr,
        )
        sys.exit(Exit.REFUSED)
