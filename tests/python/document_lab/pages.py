"""The pages of docs/: what a reader types, block by block; which test runs it, or why none does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from document_lab.commands import ROOT, documents

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(
    r"^#+ (?P<heading>[^\n]+)$|(?:^<!-- (?P<fate>run by|not run:) (?P<words>[^\n]+) -->\n)?^```console\n(?P<commands>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COPY = "<!-- the commands change the checkout: tests run them in a copy -->"


@dataclass(frozen=True)
class Page:
    """A page of docs/ with commands."""

    document: str
    blocks: tuple[str, ...]
    """Scripts, in the order of the page."""
    where: str
    """"anywhere": needs no fabric; "fabric": in the checkout, with a fabric; "copy": in a copy of the checkout."""


@dataclass(frozen=True)
class Console:
    """Commands for a machine of the reader's, which no block before them has made."""

    document: str
    heading: str
    """That under which they stand."""
    commands: tuple[str, ...]
    run_by: tuple[str, ...]
    """The tests that type them on such machines; they ask `console` for them."""
    not_run: str | None
    """Why no test does."""


def is_page(document: str) -> bool:
    """Whether a document belongs to docs/."""
    return document.startswith("docs/")


def pages() -> list[Page]:
    """All with commands."""
    found = []
    for path in _documents():
        name, text = str(path.relative_to(ROOT)), path.read_text()
        if scripts := tuple(_BLOCK.findall(text)):
            where = (
                "fabric"
                if any(re.search(r"wormcast (on|up)\b", script) for script in scripts)
                else "anywhere"
            )
            where = "copy" if COPY in text else where
            found.append(Page(name, scripts, where))
    return found


def consoles() -> list[Console]:
    """Every ```console block, of README too."""
    found = []
    for path in [ROOT / "README.md", *_documents()]:
        heading = ""
        for match in _CONSOLE.finditer(path.read_text()):
            heading = match["heading"] or heading
            if match["commands"] is None:
                continue
            lines = (re.sub(r"\s+#.*$", "", line) for line in match["commands"].splitlines() if line)
            fate = {match["fate"]: match["words"]}
            run_by = tuple(fate.get("run by", "").split())
            document = str(path.relative_to(ROOT))
            found.append(Console(document, heading, tuple(lines), run_by, fate.get("not run:")))
    return found


def console(document: str, heading: str) -> tuple[str, ...]:
    """The commands of the ```console blocks under a heading, for the test that runs them."""
    found = [block for block in consoles() if (block.document, block.heading) == (document, heading)]
    assert found, f"{document} has no commands under {heading!r}"
    return tuple(command for block in found if not block.not_run for command in block.commands)


def _documents() -> list[Path]:
    return [path for path in documents() if is_page(str(path.relative_to(ROOT)))]
