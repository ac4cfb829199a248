"""A private corner of the machine for one fabric.

The fabric runs in network, mount and process namespaces of its own, so that nothing
it makes (links, routes, daemons) can be seen from or left behind on the machine: when
its first process ends, however it ends, the kernel removes all of it.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

INSIDE = "WORMCAST_SANDBOX"
NEEDED = ("unshare", "ip", "tc", "mnexec", "ethtool")


class SandboxError(RuntimeError):
    """The machine cannot hold a fabric; the text says what is missing and how to get it."""


def inside() -> bool:
    """Whether this process already runs in a sandbox made by `enter`."""
    return os.environ.get(INSIDE) == "1"


def check_machine() -> None:
    """Raise `SandboxError` unless this process may make namespaces and has the tools."""
    if os.geteuid() != 0:
        raise SandboxError(
            f"user id {os.geteuid()} may not make network namespaces; run as root (sudo make demo)"
        )
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        raise SandboxError(f"not installed: {', '.join(missing)}; `make setup` installs them")


def enter(argv: list[str], state_file: Path | None = None) -> int:
    """Run this Python with arguments `argv` inside a new sandbox; return its exit code.

    `state_file`, when given, receives {"pid": n} with the pid of the sandbox's first
    process as seen from outside, for `mininet/on`, and is removed at the end.
    """
    check_machine()
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
    child = subprocess.Popen([*command, sys.executable, *argv], env={**os.environ, INSIDE: "1"})

    def forward(number: int, _frame: FrameType | None) -> None:
        # To the first process inside: unshare itself would die and take it along by SIGKILL.
        first = first_process(child.pid)
        os.kill(first if first is not None else child.pid, number)

    # Ctrl-C reaches the whole foreground process group by itself.
    previous = {signal.SIGTERM: signal.signal(signal.SIGTERM, forward)}
    previous[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if state_file is not None:
            state_file.parent.mkdir(parents=True, exist_ok=True)
            state_file.write_text(json.dumps({"unshare_pid": child.pid}) + "\n")
        return child.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if child.poll() is None:
            child.kill()
        if state_file is not None:
            state_file.unlink(missing_ok=True)


def first_process(unshare_pid: int) -> int | None:
    """Pid, seen from outside, of the sandbox's first process; None before it started."""
    try:
        children = Path(f"/proc/{unshare_pid}/task/{unshare_pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def prepare() -> None:
    """What the first process inside does: loopback up, no IPv6 chatter, its own /sys."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The first process of a namespace gets no signal it has no handler for.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for scope in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if setting.exists():
            setting.write_text("1\n")


def main() -> int:
    """`sandbox.py MODULE ARG…`: run a Python module in a sandbox of its own."""
    if len(sys.argv) < 2:
        print("usage: sandbox.py MODULE [ARG …]", file=sys.stderr)
        return 2
    try:
        if not inside():
            return enter([__file__, *sys.argv[1:]])
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 2
    prepare()
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
