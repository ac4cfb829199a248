"""Mininet's prompt on a Wormcast fabric."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from typing import TYPE_CHECKING

from mininet.cli import CLI

if TYPE_CHECKING:
    from wormcast.mininet.fabric import Fabric

RELEASE_SECONDS_MAX = 10.0


class Prompt(CLI):
    """Mininet's prompt. A command that fails says so; the fabric and the prompt go on."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        # For `sh` and `py` too.
        os.environ.update(fabric.environment())
        super().__init__(fabric.net)

    def onecmd(self, line: str) -> bool:
        """One command; true at the end."""
        try:
            return bool(super().onecmd(line))
        # Mininet raises bare exceptions, and leaves by `exit` where a tool is not installed.
        except (Exception, SystemExit) as error:
            print(f"*** {line.strip()}: {error or type(error).__name__}")
            self._release_hosts()
            return False

    def do_wormcast(self, line: str) -> None:
        """Run wormcast with this fabric's controller: wormcast topo show (on a host: h0 wormcast status)"""
        subprocess.run(["wormcast", *shlex.split(line)])

    def do_start(self, line: str) -> None:
        """Start again what has ended: start h3, start s1, start controller"""
        self.fabric.start_again(line.strip())

    def _release_hosts(self) -> None:
        """End what a command that failed left running on the hosts: no other could run there."""
        for node in self.mn.values():
            deadline = time.monotonic() + RELEASE_SECONDS_MAX
            while node.waiting and time.monotonic() < deadline:
                node.sendInt()
                node.monitor(timeoutms=500)
