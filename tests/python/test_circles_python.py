"""No Python files use each other in a circle; see tests/circles_python.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests"))

import circles_python  # noqa: E402


def test_there_is_no_circle() -> None:
    files = circles_python.tracked(ROOT)
    assert len(files) > 400
    assert circles_python.faults(ROOT, files) == []


@pytest.mark.parametrize(
    "back",
    [
        "import wormcast.top",
        "from wormcast import top",
        "from wormcast.top import Top",
        "def late():\n    from wormcast.top import Top",
        "if TYPE_CHECKING:\n    from wormcast.top import Top",
        "COMMANDS = {'top': 'wormcast.cli.top'}",
    ],
)
def test_an_import_is_found_wherever_it_is(tmp_path: Path, back: str) -> None:
    package = tmp_path / "controller" / "wormcast"
    texts = {
        "__init__.py": "",
        "low.py": back,
        "top.py": "from wormcast.low import Low",
        "cli/__init__.py": "",
        "cli/top.py": "from wormcast.low import Low",
    }
    for name, text in texts.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    files = sorted(package.rglob("*.py"))
    (found,) = circles_python.faults(tmp_path, files)
    assert "low.py" in found
    assert "top.py" in found
    (package / "low.py").write_text("")
    assert circles_python.faults(tmp_path, files) == []


def test_modules_of_scripts_are_found_beside_them(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    files = [tmp_path / "bench" / "run.py", tmp_path / "bench" / "rig.py"]
    files[0].write_text("import rig")
    files[1].write_text("def late():\n    import run")
    assert circles_python.faults(tmp_path, files) == ["files in a circle: bench/rig.py, bench/run.py"]


def test_a_relative_import_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text("from . import other")
    with pytest.raises(ValueError, match="relative import in line 1"):
        circles_python.faults(tmp_path, [file])
