"""A checkout that was copied with its .venv: what is in there names the first place, and does not run unnoticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else shutil.which("python3")
SECONDS_MAX = 600
"""Only against hanging for ever."""


def run(*argv: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=SECONDS_MAX)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One whose .venv has `wormcast`, as make build puts it there."""
    first = tmp_path / "first"
    (first / "setup").mkdir(parents=True)
    (first / ".build").mkdir()
    (first / ".build" / "built").touch()
    shutil.copy(ROOT / "setup" / "venv", first / "setup" / "venv")
    made = run(PYTHON, "-m", "venv", "--without-pip", first / ".venv")
    assert made.returncode == 0, made.stderr
    found = [path for path in sys.path if path] + [sysconfig.get_path("purelib")]
    for site in (first / ".venv" / "lib").glob("python*/site-packages"):
        (site / "all.pth").write_text("\n".join([str(ROOT / "controller"), *found]))
    program = first / ".venv" / "bin" / "wormcast"
    program.write_text(f"#!{first}/.venv/bin/python\nfrom wormcast.cli.start import main\nmain()\n")
    program.chmod(0o755)
    return first


def test_what_was_made_here_stays_and_runs(checkout: Path, tmp_path: Path) -> None:
    done = run(checkout / "setup" / "venv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (checkout / ".build" / "built").exists()
    link = tmp_path / "wormcast"
    link.symlink_to(checkout / ".venv" / "bin" / "wormcast")
    for program in (checkout / ".venv" / "bin" / "wormcast", link):
        assert run(program, "--version").returncode == 0


def test_a_copy_says_so_and_is_made_anew(checkout: Path) -> None:
    second = checkout.parent / "second"
    shutil.copytree(checkout, second, symlinks=True)
    said = run(second / ".venv" / "bin" / "wormcast", "--version")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == (
        f"Error: {second}/.venv is a copy of {checkout}/.venv, whose programs it runs; `make build` makes it anew\n"
    )
    done = run(second / "setup" / "venv")
    assert done.returncode == 0, done.stderr
    assert f".venv is of {checkout}/.venv" in done.stdout
    assert not (second / ".venv").exists()
    assert not (second / ".build" / "built").exists()


def test_one_of_another_python_is_made_anew(checkout: Path) -> None:
    settings = checkout / ".venv" / "pyvenv.cfg"
    settings.write_text(settings.read_text().replace("version = 3.", "version = 2.", 1))
    done = run(checkout / "setup" / "venv")
    assert "Python 2." in done.stdout, done.stderr
    assert not (checkout / ".venv").exists()
