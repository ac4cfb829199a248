"""What bench/transport makes of its results, and that the page shows those that are committed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from document_lab.commands import ROOT

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "transport"))
import content
import report
from cases import BY_NAME, CASES

FOLDER = ROOT / "bench" / "transport"


def trial(case: str, contender: str, turn: int, **result: Any) -> dict[str, Any]:
    about = {"case": case, "contender": contender, "turn": turn, "settings": BY_NAME[case].settings()}
    return {**about, "load": 1.0, "processor": {"sender": 1.0}, **result}


KEPT = {
    "trials": [
        *(
            trial("plain", "wormcast switch", turn, seconds=seconds)
            for turn, seconds in enumerate((2.0, 9.0, 3.0))
        ),
        trial("plain", "uftp 400", 0, failed="gave up"),
        trial("plain", "uftp 400", 1, failed="gave up"),
        trial("plain", "uftp 400", 2, seconds=1.0),
        trial("messages", "norm", 0, rate=10, p50_us=20, p99_us=30),
        trial("messages", "mpi", 0, rate=9, p50_us=21, p99_us=22),
        trial("messages", "wormcast switch", 0, rate=5, p50_us=80, p99_us=90),
    ]
}


def test_a_table_has_medians_and_who_is_best() -> None:
    text = report.table(KEPT)
    # 1 s of the processor for 256 MiB to seven. UFTP failed more often than not.
    assert "| 256 MiB to 7, frames of 1500 | `switch` 3.0 (0.5) | failed | – |" in text
    assert "| messages of 64 B to 7, a second | `switch` 5 | NORM 10 | 0.5 |" in text
    assert "| p50, p99, µs | `switch` 80, 90 | NORM 20, 30 | 0.25 |" in text


def test_the_page_shows_what_is_committed(tmp_path: Path) -> None:
    page = tmp_path / "compare.md"
    page.write_text((ROOT / "docs" / "compare.md").read_text())
    kept = json.loads((FOLDER / "result.json").read_text())
    report.publish(kept, tmp_path, page)
    assert page.read_text() == (ROOT / "docs" / "compare.md").read_text()
    assert (tmp_path / "result.json").read_text() == (FOLDER / "result.json").read_text()


def test_cases_have_names_of_their_own_and_somebody_of_ours() -> None:
    assert len(BY_NAME) == len(CASES)
    assert all(any(one.startswith("wormcast") for one in case.contenders) for case in CASES)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cases", "fast"], "case 'fast' is not one of demo, "),
        (["--contenders", "pigeon"], "contender 'pigeon' is not one of aeron, "),
        (["--sizes", "plain=0"], "'plain=0' is not CASE=N with a number of 1 or more"),
        (["--repeats", "0"], "repeats 0 is not 1 or more"),
    ],
)
def test_wrong_options_are_named(options: list[str], said: str) -> None:
    command = [sys.executable, str(FOLDER / "measure.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert said in done.stderr


def test_what_changes_is_a_hundredth_and_leaves_the_old_alone(tmp_path: Path) -> None:
    size = 2_000_000
    old = content.mixed_files(tmp_path / "old", size)
    before = content.digest(old)
    content.copy(old, tmp_path / "new")
    content.change(tmp_path / "new", size)
    assert content.digest(old) == before
    assert content.digest(tmp_path / "new") != before
    pairs = [(path, tmp_path / "new" / path.relative_to(old)) for path in old.rglob("f*")]
    changed = [one.stat().st_size for one, other in pairs if one.read_bytes() != other.read_bytes()]
    assert sum(path.stat().st_size for path, _ in pairs) == size
    assert 0 < sum(changed) <= size * content.CHANGED
