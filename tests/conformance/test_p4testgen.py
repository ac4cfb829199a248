"""Tests that p4c's p4testgen makes of our own programs, where it is installed: ours is not the only reading of them.

p4testgen (Ruffy et al., P4Testgen, SIGCOMM 2023) follows paths through a program and finds a frame, entries and what comes
out for each. It knows neither replication nor `truncate`, and gives up paths that need more; so it makes few of the frames
that leave, and does not replace the vectors.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_tofino import chip, program_of

SOURCES = Path(__file__).parent.parent.parent / "p4src"
TOOL = shutil.which("p4testgen")
TOFINO_INCLUDE = os.environ.get("P4C_TOFINO_INCLUDE")
MOST = {"bmv2": 80, "tofino": 40}
SEED = 2
STF = SOURCES.parent / "target" / "release" / "wormcast-stf"
pytestmark = pytest.mark.skipif(TOOL is None, reason="p4testgen is not on the PATH")


def made(target: str, program: Path, folder: Path, *options: str) -> list[Path]:
    """Scripts that it makes of a program."""
    command = [
        str(TOOL),
        "--target",
        target,
        "--std",
        "p4-16",
        "--test-backend",
        "STF",
        "--out-dir",
        str(folder),
    ]
    command += ["--max-tests", str(MOST[target]), "--seed", str(SEED), *options, str(program)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    scripts = sorted(folder.glob("*.stf"))
    assert scripts, run.stderr[-2000:]
    return scripts


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of the program for v1model, each beside what is committed of it."""
    folder = tmp_path_factory.mktemp("p4testgen")
    shutil.copytree(SOURCES, folder / "p4src")
    cut = 0
    for source in (folder / "p4src" / "v1model").glob("*.p4"):
        # Frames that are cut are signals of the switch, and ends of fragments; where it makes one, no frame of a test leaves.
        text, count = re.subn(r"^(\s*)truncate\(.*\);", r"\1;", source.read_text(), flags=re.MULTILINE)
        source.write_text(text)
        cut += count
    assert cut == 3
    out = folder / "scripts"
    program = folder / "p4src" / "v1model" / "wormcast.p4"
    for script in made("bmv2", program, out, "--arch", "v1model", "--disable-assumption-mode"):
        shutil.copy(SOURCES / "compiled" / "wormcast.json", script.with_suffix(".json"))
    return out


@pytest.mark.parametrize("run_by", ["compiled", "interpreted", "bmv2"])
def test_the_switches_do_what_it_says(scripts: Path, run_by: str) -> None:
    if run_by == "bmv2" and shutil.which("simple_switch") is None:
        pytest.skip("simple_switch is not on the PATH")
    how = ["--switch", "simple_switch"] if run_by == "bmv2" else ["--engine", run_by]
    run = subprocess.run([STF, "--quiet", *how, scripts], capture_output=True, text=True, timeout=600)
    count = len(list(scripts.glob("*.stf")))
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert f"{count} of {count} passed" in run.stdout
    texts = [script.read_text() for script in scripts.glob("*.stf")]
    leave = sum("\nexpect " in text for text in texts)
    assert 5 < leave < count, "frames that leave, and frames that do not"


def test_what_differs_is_noticed(scripts: Path, tmp_path: Path) -> None:
    """A byte of one frame is other than it says."""
    script = next(path for path in sorted(scripts.glob("*.stf")) if "\nexpect " in path.read_text())
    text = re.sub(r"(\nexpect \d+ )(.)", lambda m: m[1] + ("1" if m[2] != "1" else "2"), script.read_text())
    (tmp_path / "spoilt.stf").write_text(text)
    shutil.copy(script.with_suffix(".json"), tmp_path / "spoilt.json")
    run = subprocess.run([STF, tmp_path], capture_output=True, text=True, timeout=600)
    assert run.returncode == 1, run.stdout


@pytest.mark.skipif(TOFINO_INCLUDE is None, reason="P4C_TOFINO_INCLUDE does not say where p4c's tna.p4 is")
def test_the_chip_does_what_it_says_of_the_program_for_tofino(tmp_path: Path) -> None:
    """On our model of the chip."""
    options = ["--arch", "tna", "-D__TARGET_TOFINO__=1", "-I", str(TOFINO_INCLUDE)]
    shutil.copytree(SOURCES, tmp_path / "p4src")
    tofino = tmp_path / "targets" / "tofino"
    shutil.copytree(SOURCES.parent / "targets" / "tofino", tofino)
    changed = [0, 0]
    for source in tofino.glob("*parser.p4"):
        # It stops where the parser's counter is set. What the counter remembers is whether a trace stands behind the
        # route, so of what it is given nothing reads a trace.
        text, sets = re.subn(r"^ +\w+\.set\(8w[01]\);\n", "", source.read_text(), flags=re.MULTILINE)
        asked = r"select\(\w+\.is_zero\(\)\) \{\s+true: accept;\s+default: \w+;\s+\}"
        text, selects = re.subn(asked, "accept;", text)
        source.write_text(text)
        changed = [changed[0] + sets, changed[1] + selects]
    assert changed == [6, 3]
    for script in made("tofino", tofino / "tofino.p4", tmp_path, *options):
        text = script.read_text()
        switch = chip.Chip(program_of("sources"))
        switch.install(state_of(text), [])
        switch.switch.entries = {
            table: entries for table, entries in switch.switch.entries.items() if f"add {table} " in text
        }
        ((port, frame),) = re.findall(r"^packet (\d+) ([0-9A-F]+)$", text, re.MULTILINE)
        result = switch.forward(int(port), bytes.fromhex(frame))
        expected = re.findall(r"^expect (\d+) ([0-9A-F*]+)\$?$", text, re.MULTILINE)
        left = sorted((copy.device_port, copy.data.hex().upper()) for copy in result.out)
        assert len(left) == len(expected), script.name
        for (to, data), (wanted, pattern) in zip(left, sorted((int(p), d) for p, d in expected), strict=True):
            assert to == wanted, script.name
            assert re.fullmatch(pattern.replace("*", "."), data), script.name


def state_of(script: str) -> dict[str, Any]:
    """The entries of a script, as vectors have them."""
    tables: list[dict[str, Any]] = []
    for table, priority, key, action, arguments in re.findall(
        r"^add (\S+) (\d* ?)(.*?) ?(\S+)\((.*)\)$", script, re.MULTILINE
    ):
        fields = (part.rpartition(":") for part in key.split())
        values = (part.rpartition(":") for part in arguments.split(",") if part)
        tables.append(
            {
                "table": table,
                "key": {name: key_of(value) for name, _, value in fields},
                "action": action,
                "parameters": {name: value for name, _, value in values},
                "priority": int(priority or 0),
            }
        )
    return {"tables": tables, "defaults": [], "multicast_groups": []}


def key_of(text: str) -> int | dict[str, int]:
    """A key of a script; one with a mask has stars for the bits that do not matter."""
    if not text.startswith("0b"):
        return int(text, 16)
    bits = text[2:]
    mask = re.sub("[01]", "1", bits).replace("*", "0")
    return {"value": int(bits.replace("*", "0"), 2), "mask": int(mask, 2)}
