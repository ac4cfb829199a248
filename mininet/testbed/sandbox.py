"""A private corner of the machine for one fabric.

The fabric runs in network, mount and process namespaces of its own, with a /run of its
own, so that nothing it makes (links, routes, daemons, sockets) can be seen from or left
behind on the machine: when its first process ends, however it ends, the kernel removes
all of it. The first process ends when whoever started it does: it holds one end of a
pipe, the lifeline, and signals for it come over that pipe, so that none is lost while it
is not yet there to handle them.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from wormcast.mininet.doors import Door, mark

INSIDE = "WORMCAST_SANDBOX"
LIFELINE = "WORMCAST_SANDBOX_LIFELINE"
FABRIC = "WORMCAST_SANDBOX_FABRIC"
NEEDED = ("unshare", "ip", "tc", "mnexec", "ethtool", "mount", "nsenter")
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RUN_DIRECTORY = Path("/run")
STARTTIME = 19
"""Of /proc/PID/stat, counted behind the name of the process."""


class SandboxError(RuntimeError):
    """The machine cannot hold a fabric; the text says what is missing and how to get it."""


@dataclass(frozen=True)
class Running:
    """A sandbox with a fabric in it. `first_pid`: its first process, seen from here. `started`: when it started, in
    the kernel's ticks."""

    first_pid: int
    name: str
    directory: Path
    started: int


def inside() -> bool:
    """Whether this process already runs in a sandbox made by `enter`."""
    return os.environ.get(INSIDE) == "1"


def check_machine() -> None:
    """Raise `SandboxError` unless this process may make namespaces and has the tools."""
    if os.geteuid() != 0:
        raise SandboxError(f"user id {os.geteuid()} may not make network namespaces; run as root")
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        raise SandboxError(
            f"not installed: {', '.join(missing)}; with apt: mininet iproute2 ethtool util-linux"
        )


# --- from outside -------------------------------------------------------------------------


def claim(directory: Path) -> bool:
    """Take a directory for this process until it ends; False: another one has it.

    What it makes for that is removed at the end if it is empty, as where the fabric never was up. Raises
    `SandboxError` where it cannot be a directory.
    """
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    if (
        file := next((path for path in (directory, *directory.parents) if path.exists()), directory)
    ).is_file():
        raise SandboxError(f"{file} is a file; --out names a directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SandboxError(
            f"cannot make the directory {directory}: {error.strerror}; --out names another"
        ) from None
    for path in reversed(made):  # the innermost first, since the last that is registered comes first
        atexit.register(_remove_empty, path)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    return True


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        directory.rmdir()


def enter(*, name: str = "", directory: Path | None = None, through: Sequence[Door] = ()) -> int:
    """Run this same command line again inside a new sandbox; return its exit code.

    `name` and `directory` are those of the fabric; `running` finds it by them. `through`: its doors.
    """
    check_machine()
    reading, writing = os.pipe()
    marks = {INSIDE: "1", LIFELINE: str(reading), FABRIC: "", **mark(through)}
    if directory is not None:
        marks[FABRIC] = json.dumps({"name": name, "directory": str(directory)})

    def pass_on(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(OSError):  # it has ended
            os.write(writing, bytes([number]))

    previous = {number: signal.signal(number, pass_on) for number in STOPS}
    # Ctrl-C reaches the whole foreground process group; here it has to come over the lifeline.
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    command += ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
    try:
        with _terminal_kept():
            child = subprocess.Popen(
                [*command, sys.executable, *sys.orig_argv[1:]],
                env={**os.environ, **marks},
                pass_fds=[reading, *(door.descriptor for door in through)],
            )
            os.close(reading)
            for door in through:
                os.close(door.descriptor)
            code = child.wait()
            return code if code >= 0 else 128 - code
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.close(writing)


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """Leave the terminal as it was found, also after a prompt or a progress bar was killed."""
    try:
        settings = termios.tcgetattr(0)
    except (termios.error, OSError):
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(termios.error, OSError):
            if os.tcgetpgrp(0) == os.getpgrp():  # in the background this would stop us
                termios.tcsetattr(0, termios.TCSANOW, settings)
                if sys.stderr.isatty():
                    sys.stderr.write("\x1b[?25h")  # the cursor


def running() -> list[Running]:
    """The fabrics that run on this machine, by name."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError, ValueError, KeyError):
                mark = _mark_of_first(process)
                if mark is not None:
                    started = int((process / "stat").read_text().rpartition(")")[2].split()[STARTTIME])
                    found.append(Running(int(process.name), mark["name"], Path(mark["directory"]), started))
    return sorted(found, key=lambda one: (one.name, one.directory))


def _mark_of_first(process: Path) -> dict[str, str] | None:
    """What `enter` wrote into the environment of a sandbox's first process; None for any other."""
    for line in (process / "status").read_text().splitlines():
        if line.startswith("NSpid:"):
            pids = line.split()[1:]
            if len(pids) < 2 or pids[-1] != "1":
                return None
    prefix = f"{FABRIC}=".encode()
    for variable in (process / "environ").read_bytes().split(b"\0"):
        if variable.startswith(prefix) and variable != prefix:
            mark: dict[str, str] = json.loads(variable.removeprefix(prefix))
            return mark
    return None


# --- inside -------------------------------------------------------------------------------

_remove: list[Path] = []
P4RUNTIME_PORTS = range(50051, 50051 + 1024)
"""Of switches, by their ids."""

_on_interrupt: list[Callable[[], None]] = []


def prepare(on_interrupt: Callable[[], None]) -> None:
    """What the first process inside does: loopback up, no IPv6 chatter, a /sys and a /run of its own.

    From then on SIGTERM, SIGHUP and the end of whoever started it end it at once, in the
    midst of whatever it does; Ctrl-C calls `on_interrupt`, on another thread.
    """
    call_on_interrupt(on_interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: leave(128 + number))
    # Not ignored: shells and programs started from here would inherit that.
    signal.signal(signal.SIGINT, lambda _number, _frame: None)
    lifeline = os.environ.pop(LIFELINE, None)
    if lifeline is not None:
        os.set_inheritable(int(lifeline), False)
        threading.Thread(target=_obey, args=(int(lifeline),), name="lifeline", daemon=True).start()
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", RUN_DIRECTORY], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # A client that asks for any port must not be given one that a switch is about to listen at.
    ports = Path("/proc/sys/net/ipv4/ip_local_reserved_ports")
    ports.write_text(f"{P4RUNTIME_PORTS.start}-{P4RUNTIME_PORTS.stop - 1}\n")
    for scope in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if setting.exists():
            setting.write_text("1\n")


def fabric_directory() -> Path:
    """The directory that `enter` was given for the fabric of this sandbox."""
    return Path(json.loads(os.environ[FABRIC])["directory"])


def call_on_interrupt(action: Callable[[], None]) -> None:
    """Have Ctrl-C do this from now on."""
    _on_interrupt[:] = [action]


def remove_at_end(path: Path) -> None:
    """Have `leave` remove a file."""
    _remove.append(path)


def leave(code: int) -> None:
    """End the sandbox now, from any thread; the kernel ends and removes all that is in it."""
    for path in _remove:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            stream.flush()
    os._exit(code)


def _obey(lifeline: int) -> None:
    while received := os.read(lifeline, 1):
        if received[0] == signal.SIGINT:
            _on_interrupt[0]()
        else:
            leave(128 + received[0])
    leave(128 + signal.SIGKILL)


def main() -> int:
    """`python -m wormcast.mininet.sandbox MODULE ARG…`: run a Python module in a sandbox of its own."""
    if len(sys.argv) < 2:
        print("usage: python -m wormcast.mininet.sandbox MODULE [ARG …]", file=sys.stderr)
        return 2
    try:
        if not inside():
            return enter()
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 2
    # Once for each Ctrl-C, though the terminal sends one here too.
    signal.signal(signal.SIGUSR1, signal.default_int_handler)
    prepare(lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1))
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
