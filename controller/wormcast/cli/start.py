"""The program `wormcast`: Ctrl-C while it is loaded ends it as it does later, without a word about Python."""

from __future__ import annotations

import sys


def main() -> None:
    """Load what the command needs, and run it."""
    try:
        from wormcast.cli.main import main as run

        run()
    except KeyboardInterrupt:
        from wormcast.exits import Exit

        sys.exit(Exit.INTERRUPTED)
