"""The house stays tidy: dead links, long files, addresses in lock files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

PURE_CRATES = ("wire", "words", "routing", "verify", "planner", "protocol", "hostagent/core")
OUTERMOST = re.compile(
    r"((?:^(?:///.*|#\[[^\n]*(?:\n [^\n]*|\n\)\])*)\n)*)^pub (?:const |unsafe |async )*(fn|trait) (\w+)",
    re.MULTILINE,
)
"""Functions and traits at the outermost level of a Rust file, with the comments and attributes above them."""


def tracked(*suffixes: str) -> list[Path]:
    """Files of the project, not ignored by git, that end in one of `suffixes`."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [ROOT / name for name in names if name.endswith(suffixes) and (ROOT / name).is_file()]


def test_links_in_documents_lead_somewhere() -> None:
    dead = []
    for document in tracked(".md"):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text()):
            if not re.match(r"^[a-z]+:", target) and not (document.parent / target).exists():
                dead.append(f"{document.relative_to(ROOT)}: {target}")
    assert not dead


def test_nothing_hides_mininets_own_package(tmp_path: Path) -> None:
    (tmp_path / "mininet").mkdir()
    (tmp_path / "mininet" / "__init__.py").touch()
    (tmp_path / "mininet" / "net.py").write_text("print(__file__)")
    (tmp_path / "asks.py").write_text("import mininet.net")
    # Debian's package is found after the folder one is in, as here.
    for argv in (["-c", "import mininet.net"], ["-m", "asks"]):
        found = subprocess.run(
            [sys.executable, "-S", *argv],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert (found.stdout.strip(), found.stderr) == (str(tmp_path / "mininet" / "net.py"), "")


def test_packages_of_other_folders_are_those_at_the_top() -> None:
    import wormcast.mininet
    import wormcast.verify

    for package, folder in ((wormcast.mininet, "mininet/testbed"), (wormcast.verify, "verify/python")):
        assert [Path(place).resolve() for place in package.__path__] == [ROOT / folder]


def test_every_file_of_tests_is_a_module_of_their_program() -> None:
    """Cargo looks for no tests by itself: a file that all.rs does not name would be compiled by nobody."""
    programs = tracked("tests/all.rs")
    assert len(programs) >= 8
    for program in programs:
        folder = program.parent
        tests = {
            path.relative_to(folder).parts[0].removesuffix(".rs")
            for path in tracked(".rs")
            if path.is_relative_to(folder) and "#[test]" in path.read_text()
        }
        declared = re.findall(r"^mod (\w+);", program.read_text(), re.MULTILINE)
        declared += re.findall(r'path = "tests/(\w+)\.rs"', (folder.parent / "Cargo.toml").read_text())
        assert tests <= set(declared), f"{program} lacks {tests - set(declared)}"


def undocumented(source: str) -> list[str]:
    """Public functions and traits that do not say what they are for; what a method, a field or a type is, its name may say."""
    return [name for above, _, name in OUTERMOST.findall(source) if "///" not in above]


def test_functions_and_traits_of_pure_crates_say_what_they_are_for() -> None:
    files = [path for crate in PURE_CRATES for path in sorted((ROOT / crate / "src").rglob("*.rs"))]
    assert len(files) > 200
    found = {
        str(path.relative_to(ROOT)): names for path in files if (names := undocumented(path.read_text()))
    }
    assert not found


def test_a_function_without_a_word_would_be_found() -> None:
    source = (
        "/// Says.\n#[must_use]\npub fn one() {}\n\n#[inline]\npub const fn two() {}\n\npub trait Three {}\n"
    )
    assert undocumented(source) == ["two", "Three"]


def test_lock_files_carry_no_addresses() -> None:
    for lock in [ROOT / "requirements.lock", *sorted((ROOT / "setup").glob("*.lock"))]:
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text


def test_places_that_the_architecture_names_are_there() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in tracked("")]
    folders = {f"{parent.as_posix()}/" for file in files for parent in Path(file).parents}
    places = re.findall(
        r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:rs|py|p4|md|proto))`", (ROOT / "ARCHITECTURE.md").read_text()
    )
    assert len(places) > 40
    known = [f"/{name}" for name in (*files, *folders)]
    lost = [
        place for place in places if not any(name.endswith((f"/{place}", f"/{place}/")) for name in known)
    ]
    assert not lost


SPINE_LINES_MAX = 9000
"""Of the files that a message passes from `send` to `recv`: an afternoon."""


def spine(text: str) -> set[str]:
    """The files that the steps of a byte's way name, from the step that reads the file to the last."""
    way = text.split("## A byte's way")[1].split("\n## ")[0].split("### At the origin")[1]
    return set(re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:rs|py|p4))`", way))


def lines_of_code(text: str) -> int:
    """Without the tests at the end of a file."""
    return len(
        re.split(r"^#\[cfg\(test\)\]\nmod tests", text, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
    )


def test_a_message_can_be_followed_in_one_sitting() -> None:
    """What is a feature, a repair or a figure lies beside the way, so that the way stays short."""
    files = tracked(".rs", ".py", ".p4")
    found = set()
    for name in spine((ROOT / "ARCHITECTURE.md").read_text()):
        places = [path for path in files if path.as_posix().endswith(f"/{name}")]
        # The program for Tofino has namesakes.
        places = [path for path in places if ROOT / "targets" not in path.parents]
        assert len(places) == 1, f"{name} names {[str(path.relative_to(ROOT)) for path in places]}"
        found.add(places[0])
    assert len(found) > 30
    sizes = {str(path.relative_to(ROOT)): lines_of_code(path.read_text()) for path in found}
    assert sum(sizes.values()) <= SPINE_LINES_MAX, sorted(sizes.items(), key=lambda item: -item[1])[:10]


def test_no_file_of_the_way_is_of_a_feature() -> None:
    for name in spine((ROOT / "ARCHITECTURE.md").read_text()):
        assert not re.search(r"(?:^|/)(?:gather|guard|mtu|trace|wormhole)(?:/|\.)", name), name


def test_the_way_is_read_from_the_document() -> None:
    text = "## A byte's way\n`a.rs`\n### At the origin\n1. `cli/b.py` and `c.p4`\n## Where\n`d.rs`"
    assert spine(text) == {"cli/b.py", "c.p4"}
    assert lines_of_code("one\n\n#[cfg(test)]\nmod tests {\n}\n") == 2
