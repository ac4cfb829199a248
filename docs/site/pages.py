"""Puts the pages of the site together in a folder: docs/, the documents beside the code, and what is made from code."""

from __future__ import annotations

import html
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import links
import pictures_of
import references
import travel

ROOT = Path(__file__).resolve().parent.parent.parent
IMAGES = {".svg", ".png", ".jpg"}
LANGUAGES = {
    ".rs": "rust",
    ".py": "python",
    ".p4": "c",
    ".json": "json",
    ".toml": "toml",
    ".proto": "protobuf",
}

GENERATED: Mapping[str, Callable[[], str]] = {
    "rest": references.rest,
    "cli": references.cli,
    "programs": references.programs,
    "files": references.files,
    "p4runtime": references.p4runtime,
    "travel": travel.player,
    "travel-summary": travel.summary,
    "travel-words": travel.in_words,
}
"""What stands for `<!-- generated: NAME -->`."""
_GENERATED = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)
_PICTURE = re.compile(r"^<!-- picture: ([\w-]+): (.+) -->$", re.MULTILINE)
_EXCERPT = re.compile(r"^<!-- excerpt: (\S+) (\w+): (.+) -->$", re.MULTILINE)
_PATCH = re.compile(r"^<!-- patch: (\S+) (\S+) -->$", re.MULTILINE)


class PageError(ValueError):
    """A page asks for what is not there."""


def tracked() -> list[str]:
    """All files of the project."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        raise PageError(f"git lists the files of the pages, and says: {listed.stderr.strip()}")
    return [name for name in sorted(listed.stdout.splitlines()) if (ROOT / name).is_file()]


def put_together(folder: Path) -> None:
    """Writes every page, picture and shown source into a folder that is empty or not there."""
    files = tracked()
    documents = [name for name in files if name.endswith(".md")]
    shown: set[str] = set()

    def to_site(path: str) -> str:
        if path in documents:
            return links.place(path)
        if Path(path).suffix in IMAGES:
            return links.place(path)
        if f"{path}/README.md" in documents:
            return links.place(f"{path}/README.md")
        if not (ROOT / path).exists():
            raise PageError(f"{path} is linked to and is not there")
        shown.add(path)
        return links.source_place(path)

    for name in documents:
        text = fill((ROOT / name).read_text(), folder, links.place(name))
        write(folder / links.place(name), links.rewrite(text, name, to_site))
    for name in files:
        if Path(name).suffix in IMAGES and not name.startswith("docs/theme/"):
            write(folder / links.place(name), (ROOT / name).read_bytes())
    # A folder comes with the sources that lie in it.
    folders = {path for path in shown if (ROOT / path).is_dir()}
    shown |= {name for name in files if str(Path(name).parent) in folders and Path(name).suffix in LANGUAGES}
    for path in sorted(shown):
        write(folder / links.source_place(path), show(path, files, shown))
    for asset in sorted((ROOT / "docs" / "theme").iterdir()):
        write(folder / "assets" / asset.name, asset.read_bytes())


def fill(text: str, folder: Path, page: str) -> str:
    """A page with what it asks for in comments: text and pictures made from code, and excerpts of files."""

    def generated(match: re.Match[str]) -> str:
        make = GENERATED.get(match[1])
        if make is None:
            raise PageError(f"{page}: nothing is generated as {match[1]!r}; there are {', '.join(GENERATED)}")
        return make()

    def picture(match: re.Match[str]) -> str:
        make = pictures_of.PICTURES.get(match[1])
        if make is None:
            raise PageError(f"{page}: no picture {match[1]!r}; there are {', '.join(pictures_of.PICTURES)}")
        place = f"pictures/{match[1]}.svg"
        write(folder / place, make())
        image = f"![{html.escape(match[2])}]({links.relative(place, page)}){{ .picture }}"
        return (
            f'<figure markdown="span">\n{image}\n<figcaption>{html.escape(match[2])}</figcaption>\n</figure>'
        )

    def excerpt(match: re.Match[str]) -> str:
        path, language, first = match.groups()
        return f"```{language}\n{find_excerpt(path, first)}\n```"

    def patch(match: re.Match[str]) -> str:
        return f"```diff\n{find_change(*match.groups())}\n```"

    text = _PATCH.sub(patch, text)
    return _EXCERPT.sub(excerpt, _PICTURE.sub(picture, _GENERATED.sub(generated, text)))


def find_excerpt(path: str, first: str) -> str:
    """The lines of a file from the one that has the text `first` until the next empty line."""
    lines = (ROOT / path).read_text().splitlines()
    starts = [number for number, line in enumerate(lines) if first in line]
    if len(starts) != 1:
        raise PageError(f"{path}: {len(starts)} lines have the text {first!r}; an excerpt needs one")
    block = lines[starts[0] :]
    return "\n".join(block[: block.index("")] if "" in block else block)


def find_change(patch: str, path: str) -> str:
    """What a patch file does to one file: its hunks."""
    for part in (ROOT / patch).read_text().split("diff --git ")[1:]:
        head, _, hunks = part.partition("\n@@ ")
        if head.startswith(f"a/{path} "):
            return re.sub(r"^@@ [^@]*@@ ?", "@@ ", f"@@ {hunks}".rstrip(), flags=re.MULTILINE).removeprefix(
                "@@ \n"
            )
    raise PageError(f"{patch} does not change {path}")


def show(path: str, files: list[str], shown: set[str]) -> str:
    """A page that shows a file, or what a folder holds."""
    head = f"---\ntitle: {path}\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    if (ROOT / path).is_dir():
        inside = [name for name in files if name.startswith(f"{path}/")]
        page = links.source_place(path)

        def row(name: str) -> str:
            own = name.removeprefix(f"{path}/")
            if name in shown:
                return f"- [{own}]({links.relative(links.source_place(name), page)})"
            return f"- {own}"

        return head + "\n".join(row(name) for name in inside) + "\n"
    text = (ROOT / path).read_text()
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    language = LANGUAGES.get(Path(path).suffix, "bash" if text.startswith("#!") else "text")
    return f'{head}{fence} {{ .{language} linenums="1" }}\n{text}\n{fence}\n'


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
