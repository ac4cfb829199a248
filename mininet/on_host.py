"""Run a command on a host of a fabric that mininet/run.py keeps up: mininet/on h3 wormcast status"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import sandbox
from run import STATE_FILE

BIN = Path(__file__).resolve().parent.parent / ".venv" / "bin"
PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NotFound(ValueError):
    """No such fabric or host; the text lists those there are."""


def main() -> int:
    """Become the command; return only when there is no such fabric or host."""
    parser = argparse.ArgumentParser(prog="mininet/on", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--name", help="name of the fabric, where several run")
    which.add_argument("--out", type=Path, help="directory of the fabric")
    parser.add_argument("host", metavar="HOST")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND [ARG …]")
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("there is no command; for example: mininet/on h0 wormcast status")
    try:
        if os.geteuid() != 0:
            raise NotFound(f"user id {os.geteuid()} may not enter a fabric; run as root")
        fabric = choose(sandbox.running(), options.name, options.out)
        become(fabric, options.host, command)
    except (NotFound, OSError) as error:
        print(f"on: {error}", file=sys.stderr)
    return 2


def choose(running: list[sandbox.Running], name: str | None, out: Path | None) -> sandbox.Running:
    """The one fabric that is meant. Raises `NotFound`."""
    if not running:
        raise NotFound("no fabric runs; start one with mininet/run.py")
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


def become(fabric: sandbox.Running, host: str, command: list[str]) -> None:
    """Turn this process into the command on the host."""
    try:
        state: dict[str, Any] = json.loads((fabric.directory / STATE_FILE).read_text())
    except FileNotFoundError:
        raise NotFound(
            f"the fabric {fabric.name!r} is not up yet; its logs are in {fabric.directory}"
        ) from None
    if host not in state["hosts"]:
        raise NotFound(f"host {host!r} is not one of: {', '.join(state['hosts'])}")
    enter = ["nsenter", "--target", str(fabric.first_pid), "--net", "--mount", "--pid", "--wd=."]
    enter += ["mnexec", "-a", str(state["hosts"][host])]
    environment = [
        f"PATH={BIN}:{os.environ.get('PATH', PATH_DEFAULT)}",
        f"WORMCAST_SOCKET={state['sockets'][host]}",
        f"WORMCAST_API={state['api']}",
    ]
    os.execvp("nsenter", [*enter, "env", *environment, *command])


if __name__ == "__main__":
    sys.exit(main())
