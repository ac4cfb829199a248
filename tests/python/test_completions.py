"""What shells are offered: commands, names of the running fabric, kinds and options."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_controller_cli import Shell, fabric, shell  # noqa: F401 - fixtures

PROGRAM = """
import sys
from wormcast.cli import completion
completion.SECONDS_MAX = 600  # whoever presses a key waits half a second; a test waits for a slow machine
sys.argv[0] = 'wormcast'
from wormcast.cli.start import main
main()
"""


def offered(at: Shell, name: str, *words: str) -> set[str]:
    """Completions of the last word in a shell."""
    environment = {**os.environ, "WORMCAST_API": at.api, "_WORMCAST_COMPLETE": f"{name}_complete"}
    environment["COMP_WORDS"] = " ".join(["wormcast", *words])
    environment["COMP_CWORD"] = words[-1] if name == "fish" else str(len(words))
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, cwd=at.directory, env=environment, capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stderr == ""
    lines = [line for line in done.stdout.splitlines() if line]
    if name == "zsh":
        return set(lines[1::3])
    return {line.split(",", 1)[1].split("\t")[0] for line in lines}


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_names_of_the_running_fabric(fabric: Shell, name: str) -> None:  # noqa: F811
    made = fabric.run("group", "create", "h0", "h1", "--name", f"images-{name}")
    assert made.returncode == 0, made.stderr
    try:
        for words in (["group", "delete", ""], ["group", "show", "im"], ["group", "delete", "x", "im"]):
            assert f"images-{name}" in offered(fabric, name, *words)
        assert f"images-{name}" in offered(fabric, name, "send", "x", "--group", "im")
        assert {"h0", "h1"} <= offered(fabric, name, "send", "x", "--to", "")
        assert offered(fabric, name, "send", "x", "--to", "h0,h") == {"h0,h1"}
        assert {"h0", "h1"} <= offered(fabric, name, "group", "create", "")
        assert offered(fabric, name, "group", "create", "h0", "h") == {"h1"}
        assert f"images-{name}" in offered(fabric, name, "guard", "set", "on", "--close", "im")
        assert offered(fabric, name, "guard", "set", "o") == {"on", "off"}
        assert "h1" in offered(fabric, name, "host", "limit", "h")
        assert offered(fabric, name, "host", "limit", "h1", "a") == {"any"}
    finally:
        assert fabric.run("group", "delete", f"images-{name}").returncode == 0


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_without_a_fabric_it_is_silent_and_knows_the_rest(shell: Shell, name: str) -> None:  # noqa: F811
    assert offered(shell, name, "group", "show", "") == set()
    assert offered(shell, name, "send", "x", "--group", "") == set()
    assert {"--topology", "--summary", "--api"} <= offered(shell, name, "route", "--")
    on_file = offered(shell, name, "route", "--topology", "torus:3", "--")
    assert "--summary" in on_file
    assert "--api" not in on_file
    assert offered(shell, name, "route", "--topology", "torus:3", "1") == {"1"}
    assert {"0", "8"} <= offered(shell, name, "group", "plan", "--topology", "torus:3", "")
    assert "torus" in offered(shell, name, "verify", "--topology", "tor")
    assert "k-binomial" in offered(shell, name, "group", "plan", "--topology", "torus:3", "--scheme", "k-")
    assert "cut-through" in offered(shell, name, "verify", "--topology", "torus:3", "--forwarding", "cut")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_options_topologies_and_schemes_of_fabrics(shell: Shell, name: str) -> None:  # noqa: F811
    assert {"testbed", "torus", "line", "net.json"} <= offered_with_file(shell, name, "up", "--topology", "")
    assert offered(shell, name, "demo", "--topology", "tor") == {"torus"}
    assert {"circuit", "k-binomial", "auto"} <= offered(shell, name, "demo", "--schemes", "")
    assert offered(shell, name, "demo", "--schemes", "tree,k-") == {"tree,k-binomial"}
    assert "tree,tree" not in offered(shell, name, "demo", "--schemes", "tree,t")
    assert offered(shell, name, "up", "st") == {"start", "stop"}
    assert {"--name", "--out", "--json"} <= offered(shell, name, "up", "stop", "--")
    # What is typed for a host is known without a fabric too.
    on = ("on", "h0", "wormcast")
    assert "group" in offered(shell, name, *on, "gr")
    assert {"--scheme", "--name"} <= offered(shell, name, *on, "group", "create", "--")
    assert "k-binomial" in offered(shell, name, *on, "group", "create", "--scheme", "k")
    assert "rrmit" in offered(shell, name, *on, "routing", "set", "r")
    assert offered(shell, name, "on", "h0", "wormc") == {"wormcast"}


def offered_with_file(at: Shell, name: str, *words: str) -> set[str]:
    """Completions in a directory with a file and a hidden one."""
    for file in ("net.json", ".hidden"):
        (at.directory / file).write_text("")
    found = offered(at, name, *words)
    assert ".hidden" not in found
    return found


def test_the_script_works_in_bash(shell: Shell, tmp_path: Path) -> None:  # noqa: F811
    bash = shutil.which("bash")
    assert bash is not None
    script = tmp_path / "completions.bash"
    script.write_text(shell.run("completions", "bash").stdout)
    program = tmp_path / "wormcast"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}\n")
    program.chmod(0o755)
    text = (
        f"source {script}; COMP_WORDS=(wormcast gro); COMP_CWORD=1; "
        "_wormcast_completion wormcast; echo ${COMPREPLY[@]}"
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([bash, "-c", text], env=environment, capture_output=True, text=True, timeout=600)
    assert done.stdout.split() == ["group"], done.stderr
