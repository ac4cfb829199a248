"""Finds the commands in the documents of the project: in fenced blocks, indented lines and code spans."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent

_FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^    (?=\S)(.*)$", re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_PROGRAM = re.compile(
    r"(?:[A-Z_]+=\S+ )*(wormcast(?:-[a-z]+)?|make|cargo|pytest|curl|flood|bare_forwarder|ln|cd|kill"
    r"|(?:\.\./)*(?:\.venv/bin/\w+|(?:switch/)?bench/\S*run|setup/\S+|switch/(?:fuzz|labs)/run|target/release/\S+))(?= |$)"
)
OFFLINE = re.compile(
    r"wormcast (topo (make|draw|convert|fabric|lab)|costs(?! (measure|show|set))|schema|completions|--help"
    r"|(route|verify|group plan|balance|change) .*--topology) ?"
)
"""What needs neither a controller nor an agent."""
_COMMENT = re.compile(r"(?:^|\s{2,})#.*$")
_DESCRIPTION = re.compile(r"\s{3,}\S.*$")


@dataclass(frozen=True)
class Block:
    """Commands that stand together, in their order."""

    document: str
    commands: tuple[str, ...]
    fenced: bool


def documents() -> list[Path]:
    """All documents that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in sorted(listed.stdout.splitlines()) if (ROOT / name).is_file()]


def blocks() -> list[Block]:
    """Every fenced block, and every indented line or code span that is a command, a block each."""
    return [block for document in documents() for block in _blocks(document)]


def _blocks(document: Path) -> Iterator[Block]:
    name, text = str(document.relative_to(ROOT)), document.read_text()
    for fence in _FENCE.findall(text):
        yield Block(name, tuple(_lines(fence)), fenced=True)
    rest = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    joined = re.sub(r"\\\n\s+", "", rest)
    for line in _INDENTED.findall(joined):
        if _PROGRAM.match(line):
            yield Block(name, (_DESCRIPTION.sub("", _COMMENT.sub("", line)),), fenced=False)
    for span in _SPAN.findall(re.sub(r"^    .*$", "", joined, flags=re.MULTILINE)):
        if _PROGRAM.match(span) and " " in span:
            yield Block(name, (span,), fenced=False)


def _lines(fence: str) -> Iterator[str]:
    for line in re.sub(r"\\\n\s*", "", fence).splitlines():
        if bare := _COMMENT.sub("", line).strip():
            yield bare
