"""Python files that use each other in a circle: there are none.

    .venv/bin/python tests/circles_python.py

An import counts wherever it is, in a function or for the type checker alone; so does a text that is the name of a module,
as for `import_module`. Two files in a circle are understood, tested and changed as one.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import arrows

PLACES = (
    "controller",
    "docs/site",
    "switch",
    "switch/tests/python",
    "targets/tofino/tests",
    "verify/tests/python",
    "tests/conformance",
    "tests/python",
    "tests/e2e",
    "tests/packages",
    "tests/docker",
)
"""Folders that modules are found in, beside the folder of the file that asks and the top."""
LINKS = {"mininet/testbed/": "controller/wormcast/mininet/", "verify/python/": "controller/wormcast/verify/"}
"""Folders that are packages of ours by a link."""


def tracked(root: Path) -> list[Path]:
    """Our Python files; a linked folder has its files under the name that imports use."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    return [root / linked(name) for name in sorted(names) if (root / name).is_file()]


def linked(name: str) -> str:
    """A file's name below controller/, if its folder is linked from there."""
    for folder, link in LINKS.items():
        if name.startswith(folder):
            return link + name.removeprefix(folder)
    return name


def named(path: Path, module: str) -> Iterator[tuple[str, ...]]:
    """The modules and names that a file names. Raises ValueError for a relative import, which no rule of ours reads."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise ValueError(f"{module}: a relative import in line {node.lineno}")
            yield from ((*node.module.split("."), alias.name) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(".") > 1:
            yield tuple(node.value.split("."))


def graph(root: Path, files: Iterable[Path], places: Iterable[str] = PLACES) -> arrows.Graph:
    """The files and those of them that they use."""
    files = list(files)
    modules: dict[Path, dict[tuple[str, ...], Path]] = {}
    for place in {root, *(root / name for name in places), *(file.parent for file in files)}:
        modules[place] = {}
        for file in files:
            if file.is_relative_to(place):
                parts = file.relative_to(place).with_suffix("").parts
                modules[place][parts[:-1] if parts[-1] == "__init__" else parts] = file
    found = {}
    for file in files:
        above = [place for place in (root / name for name in places) if file.is_relative_to(place)]
        look_in = [file.parent, *above, root / "controller", root]
        targets = set()
        for name in named(file, str(file.relative_to(root))):
            places_of = (arrows.deepest(modules.get(place, {}), name) for place in look_in)
            targets.add(next((target for target in places_of if target is not None), file))
        found[file] = frozenset(targets) - {file}
    return found


def faults(root: Path, files: Iterable[Path]) -> list[str]:
    """Each circle, a line; empty if there is none."""
    return [
        "files in a circle: " + ", ".join(str(file.relative_to(root)) for file in circle)
        for circle in arrows.circles(graph(root, files))
    ]


def main() -> int:
    found = faults(arrows.ROOT, tracked(arrows.ROOT))
    print("\n".join(found) or "no Python files use each other in a circle")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
