"""Where the documents of the project lie in the site, and their links made to fit. Pure."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable
from pathlib import PurePosixPath

_LINK = re.compile(r"(\]\()([^)\s#]*)(#[^)]*)?(\))")
_CODE = re.compile(r"(^(`{3,})[^\n]*\n.*?^\2`*$|^(?: {4}|\t)[^\n]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)

MOVED = {"README.md": "overview.md"}
"""Documents that lie elsewhere in the site; docs/ itself is its top."""


def place(path: str) -> str:
    """Where a document of the project lies in the site."""
    return MOVED.get(path) or path.removeprefix("docs/")


def source_place(path: str) -> str:
    """Where the page lies that shows a file or folder of the project."""
    return f"source/{path.rstrip('/')}.md"


def relative(target: str, page: str) -> str:
    """A link from a page to another place in the site."""
    return os.path.relpath(target, PurePosixPath(page).parent)


def resolve(target: str, document: str) -> str:
    """The path in the project that a link of a document means."""
    return os.path.normpath(str(PurePosixPath(document).parent / target))


def rewrite(text: str, document: str, to_site: Callable[[str], str]) -> str:
    """The text of a document with its relative links as the site has them.

    `to_site` gives the place in the site of a path in the project.
    """
    page = place(document)

    def change(match: re.Match[str]) -> str:
        opening, target, anchor, closing = match.groups()
        if not target or re.match(r"[a-z]+:", target):
            return match.group()
        return f"{opening}{relative(to_site(resolve(target, document)), page)}{anchor or ''}{closing}"

    parts = []
    end = 0
    for code in _CODE.finditer(text):
        # A code span may be the text of a link, so only what is before and behind it is looked at.
        parts += [text[end : code.start()], code.group()]
        end = code.end()
    parts.append(text[end:])
    return "".join(_LINK.sub(change, part) if number % 2 == 0 else part for number, part in enumerate(parts))
