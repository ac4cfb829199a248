"""Mininet's prompt on a Wormcast fabric."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from typing import TYPE_CHECKING

from mininet.cli import CLI
from wormcast.mininet.parts import Parts

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
        """Start again what has ended or was stopped: start h3, start s1, start controller"""
        with self.fabric.changing:
            Parts(self.fabric).start(line.split())

    def do_stop(self, line: str) -> None:
        """Stop an agent, a switch or the controller: stop h3, stop s1, stop controller"""
        with self.fabric.changing:
            Parts(self.fabric).stop(line.split())

    def do_link(self, line: str) -> None:
        """Cut or mend the links between two nodes: link s0 s1 down, link s0 s1 up"""
        *ends, state = line.split() or [""]
        if len(ends) != 2 or state not in ("up", "down"):
            raise ValueError("write it as: link s0 s1 down, or up")
        with self.fabric.changing:
            (Parts(self.fabric).mend if state == "up" else Parts(self.fabric).cut)(ends)

    def _release_hosts(self) -> None:
        """End what a command that failed left running on the hosts: no other could run there."""
        for node in self.mn.values():
            deadline = time.monotonic() + RELEASE_SECONDS_MAX
            while node.waiting and time.monotonic() < deadline:
                node.sendInt()
                node.monitor(timeoutms=500)
