"""A command on a host of a running fabric."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from wormcast.mininet import sandbox
from wormcast.mininet.keep import STATE_FILE
from wormcast.mininet.programs import BIN

PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NotFound(ValueError):
    """No such fabric or host; the text lists those there are."""


def run(name: str | None, out: Path | None, host: str, command: Sequence[str]) -> NoReturn:
    """Become the command. Raises `NotFound`, OSError."""
    if os.geteuid() != 0:
        raise NotFound(f"user id {os.geteuid()} may not enter a fabric; run as root")
    become(choose(sandbox.running(), name, out), host, command)


def choose(running: list[sandbox.Running], name: str | None, out: Path | None) -> sandbox.Running:
    """The one fabric that is meant. Raises `NotFound`."""
    if not running:
        raise NotFound("no fabric runs; start one with `wormcast up`")
    choices = "; ".join(f"--name {f.name} (--out {f.directory})" for f in running)
    meant = running
    if name is not None:
        meant = [f for f in running if f.name == name]
    if out is not None:
        meant = [f for f in running if f.directory == out.resolve()]
    if not meant:
        raise NotFound(
            f"no fabric runs {f'in {out}' if out else f'under the name {name!r}'}; running: {choices}"
        )
    if len(meant) > 1:
        raise NotFound(f"{len(meant)} fabrics are running; choose with --name or --out: {choices}")
    return meant[0]


def become(fabric: sandbox.Running, host: str, command: Sequence[str]) -> NoReturn:
    """Turn this process into the command on the host."""
    try:
        state: dict[str, Any] = json.loads((fabric.directory / STATE_FILE).read_text())
    except FileNotFoundError:
        raise NotFound(
            f"the fabric {fabric.name!r} is not up yet; its logs are in {fabric.directory}"
        ) from None
    if host not in state["hosts"]:
        raise NotFound(f"host {host!r} is not one of: {', '.join(state['hosts'])}")
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
