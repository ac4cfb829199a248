"""A command on a host of a running fabric."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from wormcast.mininet import choice, sandbox
from wormcast.mininet.programs import BIN

PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def run(name: str | None, out: Path | None, host: str, command: Sequence[str]) -> NoReturn:
    """Become the command. Raises `NotFound`, OSError."""
    become(choice.find(name, out), host, command)


def become(fabric: sandbox.Running, host: str, command: Sequence[str]) -> NoReturn:
    """Turn this process into the command on the host."""
    state = choice.state_of(fabric)
    if host not in state["hosts"]:
        raise choice.NotFound(f"host {host!r} is not one of: {choice.name_all(list(state['hosts']))}")
    enter = ["nsenter", "--target", str(fabric.first_pid), "--net", "--mount", "--pid"]
    enter += ["ip", "netns", "exec", state["hosts"][host]]
    # By its path: a folder taken along from outside would be on another mount than the same path inside.
    here = f"--chdir={Path.cwd()}"
    environment = [
        f"PATH={BIN}:{os.environ.get('PATH', PATH_DEFAULT)}",
        f"WORMCAST_SOCKET={state['sockets'][host]}",
        f"WORMCAST_API={state['api']}",
    ]
    os.execvp("nsenter", [*enter, "env", here, *environment, *command])
