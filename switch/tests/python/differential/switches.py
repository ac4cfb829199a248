"""Runs a case on a switch: a process with captures for ports, its entries over Thrift.

Nothing waits a fixed time for a switch to be done. A switch that has read its packets, none
of whose threads has run between two looks and all of whose threads sleep, is done.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import termios
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from differential import pcap
from differential.commands import Session
from differential.generate import STAMP_STEP_US, Case
from differential.program import Json, Program
from differential.state import read_state
from differential.thrift import Connection

START_TIMEOUT_S = 600.0
# What a switch uses of processors until it counts as one that comes to no end, for one packet and
# for all: time would say more of the machine than of the switch. BMv2 goes round some ten
# thousand times in half a second; wormcast-switch ends what comes again after a while, however
# slowly it was built.
BMV2_CPU_S = (0.5, 3.0)
CPU_S = (10.0, 30.0)
IDLE_S = 60.0  # after which a switch that only wakes now and then is at rest too
IDLE_CPU_S = 0.05  # that it uses at most in this time
STOP_TIMEOUT_S = 10.0
LOOK_S = 0.004
LOOKS = 3  # that nothing has happened between
QUEUE_DEPTH = 4096
DEVICE_BITS = 40
COUNTS = "counts.json"
STARTS_MAX = 3  # where another process takes the port that was free


class SwitchError(Exception):
    """A switch that did not start, or whose interface broke."""


class NotStarted(SwitchError):
    """A switch that does not take the program."""


@dataclass(frozen=True)
class Switch:
    """How a switch is started. `personality` is the name it is called by."""

    name: str
    binary: Path
    arguments: tuple[str, ...] = ()
    bmv2: bool = False

    def command(self, directory: Path, port: int, device: int, case: Case, log: Path | None) -> list[str]:
        """Its command line, where the captures are in the working directory."""
        called = self.binary
        if not self.bmv2:
            # The name that it is called by makes it behave as simple_switch does.
            called = directory / "simple_switch"
            if not called.exists():
                called.symlink_to(self.binary)
        words = [str(called), *self.arguments, "--use-files", "0", "--thrift-port", str(port)]
        words += ["--device-id", str(device)]
        for one in case.ports:
            words += ["-i", f"{one}@{one}"]
        if self.bmv2:
            # Each of several at a time needs a socket of its own.
            words += ["--notifications-addr", f"ipc://{directory}/notifications.ipc"]
        else:
            words += ["--statistics", COUNTS]
        words += ["--log-level", "trace" if log else "off"]
        if log:
            words += ["--log-file", str(log), "--log-flush"]
        return [*words, "program.json"]


@dataclass
class Outcome:
    """What a switch has done. `crash` says how it ended if it did so by itself; `endless` is
    the packet that it did not come to rest after, the last one if they came together. `counts`
    are those of wormcast-switch's pipeline, by name."""

    frames: dict[int, list[bytes]] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    state: Json = field(default_factory=dict)
    crash: str | None = None
    endless: int | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Frames of all ports."""
        return sum(len(frames) for frames in self.frames.values())


class Ports:
    """TCP ports for switches, each once: below those that the kernel gives to connections, from
    where this process has its place, so that two fuzzers are unlikely to meet."""

    FIRST, COUNT = 12_000, 18_000

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.next = os.getpid() * 97

    def take(self) -> int:
        """A port that nobody listens on now."""
        for _ in range(self.COUNT):
            with self.lock:
                self.next += 1
                port = self.FIRST + self.next % self.COUNT
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
        raise SwitchError(f"no free port from {self.FIRST} on")


PORTS = Ports()


def run(
    switch: Switch,
    program: Program,
    case: Case,
    directory: Path,
    log: Path | None = None,
    patience: float = 1.0,
) -> Outcome:
    """Runs a case in a directory, which holds the captures afterwards. Raises SwitchError.

    `patience`: how many times what a switch may use of processors otherwise.
    """
    for attempt in range(STARTS_MAX):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        try:
            with Running(switch, program, case, directory, log, patience) as running:
                outcome = running.outcome()
            outcome.counts = read_counts(directory / COUNTS)
            return outcome
        except SwitchError:
            if attempt == STARTS_MAX - 1:
                raise
    raise AssertionError("unreachable")


class Running:
    """A switch that runs a case. A context manager; leaving it ends the switch."""

    def __init__(
        self,
        switch: Switch,
        program: Program,
        case: Case,
        directory: Path,
        log: Path | None = None,
        patience: float = 1.0,
    ) -> None:
        self.switch, self.program, self.case, self.directory = switch, program, case, directory
        text = program.cleaned_text if switch.bmv2 else program.text
        (directory / "program.json").write_bytes(text)
        # BMv2 reads the first frame of each capture before it starts, and waits where there is
        # none yet: that of the first port holds it back until the entries are there.
        frames = case.packets
        self.gate = frames[0][0] if frames and case.paced else case.ports[0]
        self.pipe = -1
        for port in case.ports:
            path = directory / f"{port}_in.pcap"
            if port == self.gate:
                os.mkfifo(path)
                self.pipe = os.open(path, os.O_RDWR)
                os.write(self.pipe, pcap.HEADER)
            else:
                stamped = enumerate(frames)
                pcap.write(path, [(at * STAMP_STEP_US, data) for at, (to, data) in stamped if to == port])
        one, all_ = BMV2_CPU_S if switch.bmv2 else CPU_S
        self.cpu_s = one * patience, all_ * patience
        self.port = PORTS.take()
        self.device = secrets.randbits(DEVICE_BITS)  # so that no other switch is taken for this one
        command = switch.command(directory, self.port, self.device, case, log)
        with (directory / "console").open("wb") as console:
            self.process = subprocess.Popen(
                command, cwd=directory, stdin=subprocess.DEVNULL, stdout=console, stderr=console
            )

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        if self.pipe >= 0:
            os.close(self.pipe)
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def outcome(self) -> Outcome:
        """Writes entries, sends packets, reads what came of it."""
        result = Outcome()
        with self._connect() as connection:
            session = Session(
                connection, profiles={one.name: one.profile or "" for one in self.program.tables}
            )
            try:
                session.send({"do": "set_queue_depth", "depth": QUEUE_DEPTH})
                result.endless = self._send(session, result.answers)
                if result.endless is None and self.process.poll() is None:
                    result.state = read_state(session, self.program)
            except OSError as error:
                if self._ended() is None:
                    raise SwitchError(f"{self.switch.name}: {error}\n{self._console()}") from error
        result.crash = self._ended()
        if result.crash:
            result.crash += f"\n{self._console()}"
        result.frames = {port: pcap.read(self.directory / f"{port}_out.pcap") for port in self.case.ports}
        return result

    def _ended(self) -> str | None:
        """How the process has ended; it is given a moment, since its connections end first."""
        if self.process.poll() is None:
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                return None
        return f"{self.switch.name} ended with status {self.process.returncode}"

    def _console(self) -> str:
        return (self.directory / "console").read_text(errors="replace")[-1500:]

    def _connect(self) -> Connection:
        until = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                connection = Connection(self.port)
                # BMv2 listens before it knows this service.
                connection.call("simple_switch", "get_time_elapsed_us")
                device = connection.call("standard", "bm_mgmt_get_info")[1]
                if device != self.device:
                    connection.close()
                    raise OSError(f"device {device} listens on the port of {self.port}")
            except OSError as error:
                if self.process.poll() is not None:
                    raise NotStarted(f"{self.switch.name} did not start\n{self._console()}") from error
                if time.monotonic() > until:
                    raise SwitchError(f"{self.switch.name} does not answer\n{self._console()}") from error
                time.sleep(LOOK_S)
            else:
                return connection

    def _send(self, session: Session, answers: list[str]) -> int | None:
        """Lets the packets in, with the commands before and between them, whose answers it adds;
        gives the packet after which the switch does not come to rest."""
        commands = deque(self.case.commands)

        def send_until(after: int) -> None:
            while commands and commands[0].get("after", 0) <= after:
                answers.append(session.send(commands.popleft()))

        send_until(0)
        frames = [(at, data) for at, (port, data) in enumerate(self.case.packets) if port == self.gate]
        if not self._reads():
            return None
        for at, data in frames:
            _write(self.pipe, pcap.record(at * STAMP_STEP_US, data))
            if self.case.paced and not self._rest(self.cpu_s[0]):
                return at
            if self.case.paced:
                send_until(at + 1)
        os.close(self.pipe)
        self.pipe = -1
        if not self._rest(self.cpu_s[1]):
            return len(self.case.packets) - 1
        while commands and self.process.poll() is None:
            answers.append(session.send(commands.popleft()))
        return None

    def _reads(self) -> bool:
        """Waits until the switch has opened the pipe: what is in a pipe that nobody has open
        is gone. False where the switch has ended."""
        until = time.monotonic() + START_TIMEOUT_S
        path = self.directory / f"{self.gate}_in.pcap"
        while not _has_open(self.process.pid, path):
            if self.process.poll() is not None:
                return False
            if time.monotonic() > until:
                raise SwitchError(f"{self.switch.name} does not open {path}")
            time.sleep(LOOK_S)
        return True

    def _unread(self) -> bool:
        return self.pipe >= 0 and unread(self.pipe) > 0

    def _rest(self, cpu_s: float) -> bool:
        """Waits until nothing moves; False where the switch uses that much of processors before.

        One that does next to nothing for a long time, but wakes now and then, is at rest too;
        one that is busy and gets little of a processor, or was stopped, is not.
        """
        used = idle_used = cpu_time_s(self.process.pid)
        idle_since = time.monotonic()
        before: Any = None
        same = 0
        while same < LOOKS:
            # What is in the pipe yet will wake it.
            now = None if self._unread() else activity(self.process.pid)
            same = same + 1 if now is not None and now == before else 0
            before = now
            if self.process.poll() is not None:
                return True
            cpu = cpu_time_s(self.process.pid)
            if cpu - used > cpu_s:
                return False
            if now is None or cpu - idle_used > IDLE_CPU_S:
                idle_since, idle_used = time.monotonic(), cpu
            elif time.monotonic() - idle_since > IDLE_S:
                return True
            time.sleep(LOOK_S)
        return True


def unread(pipe: int) -> int:
    """Bytes that are in a pipe."""
    count = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return int.from_bytes(count, sys.byteorder)


def read_counts(path: Path) -> dict[str, int]:
    """The counts of the pipeline that wormcast-switch leaves; none of a switch that left none."""
    try:
        return dict(json.loads(path.read_text())["pipeline"])
    except (OSError, ValueError, KeyError):
        return {}


def cpu_time_s(process: int) -> float:
    """What a process has used of processors; 0 of one that is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def _has_open(process: int, path: Path) -> bool:
    for descriptor in Path(f"/proc/{process}/fd").glob("*"):
        with contextlib.suppress(OSError):
            if descriptor.samefile(path):
                return True
    return False


def activity(process: int) -> tuple[tuple[str, str], ...] | None:
    """How often each thread of a process has run; None while one does."""
    seen = []
    for thread in Path(f"/proc/{process}/task").glob("*"):
        try:
            status = (thread / "status").read_text()
        except OSError:
            return None
        if "\nState:\tS" not in status:
            return None
        seen.append((thread.name, status[status.index("voluntary_ctxt_switches") :]))
    return tuple(sorted(seen))
