"""Builds the documentation into out/docs: pages that a browser opens without a server and without a network.

    .venv/bin/python docs/site/build.py [DIRECTORY]

`make docs` installs what it needs first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pages import ROOT, PageError, put_together

WORK = ROOT / ".build" / "docs"
CONFIG = ROOT / "docs" / "mkdocs.yml"
MKDOCS = WORK / "venv" / "bin" / "mkdocs"


def config_for(pages: Path) -> str:
    """docs/mkdocs.yml with the folder of the pages."""
    return f"docs_dir: {pages}\n{CONFIG.read_text()}"


def build(site: Path) -> int:
    """Builds; the exit code of MkDocs, which takes warnings such as a dead link for errors."""
    if not MKDOCS.is_file():
        print("docs: MkDocs is not installed; `make docs` or `setup/docs` installs it", file=sys.stderr)
        return 2
    pages = WORK / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    put_together(pages)
    config = WORK / "mkdocs.yml"
    config.write_text(config_for(pages))
    command: list[str | Path] = [MKDOCS, "build", "--quiet", "--strict", "--clean", "-f", config, "-d", site]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    code = subprocess.run(command, check=False, env=environment).returncode
    # For servers; its links are none of a file's.
    (site / "404.html").unlink(missing_ok=True)
    return code


def main() -> int:
    site = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "out" / "docs"
    try:
        code = build(site)
    except PageError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 2
    if code == 0:
        print(f"open {site / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
