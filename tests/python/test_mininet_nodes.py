"""What Mininet's nodes answer when something is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from wormcast.mininet.nodes import MadeHost, MadeSwitch

ROOT = Path(__file__).resolve().parent.parent.parent


def find(kind: str) -> subprocess.CompletedProcess[str]:
    """Ask for a switch's binary where the PATH has nothing; OSError is what the demo reports in a line."""
    code = (
        "from wormcast.mininet import programs\n"
        f"try: programs.find_switch({kind!r})\n"
        "except (OSError, ValueError) as error: print(error)\n"
    )
    environment = {**os.environ, "PATH": "/nowhere"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
    )


def test_a_switch_that_is_not_installed_is_named_with_what_to_do() -> None:
    asked = find("bmv2")
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.strip() == "simple_switch_grpc is not installed; put simple_switch_grpc on the PATH"


def test_an_unknown_switch_is_answered_with_the_choices() -> None:
    assert find("tofino").stdout.strip() == "switch 'tofino' is not one of: wormcast, bmv2"


def test_nodes_of_a_fabric_start_no_shell_before_their_first_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mininet tells every switch that loopback be up: hundreds of shells for nothing."""
    MadeSwitch("s0", id=0, log_directory=tmp_path), MadeHost("h0")  # Mininet looks once for what it needs
    started = []
    execute = subprocess.Popen.__init__

    def note(self: Any, *args: Any, **keywords: Any) -> None:
        started.append(args)
        execute(self, *args, **keywords)

    monkeypatch.setattr(subprocess.Popen, "__init__", note)
    switch = MadeSwitch("s1", id=1, log_directory=tmp_path)
    assert switch.shell is None
    assert MadeHost("h1").shell is None
    assert started == []
    assert switch.cmd("echo one").split() == ["one"]
    assert started
    switch.terminate()
