"""Pages that change the code are done in a copy of the checkout, where what they change is compiled."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from document_lab.commands import ROOT
from document_lab.pages import Page, pages
from document_lab.running import read_page
from wormcast.cli.main import main

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


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_units_of_the_nightly_guide_are_what_systemd_takes(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "nightly.md").read_text()
    units = re.findall(r"^```ini\n# (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in units] == ["wormcast-nightly.service", "wormcast-nightly.timer"]
    for name, unit in units:
        (tmp_path / name).write_text(unit.replace("/usr/bin/wormcast", str(BIN / "wormcast")))
    command = ["systemd-analyze", "verify", "--man=no", *[str(tmp_path / name) for name, _ in units]]
    done = subprocess.run(command, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "wormcast-nightly" in line]
    assert (done.returncode, said) == (0, [])
    # The command and its options, as the program takes them.
    (send,) = re.findall(r"^ExecStart=/usr/bin/wormcast (send .*)$", text, re.MULTILINE)
    context = main.make_context("wormcast", send.split(), resilient_parsing=False)
    command_of = main.get_command(context, "send")
    assert command_of is not None
    options = command_of.make_context(
        "send",
        ["--group", "nightly", *[word for word in send.split()[1:] if word != "/srv/data"], str(tmp_path)],
    ).params
    assert (options["changed"], options["retry"]) == (True, 20)
