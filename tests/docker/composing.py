"""Docker and Compose for the tests: what is here, and commands with settings of their own.

A running Docker daemon is used; where there is none, one is started for as long as the tests run. No image
is pulled: the base is a fresh Debian, which debootstrap makes.
"""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "packages"), str(ROOT / "tests" / "python")]

import clean  # noqa: E402

BASE = f"wormcast-test-debian:{clean.suite()}"
REST_PORT, P4RUNTIME_PORTS = 18080, "15051-15066"
SECONDS_MAX = 3600.0
"""Only against hanging for ever."""


def missing() -> str | None:
    """What keeps this machine from running these tests; None: nothing."""
    if not (shutil.which("docker") and shutil.which("dockerd")):
        return "docker is not installed"
    if not compose_commands():
        return "neither `docker compose` nor docker-compose is installed"
    return clean.missing()


def compose_commands() -> list[list[str]]:
    """Compose, version 2 and version 1, those that are here."""
    found = []
    if (
        shutil.which("docker")
        and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    ):
        found.append(["docker", "compose"])
    if shutil.which("docker-compose"):
        found.append(["docker-compose"])
    return found


class Compose:
    """Compose on docker-compose.yml, with settings of its own."""

    def __init__(self, command: list[str], base: str) -> None:
        self.command = command
        self.settings = {
            "BASE": base,
            "COMPOSE_PROJECT_NAME": f"wormcast-test-{os.getpid()}",
            "REST_PORT": str(REST_PORT),
            "P4RUNTIME_PORTS": P4RUNTIME_PORTS,
            "DOCKER_BUILDKIT": "0",  # Debian's Docker has no other builder
        }

    def __call__(
        self, *arguments: str, fine: bool = True, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end; where `fine`, it must succeed."""
        done = subprocess.run(
            [*self.command, *arguments],
            cwd=ROOT,
            env={**os.environ, **self.settings, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert not fine or done.returncode == 0, f"{arguments}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
        return done

    def on(self, host: str, *command: str) -> str:
        """What a command on a host prints."""
        return self("exec", "-T", "fabric", "on", host, *command).stdout


def at_a_terminal(command: list[str], environment: dict[str, str], typed: str = "", cwd: Path = ROOT) -> str:
    """What a command prints at a terminal of its own, where `typed` is typed. It must succeed."""
    ours, its = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as screen:
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdin=its, stdout=its, stderr=its)
        os.close(its)
        screen.write(typed.encode())
        printed = b""
        with contextlib.suppress(OSError):  # how the kernel says that the other end is closed
            while more := screen.read(65536):
                printed += more
    assert process.wait(SECONDS_MAX) == 0, f"{command}\n{printed.decode(errors='replace')[-4000:]}"
    return printed.decode(errors="replace")
