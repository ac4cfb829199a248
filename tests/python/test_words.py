"""Documents stay short enough to be read: a new paragraph takes the place of an old one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from document_lab.commands import ROOT, documents
from document_lab.words import cells, sentences, words

SENTENCE_MAX = 35
CELL_MAX = 40
ALL_MAX = 50_000
MAIN_MAX = {
    "README.md": 1200,
    "ARCHITECTURE.md": 1450,
    "LIMITATIONS.md": 750,
    "CHANGELOG.md": 500,
    "wire/SPEC.md": 3300,
    "protocol/RULES.md": 2000,
    "controller/OPERATION.md": 1600,
    "hostagent/API.md": 2010,
    "docs/operate.md": 1900,
}
TOP_MAX = 18
"""Folders at the top."""
SCREEN = 60
"""Lines."""
LIMITS_MAX = 40
LIMIT_MAX = 25
PATHS = [path.relative_to(ROOT).as_posix() for path in documents()]


def size(path: Path) -> int:
    """Words as `wc -w` counts them."""
    return len(path.read_text().split())


@pytest.mark.parametrize("document", PATHS)
def test_sentences_and_cells_are_understood_at_first_reading(document: str) -> None:
    text = (ROOT / document).read_text()
    long = [f"{words(part)} words: {part}" for part in sentences(text) if words(part) > SENTENCE_MAX]
    long += [f"{words(part)} words in a cell: {part}" for part in cells(text) if words(part) > CELL_MAX]
    assert not long, f"{document}: at most {SENTENCE_MAX} words a sentence, {CELL_MAX} a cell"


@pytest.mark.parametrize("document", MAIN_MAX)
def test_main_documents_are_read_in_one_go(document: str) -> None:
    count, most = size(ROOT / document), MAIN_MAX[document]
    assert count <= most, f"{document} has {count} words, {most} at most: something has to go"


def test_all_documents_together_are_bounded() -> None:
    sizes = {path: size(ROOT / path) for path in PATHS}
    total = sum(sizes.values())
    longest = sorted(sizes.items(), key=lambda item: -item[1])[:12]
    assert total <= ALL_MAX, f"{total} words, {ALL_MAX} at most; the longest: {longest}"


def test_each_folder_at_the_top_begins_with_a_screen_to_read() -> None:
    folders = {path.split("/")[0] for path in PATHS if "/" in path}
    assert len(folders) <= TOP_MAX
    long = {}
    for folder in sorted(folders):
        page = ROOT / folder / ("index.md" if folder == "docs" else "README.md")
        if (lines := page.read_text().count("\n")) > SCREEN:
            long[folder] = lines
    assert not long, f"at most {SCREEN} lines: what it is, what it may import, where to begin"


def test_limitations_are_a_page_and_each_says_where_to_read_on() -> None:
    text = (ROOT / "LIMITATIONS.md").read_text()
    bullets = text.split("\n- ")[1:]
    assert 10 <= len(bullets) <= LIMITS_MAX
    for bullet in bullets:
        limit = bullet.split("\n\n")[0].split("\n#")[0]
        assert words(limit) <= LIMIT_MAX, limit
        assert "](" in limit, limit


@pytest.mark.parametrize("document", PATHS)
def test_tables_are_whole(document: str) -> None:
    """A row behind an empty line is shown as text, with its bars."""
    found = headless_rows((ROOT / document).read_text())
    assert not found, f"{document}: rows that belong to no table: {found}"


def headless_rows(text: str) -> list[str]:
    """Rows at the top of a table that no row of dashes follows."""
    lines = ["", *re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).splitlines(), ""]
    return [
        line
        for before, line, after in zip(lines, lines[1:], lines[2:], strict=False)
        if line.startswith("|") and not before.startswith("|") and not re.fullmatch(r"[|: -]*-[|: -]*", after)
    ]


def test_a_row_without_a_table_would_be_found() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert not headless_rows(table)
    assert headless_rows(f"{table}\n| 3 | 4 |\n") == ["| 3 | 4 |"]


def test_a_long_sentence_would_be_found() -> None:
    long = "word " * CELL_MAX + "end."
    assert max(map(words, sentences(f"Short.\n\n- {long}\n"))) > SENTENCE_MAX
    assert max(map(words, cells(f"| a | {long} |\n"))) > CELL_MAX
    assert not list(sentences(f"```sh\n{long}\n```\n\n    {long}\n"))
