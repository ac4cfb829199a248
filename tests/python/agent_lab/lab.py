"""Starts a fabric of real agents and talks to it from outside its namespace."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = [sys.executable, "-m", "wormcast.cli.main"]


def agent_binary() -> str | None:
    """WORMCAST_AGENT, the one on the PATH, or the one built here."""
    built = REPOSITORY / "target" / "release" / "wormcast-agent"
    return (
        os.environ.get("WORMCAST_AGENT")
        or shutil.which("wormcast-agent")
        or (str(built) if built.exists() else None)
    )


class Lab:
    """Hosts 0 to n-1; the socket of host h is ``socket(h)``."""

    def __init__(self, hosts: int, groups: list[dict[str, Any]], *options: str) -> None:
        binary = agent_binary()
        if binary is None:
            pytest.skip("wormcast-agent is not built; `make build`, or set WORMCAST_AGENT")
        if os.geteuid() != 0:
            pytest.skip("network namespaces need root")
        # Not pytest's own directory: the path of a Unix socket must be short.
        self._directory = tempfile.TemporaryDirectory(prefix="wormcast-")
        self.directory = Path(self._directory.name)
        script = str(Path(__file__).with_name("fabric.py"))
        command = ["unshare", "--net", "--kill-child", sys.executable, script, str(self.directory), binary]
        command += [str(hosts), json.dumps(groups), *options]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            self.close()
            pytest.fail("the fabric does not start")

    def socket(self, host: int) -> Path:
        """Of the agent of a host."""
        return self.directory / f"h{host}.sock"

    def log(self, host: int) -> str:
        """What the agent of a host said."""
        return (self.directory / f"h{host}.log").read_text()

    def agent(self, word: str, host: int) -> None:
        """`kill` or `start` the agent of a host."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(word, host, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n"

    def plan(self, groups: list[dict[str, Any]]) -> None:
        """Other groups from now on; all agents have them when this returns."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("plan", json.dumps(groups), file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n"

    def start(
        self, host: int | None, *arguments: str, output: Any = subprocess.PIPE, **options: Any
    ) -> subprocess.Popen[bytes]:
        """A `wormcast` command beside an agent."""
        command = [*options.pop("program", PROGRAM), *arguments]
        if host is not None:
            command += ["--socket", str(self.socket(host))]
        options = {"stderr": subprocess.PIPE, "env": environment(), **options}
        return subprocess.Popen(command, stdout=output, **options)

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._directory.cleanup()


def environment() -> dict[str, str]:
    """For commands of this checkout."""
    return {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "controller"),
        "WORMCAST_SOCKET": "/nowhere/agent.sock",
    }


def group(number: int, scheme: str, members: list[int]) -> dict[str, Any]:
    """A group as agent.proto has it."""
    structure: dict[str, Any] = {"scheme": scheme, "order": members}
    if scheme == "tree":
        structure["tree_edges"] = [
            {"parent": parent, "child": child} for parent, child in itertools.pairwise(members)
        ]
    if scheme == "k-binomial":
        structure["k"] = 1
    return {"id": number, "name": f"group{number}", "members": members, "structures": [structure]}
