"""What setup/test is made of: which tests have to run, and what it says of those that did not."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BUSY = "for ((n = 0; n < 2000000; n++)); do :; done"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One whose part `image` depends on all of a folder and on manifests anywhere."""
    (tmp_path / "setup").mkdir()
    shutil.copy(ROOT / "setup" / "changed", tmp_path / "setup")
    (tmp_path / "setup" / "inputs").write_text("image: docker *Cargo.toml\nother: elsewhere\n")
    for name in ("docker/Dockerfile", "crate/Cargo.toml", "crate/lib.rs", "elsewhere/file"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def changed(checkout: Path, name: str) -> int:
    return subprocess.run([checkout / "setup" / "changed", name], capture_output=True).returncode


def hash_of(checkout: Path, name: str) -> str:
    asked = [checkout / "setup" / "changed", "--hash", name]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def passed(checkout: Path, name: str) -> None:
    """With the files as they are."""
    noted = [checkout / "setup" / "changed", "--passed", name, hash_of(checkout, name)]
    subprocess.run(noted, check=True, capture_output=True)


def test_what_never_passed_has_to_run(checkout: Path) -> None:
    assert changed(checkout, "image") == 0
    passed(checkout, "other")
    assert changed(checkout, "image") == 0


@pytest.mark.parametrize("name", ["docker/Dockerfile", "docker/new", "crate/Cargo.toml"])
def test_what_passed_runs_again_when_a_file_of_it_changes(checkout: Path, name: str) -> None:
    passed(checkout, "image")
    assert changed(checkout, "image") == 3
    (checkout / "crate" / "lib.rs").write_text("no input of it")
    assert changed(checkout, "image") == 3
    path = checkout / name
    path.write_text((path.read_text() if path.exists() else "") + "\n")
    assert changed(checkout, "image") == 0


def test_what_passed_runs_again_when_other_files_are_named_for_it_and_not_for_others(checkout: Path) -> None:
    passed(checkout, "image")
    inputs = checkout / "setup" / "inputs"
    lines = inputs.read_text().splitlines()
    inputs.write_text("".join(line + ("" if line.startswith("image:") else " new") + "\n" for line in lines))
    assert changed(checkout, "image") == 3
    inputs.write_text("".join(f"{line} new\n" for line in lines))
    assert changed(checkout, "image") == 0


def test_a_file_that_is_gone_is_a_change(checkout: Path) -> None:
    passed(checkout, "image")
    (checkout / "docker" / "Dockerfile").unlink()
    assert changed(checkout, "image") == 0


def test_what_passed_runs_again_when_a_file_of_it_may_not_be_run_any_more(checkout: Path) -> None:
    (checkout / "docker" / "Dockerfile").chmod(0o755)
    passed(checkout, "image")
    assert changed(checkout, "image") == 3
    (checkout / "docker" / "Dockerfile").chmod(0o644)
    assert changed(checkout, "image") == 0


def test_every_part_that_may_be_left_out_has_its_files() -> None:
    named = re.findall(r"\[(\w+)\]=\S+/", (ROOT / "setup" / "test").read_text())
    lines = (ROOT / "setup" / "inputs").read_text().splitlines()
    assert sorted(named) == [line.split(":")[0] for line in lines]
    for line in lines:
        for pattern in line.split()[1:]:
            found = subprocess.run(
                ["git", "ls-files", "--", pattern], cwd=ROOT, capture_output=True, text=True
            )
            assert found.returncode or found.stdout, f"{line.split(':')[0]}: there is no {pattern}"


def test_what_changes_while_its_tests_run_has_not_passed(checkout: Path) -> None:
    before = hash_of(checkout, "image")
    (checkout / "docker" / "Dockerfile").write_text("changed meanwhile")
    subprocess.run([checkout / "setup" / "changed", "--passed", "image", before], check=True)
    assert changed(checkout, "image") == 0


def test_without_git_everything_has_to_run(checkout: Path) -> None:
    passed(checkout, "image")
    shutil.rmtree(checkout / ".git")
    assert changed(checkout, "image") == 0
    assert hash_of(checkout, "image") == ""


def test_an_unknown_name_is_an_error(checkout: Path) -> None:
    done = subprocess.run([checkout / "setup" / "changed", "imag"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "setup/changed: 'imag' is not one of: image other\n"


def test_each_pattern_of_inputs_names_files() -> None:
    for line in (ROOT / "setup" / "inputs").read_text().splitlines():
        for pattern in line.split(": ")[1].split():
            listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern]
            assert subprocess.run(listed, cwd=ROOT, capture_output=True).stdout, pattern


def test_skipped_tests_are_counted_by_what_they_lack() -> None:
    lines = (
        "SKIPPED [2] tests/a.py:3: simple_switch_grpc is not on the PATH\n"
        "SKIPPED [3] tests/b.py:40: simple_switch_grpc is not on the PATH\n"
        "SKIPPED [1] onos: its files are as they were\n"
    )
    done = subprocess.run([ROOT / "setup" / "skipped"], input=lines, capture_output=True, text=True)
    assert done.stdout.startswith("skipped: ")
    assert done.stdout.count("\n") == 1
    assert "5: simple_switch_grpc is not on the PATH" in done.stdout
    assert "1: onos: its files are as they were" in done.stdout
    assert subprocess.run([ROOT / "setup" / "skipped"], input="", capture_output=True, text=True).stdout == ""


@pytest.mark.parametrize(
    ("place", "code"),
    [("tests/a.py", 0), ("tests/b", 0), ("tests/asked.py", 1), ("tests/named.py", 1), ("tests/none.py", 1)],
)
def test_a_part_has_not_passed_if_tests_of_it_were_skipped(place: str, code: int) -> None:
    lines = (
        "SKIPPED [2] tests/a.py:3: simple_switch_grpc is not on the PATH\n"
        "SKIPPED [1] tests/b.py:40: not run: tests/named.py runs it\n"
        "SKIPPED [1] tests/asked.py:5: WORMCAST_X names no folder\n"
        "SKIPPED [8] tests/asked.py:9: needs a backend: P4C_TOFINO\n"
    )
    assert (
        subprocess.run([ROOT / "setup" / "skipped", "--of", place], input=lines, text=True).returncode == code
    )


def test_what_runs_side_by_side_fails_whole_and_is_named(tmp_path: Path) -> None:
    took, skipped = tmp_path / "took", tmp_path / "skipped"
    done = subprocess.run(
        [ROOT / "setup" / "side-by-side"],
        input=f"true\nfalse\necho 'SKIPPED [1] a.py:1: no b'\nkill -KILL $$\n{BUSY}\n",
        env={"PATH": "/usr/bin:/bin", "TOOK": str(took), "SKIPPED": str(skipped)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "failed with 1: false" in done.stdout
    assert "failed with 137: kill" in done.stdout
    rows = [line.split("\t") for line in took.read_text().splitlines()]
    assert len(rows) == 5
    assert [int(of_processors) > 0 for _, of_processors, command in rows if BUSY in command] == [True]
    assert {int(of_processors) for _, of_processors, command in rows if BUSY not in command} == {0}
    assert skipped.read_text() == "SKIPPED [1] a.py:1: no b\n"
