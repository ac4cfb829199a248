"""The page's labs for containerlab and Kathará, brought up by these tools themselves.

They and their images are not the project's; where one is missing, its test is skipped by name.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from composing import ROOT, SECONDS_MAX, Compose, at_a_terminal, compose_commands
from document_lab.pages import console
from document_lab.running import environment, run_block

PLUGIN = "kathara/katharanp"
"""Kathará's network plugin, which Docker must have."""


def privileged() -> bool:
    """Whether Docker may run privileged containers here, as all of containerlab's are."""
    asked = ["docker", "run", "--rm", "--privileged", "--entrypoint", "true", "wormcast"]
    return subprocess.run(asked, capture_output=True).returncode == 0


def has_plugin() -> bool:
    asked = subprocess.run(
        ["docker", "plugin", "ls", "--format", "{{.Name}}"], capture_output=True, text=True
    )
    return PLUGIN in asked.stdout


NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "containerlab": (privileged, "Docker runs no privileged container here"),
    "kathara": (has_plugin, f"Docker has no plugin {PLUGIN}"),
}


@pytest.fixture(scope="module")
def image(base: str) -> None:
    Compose(compose_commands()[0], base)("build", "fabric")


@pytest.fixture(params=NEEDS)
def tool(request: pytest.FixtureRequest, image: None) -> str:  # noqa: ARG001
    """One of the tools, if it can run here."""
    name = str(request.param)
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    can, otherwise = NEEDS[name]
    if not can():
        pytest.skip(otherwise)
    return name


def lines_of(tool: str) -> list[str]:
    """What the page says to type for a tool, from making its files to taking all down."""
    page = (ROOT / "docs" / "install.md").read_text()
    (made,) = re.findall(rf"^wormcast topo lab .* --for {tool} .*$", page, re.MULTILINE)
    commands = console("docs/install.md", "containerlab and Kathara")
    mine = ("kathara",) if tool == "kathara" else ("containerlab", "docker")
    return [made, *(line for line in commands if line.split()[0] in mine)]


@contextlib.contextmanager
def up(start: str, stop: str, directory: Path) -> Iterator[None]:
    try:
        at_a_terminal(start.split(), environment(), cwd=directory)
        yield
    finally:
        at_a_terminal(stop.split(), environment(), cwd=directory)


def test_a_file_goes_through_a_lab(tool: str, tmp_path: Path) -> None:
    made, start, ask, stop = lines_of(tool)
    run_block(made, tmp_path)
    on = ask.split()[: ask.split().index("wormcast")]
    # Kathará takes options for its own unless a command is one word.
    split = shlex.split if tool == "containerlab" else lambda command: [command]

    def do(command: str) -> str:
        done = subprocess.run(
            [*on, *split(command)], cwd=tmp_path, env=environment(), capture_output=True, text=True
        )
        return done.stdout

    with up(start, stop, tmp_path):
        deadline = time.monotonic() + SECONDS_MAX
        while do("wormcast host list --json").count('"state": "up"') < 9:
            assert time.monotonic() < deadline, do("wormcast host list")
            time.sleep(0.5)
        assert "9 hosts" in at_a_terminal(ask.split(), environment(), cwd=tmp_path)
        group = json.loads(do("wormcast group create --scheme switch 0 4 8 --json"))["id"]
        sent = do(f"wormcast send /usr/bin/env --group {group} --timeout 5 --json")
        # Nobody receives, and the sender is told of each member: all of them answered.
        assert sorted(member["host"] for member in json.loads(sent)["members"]) == [4, 8]
