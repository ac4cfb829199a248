"""Run a topology file that was written for Python 2, as those of ngsdn-tutorial are. The file is not changed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import CodeType

PRINT = re.compile(r"^(\s*)print +(?!\()(.+)$", re.MULTILINE)


def modernise(source: str) -> str:
    """The source with its print statements as calls; a statement must be on a line of its own."""
    return PRINT.sub(r"\1print(\2)", source)


def load(path: Path) -> CodeType:
    """The code of the file. Raises SyntaxError for what is neither Python 3 nor differs only by print."""
    source = path.read_text()
    try:
        return compile(source, str(path), "exec")
    except SyntaxError:
        return compile(modernise(source), str(path), "exec")


def main() -> int:
    """Return 2 for wrong use; else what the file does."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        print(f"usage: python TOPOLOGY.py [ARG …]; given: {sys.argv[1:]}", file=sys.stderr)
        return 2
    sys.argv = sys.argv[1:]
    exec(load(Path(sys.argv[0])), {"__name__": "__main__", "__file__": sys.argv[0]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
