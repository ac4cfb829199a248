"""How commands end: one table for all of them, and Ctrl-C ends them at any moment without a traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from wormcast.exits import Exit

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "docs" / "reference" / "cli.md"
SECONDS_MAX = 600
"""Only against hanging for ever."""
FROM_A_TERMINAL = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where this runs in the background
sys.argv[0] = 'wormcast'
"""
ROUND = [
    {"src": 2 * s, "dst": 2 * ((s + 2) % 4), "switches": [(s + n) % 4 for n in range(3)], "ports": [4, 4, 0]}
    for s in range(4)
]
"""Routes that go round the testbed's ring one way: a deadlock."""


def run(at: Path, *arguments: str, program: str | None = None) -> subprocess.CompletedProcess[str]:
    """A command where there is no controller and no agent."""
    nowhere = {"WORMCAST_API": f"unix:{at}/api.sock", "WORMCAST_SOCKET": f"{at}/agent.sock"}
    start = program or "from wormcast.cli.start import main; main()"
    return subprocess.run(
        [sys.executable, "-c", f"{FROM_A_TERMINAL}\n{start}", *arguments],
        cwd=at,
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )


def test_the_table_is_the_enumeration() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (.+) \|$", TABLE.read_text(), flags=re.MULTILINE)
    assert {name: int(code) for code, name, _ in rows} == {one.name: one.value for one in Exit}
    assert len(rows) == len(Exit)


def test_no_command_ends_with_a_number_of_its_own() -> None:
    bare = re.compile(r"exit_code=\d|sys\.exit\(\d|\.exit\(\d|leave\(\d+\)|EXIT_\w+ = \d")
    found = [
        f"{path.name}: {line.strip()}"
        for kind in ("cli/*", "mininet/*", "*/command")
        for path in (ROOT / "controller" / "wormcast").glob(f"{kind}.py")
        for line in path.read_text().splitlines()
        if bare.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("topo make torus:3", Exit.DONE),
        ("completions bash", Exit.DONE),
        ("verify --topology testbed --routes round.json", Exit.NO),
        ("route --no-such-option", Exit.REFUSED),
        ("nosuch", Exit.REFUSED),
        ("schema nosuch", Exit.REFUSED),
        ("topo draw missing.json", Exit.REFUSED),
        ("send missing.bin --group 1", Exit.REFUSED),
        ("recv --group 1 --output missing", Exit.REFUSED),
        ("receive --into missing", Exit.REFUSED),
        ("receive --into . --history", Exit.DONE),
        ("group list", Exit.UNAVAILABLE),
        ("host list", Exit.UNAVAILABLE),
        ("guard show", Exit.UNAVAILABLE),
        ("events --no-follow", Exit.UNAVAILABLE),
        ("events", Exit.UNAVAILABLE),
        ("trace --from 0 --to 1", Exit.UNAVAILABLE),
        ("status", Exit.UNAVAILABLE),
        ("send round.json --group 1", Exit.UNAVAILABLE),
        ("recv --group 1 --output .", Exit.UNAVAILABLE),
        ("costs measure", Exit.UNAVAILABLE),
        ("worms --topology line:2 --p4runtime 127.0.0.1:1,127.0.0.1:1", Exit.UNAVAILABLE),
        ("controller run --listen nowhere --state :memory: --agents unix:agents.sock", Exit.CANNOT_START),
    ],
)
def test_commands_end_as_the_table_says(tmp_path: Path, command: str, code: Exit) -> None:
    (tmp_path / "round.json").write_text(json.dumps({"algorithm": "given", "routes": ROUND}))
    done = run(tmp_path, *command.split())
    assert done.returncode == code, (done.stdout[-300:], done.stderr)
    assert "Traceback" not in done.stderr
    assert (done.stderr == "") == (code in (Exit.DONE, Exit.NO)), done.stderr


INTERRUPT = """
import os, signal, threading
left = None
def count(event, given):
    global left
    if event == "import" and threading.current_thread() is threading.main_thread():
        if left is None and given[0] == "wormcast.cli.main":
            left = {imports}
        elif left is not None:
            left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(count)
from wormcast.cli.start import main
main()
"""
"""The command, which gets Ctrl-C while it imports the module of this number, counted from the first of its own."""


@pytest.mark.parametrize("imports", [0, 1, 30, 90])
@pytest.mark.parametrize(
    "command",
    [
        "controller run --state state.db --listen unix:api.sock --agents unix:agents.sock",
        "up --topology line:2",
        "demo",
        "route --topology torus:3",
        "recv --group 1 --output .",
        "group list",
    ],
)
def test_ctrl_c_while_a_command_is_loaded(tmp_path: Path, command: str, imports: int) -> None:
    done = run(tmp_path, *command.split(), program=INTERRUPT.format(imports=imports))
    assert done.returncode == Exit.INTERRUPTED, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == []
