"""Pages that change the code are done in a copy of the checkout, where what they change is compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from document_lab.commands import ROOT
from document_lab.pages import Page, pages
from document_lab.running import read_page

BIN = ROOT / ".venv" / "bin"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "page", [page for page in pages() if page.where == "copy"], ids=lambda page: page.document
)
def test_pages_that_change_the_code_are_done_in_a_copy(page: Page, tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    copy.mkdir()
    archive = subprocess.run(
        "git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T -",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    subprocess.run(["tar", "-x"], cwd=copy, input=archive.stdout, check=True)
    subprocess.run(["git", "init", "--quiet"], cwd=copy, check=True)
    (copy / ".venv").symlink_to(ROOT / ".venv")
    # What does not change is not compiled again: crates of others have the same names in any copy.
    built, own = ROOT / "target" / "release", ROOT / "target" / "documents"
    if built.exists() and not own.exists():
        for part in ("deps", ".fingerprint", "build"):
            shutil.copytree(built / part, own / "release" / part, copy_function=os.link)
    cargo = {
        "CARGO_TARGET_DIR": str(own),
        "PATH": f"{Path.home()}/.cargo/bin:{BIN}:{os.environ['PATH']}",
    }
    read_page(page, copy, tmp_path, cargo)
