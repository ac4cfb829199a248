"""Runs what a document says as a reader does: blocks in shells, and terminals that stay open."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from document_lab.commands import ROOT
from document_lab.pages import Page

SECONDS_MAX = 1200.0
STARTS = re.compile(r"^wormcast up(?! (?:start|stop|cut|mend) )(?!.*--cli)", re.MULTILINE)
"""A fabric that stays up."""
"""Only against hanging for ever."""
BIN = ROOT / ".venv" / "bin"
# A background job that fails, fails the block.
_BLOCK = """set -e -o pipefail
{block}
for job in $(jobs -p); do wait "$job"; done
"""


def environment() -> dict[str, str]:
    """That of someone who is in no sandbox and has activated .venv, as readers have."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WORMCAST_")}
    return {**own, "PATH": f"{BIN}:{own['PATH']}"}


def run_block(block: str, directory: Path, more: Mapping[str, str] | None = None) -> str:
    """Runs one block of commands; what it printed. Fails if a command fails."""
    done = subprocess.run(
        ["bash", "-c", _BLOCK.format(block=block)],
        cwd=directory,
        env={**environment(), **(more or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr, f"{block}\n{done.stderr}"
    return done.stdout


@contextlib.contextmanager
def terminal(command: str, log: Path) -> Iterator[None]:
    """A first terminal, in which a fabric comes up and stays up."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while "fabric up" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS_MAX)


def read_page(page: Page, directory: Path, logs: Path, more: Mapping[str, str] | None = None) -> str:
    """Does all that a page says, from its first block to its last; what was printed.

    A block that starts wormcast up is a terminal that stays open until the page starts another fabric, or ends.
    """
    printed = []
    with contextlib.ExitStack() as open_terminal:
        for number, block in enumerate(page.blocks):
            if STARTS.search(block):
                open_terminal.close()
                open_terminal.enter_context(terminal(block.strip(), logs / f"terminal-{number}"))
            else:
                printed.append(run_block(block, directory, more))
    return "".join(printed)
