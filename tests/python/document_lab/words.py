"""Counts words of documents as a reader meets them: of a document, of its sentences, of the cells of its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ASIDE = re.compile(r"^```.*?^```$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^\s*([-*]|\d+\.)\s|^#|^\s*$")
_COMMAND = re.compile(r"^ {4,}\S")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"*(\[])")


def words(text: str) -> int:
    """Words with a letter or a digit in them; the address of a link is none."""
    return sum(bool(re.search(r"\w", word)) for word in re.sub(r"\]\([^)]*\)", "]", text).split())


def sentences(text: str) -> Iterator[str]:
    """Of paragraphs and of items of lists."""
    for paragraph in _paragraphs(text):
        yield from _END.split(paragraph)


def cells(text: str) -> Iterator[str]:
    """Of tables."""
    for line in _ASIDE.sub("", text).splitlines():
        if line.lstrip().startswith("|"):
            yield from line.strip().strip("|").split("|")


def _paragraphs(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in [*_ASIDE.sub("", text).splitlines(), ""]:
        in_table = line.lstrip().startswith("|")
        if in_table or _ITEM.match(line):
            if lines:
                yield " ".join(lines)
            lines = []
        if not in_table and line.strip() and not (_COMMAND.match(line) and not lines):
            lines.append(line.strip())
