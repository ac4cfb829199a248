"""The house stays tidy: dependency arrows, dead links, words that do not belong."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

# What each crate of ours may depend on of ours; ARCHITECTURE.md, "Parts".
CRATE_ARROWS = {
    "wire": set(),
    "routing": {"wormcast-wire"},
    "protocol": {"wormcast-wire"},
    "switch": set(),
    "hostagent": {"wormcast-wire", "wormcast-routing", "wormcast-protocol"},
    "routing/python": {"wormcast-wire", "wormcast-routing"},
    "tests/fabric": {"wormcast-wire", "wormcast-routing", "wormcast-protocol", "wormcast-switch"},
}
# Pure Python packages and what they must not import.
PURE_PACKAGES = ["controller/wormcast/fabric"]
SHELL_MODULES = {"asyncio", "socket", "grpc", "finsy", "fastapi", "sqlite3", "time", "random", "threading"}
LINES_MAX = 600


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


@pytest.mark.parametrize("crate", CRATE_ARROWS)
def test_crates_depend_only_along_the_arrows(crate: str) -> None:
    manifest = tomllib.loads((ROOT / crate / "Cargo.toml").read_text())
    ours = {name for name in manifest.get("dependencies", {}) if name.startswith("wormcast-")}
    assert ours <= CRATE_ARROWS[crate]


@pytest.mark.parametrize("package", PURE_PACKAGES)
def test_pure_python_does_no_io(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported = {(node.module or "").split(".")[0]}
            else:
                continue
            assert not imported & SHELL_MODULES, (
                f"{path.relative_to(ROOT)} imports {imported & SHELL_MODULES}"
            )


def test_links_in_documents_lead_somewhere() -> None:
    dead = []
    for document in tracked(".md"):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text()):
            if not re.match(r"^[a-z]+:", target) and not (document.parent / target).exists():
                dead.append(f"{document.relative_to(ROOT)}: {target}")
    assert not dead


def test_mininet_does_not_hide_mininets_own_package() -> None:
    assert not (ROOT / "mininet" / "__init__.py").exists()


def test_files_can_be_read_in_a_sitting() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in tracked(".rs", ".py", ".p4")
        if (count := len(path.read_text().splitlines())) > LINES_MAX
    }
    assert not long


def test_lock_files_carry_no_addresses() -> None:
    for lock in [ROOT / "requirements.lock", ROOT / "setup" / "p4runtime-shell.lock"]:
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
