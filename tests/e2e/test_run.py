"""`wormcast up` and `wormcast on`: who tries faults kills things, and what is left when all ends is nothing."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import finsy
import httpx
import pytest
from wormcast.mininet import programs, sandbox

ROOT = Path(__file__).resolve().parent.parent.parent
UP = [programs.find("wormcast"), "up"]
ON = [programs.find("wormcast"), "on"]
SECONDS_MAX = 600.0
"""Only against hanging for ever."""


def outside() -> dict[str, str]:
    """The environment of someone who is in no sandbox and under no other make, as users are."""
    marks = {sandbox.INSIDE, sandbox.LIFELINE, sandbox.FABRIC, "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    return {name: value for name, value in os.environ.items() if name not in marks}


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def processes_of(directory: Path) -> list[int]:
    """Processes that began in the sandbox of the fabric in `directory`."""
    mark = str(directory).encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                variables = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(v.startswith(sandbox.FABRIC.encode() + b"=") and mark in v for v in variables):
                found.append(int(process.name))
    return found


def daemon(directory: Path, *arguments: str) -> int:
    """Pid of the process of a fabric whose command line has all of these."""
    wanted = [argument.encode() for argument in arguments]
    for pid in processes_of(directory):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if all(any(want in word for word in words) for want in wanted) and b"mnexec" not in words[0]:
            return pid
    raise AssertionError(f"no process {arguments}")


TAKE_TERMINAL = """
import os, signal, sys
os.close(os.open(os.ttyname(0), os.O_RDWR))
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Starts a program as a shell does: the terminal is its own, and no signal is ignored."""


class Run:
    """One `wormcast up`, with a terminal of its own."""

    def __init__(self, cwd: Path, *arguments: str, command: Sequence[str] = ("up",)) -> None:
        (cwd / "tmp").mkdir(exist_ok=True)
        self.terminal, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, programs.find("wormcast"), *command, *arguments],
            cwd=cwd,
            env={**outside(), "TMPDIR": str(cwd / "tmp")},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.text = ""

    def read(self) -> bool:
        """Take what there is; False at the end."""
        ready, _, _ = select.select([self.terminal], [], [], 0.1)
        if not ready:
            return True
        try:
            new = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", new.decode(errors="replace"))
        return bool(new)

    def expect(self, text: str) -> None:
        """Read until there is `text`; what came up to it is forgotten."""
        deadline = time.monotonic() + SECONDS_MAX
        while text not in self.text:
            assert self.read(), f"no {text!r} in: {self.text}"
            assert time.monotonic() < deadline, f"no {text!r} in: {self.text}"
        self.text = self.text.partition(text)[2]

    def type(self, line: str) -> None:
        os.write(self.terminal, f"{line}\n".encode())

    def wait(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + SECONDS_MAX
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < deadline, self.text
        while select.select([self.terminal], [], [], 0)[0] and self.read():
            pass
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.terminal >= 0:
            os.close(self.terminal)
            self.terminal = -1


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start one in a directory of the test."""
    started: list[Run] = []

    def begin(*arguments: str) -> Run:
        started.append(Run(tmp_path, "--topology", "line:2", *arguments))
        return started[-1]

    yield begin
    for run in started:
        run.close()


def on(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ON, *arguments], env=outside(), capture_output=True, text=True, timeout=SECONDS_MAX
    )


def test_fabrics_beside_each_other_and_on_finds_them(start: Callable[..., Run], tmp_path: Path) -> None:
    none = on("h0", "true")
    assert (none.returncode, none.stderr) == (2, "Error: no fabric runs; start one with `wormcast up`\n")
    first, second = start(), start()
    first.expect("fabric up")
    second.expect("fabric up")
    assert {f.name for f in sandbox.running()} == {"run", "run-2"}

    unknown = on("--name", "nosuch", "h0", "true")
    assert unknown.returncode == 2
    assert "nosuch" in unknown.stderr
    assert "--name run-2" in unknown.stderr
    sockets = {
        on(*which, "h1", "printenv", "WORMCAST_SOCKET").stdout
        for which in (("--name", "run"), ("--name", "run-2"))
    }
    assert len(sockets) == 2
    by_directory = on("--out", str(tmp_path / "out" / "run-2"), "h1", "wormcast", "status", "--json")
    assert by_directory.returncode == 0, by_directory.stderr
    assert json.loads(by_directory.stdout)["host"] == 1
    host = on("--name", "run", "h9", "true")
    assert host.returncode == 2
    assert "'h9' is not one of: h0, h1" in host.stderr
    assert on("--name", "run", "h0", "sh", "-c", "exit 7").returncode == 7

    taken = start("--name", "run")
    assert taken.wait() == 2
    assert "give this one another --name or --out" in taken.text
    second.process.send_signal(signal.SIGTERM)
    assert second.wait() == 128 + signal.SIGTERM
    alone = on("h0", "wormcast", "status")
    assert alone.returncode == 0, alone.stderr


@pytest.mark.parametrize("command", [["status"], ["topo", "show"]])
def test_who_forgets_to_go_to_a_host_is_told(start: Callable[..., Run], command: list[str]) -> None:
    def ask() -> str:
        done = subprocess.run(
            [programs.find("wormcast"), *command],
            env=outside(),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert done.returncode != 0
        return done.stderr

    told = "; the fabric 'run' runs here: put `wormcast on h0` before the command\n"
    assert "runs here" not in ask()
    start().expect("fabric up")
    assert ask().endswith(told)


def test_it_stays_up_and_says_what_died(start: Callable[..., Run], tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    run = start("--out", str(out))
    run.expect("fabric up")
    for name, pid in (
        ("the agent of h1", daemon(out, "wormcast-agent", "h1-eth0")),
        ("switch s1", daemon(out, "wormcast-switch", "s1-p0")),
        ("the controller", daemon(out, "controller", "run")),
    ):
        os.kill(pid, signal.SIGKILL)
        run.expect(f"{name} ended (SIGKILL)")
        run.expect("the fabric stays up")
    assert run.process.poll() is None
    status = on("--out", str(out), "h0", "wormcast", "status", "--json")
    assert status.returncode == 0, status.stderr
    os.write(run.terminal, b"\x03")
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 0
    until(lambda: not processes_of(out), "processes are left")


def test_a_command_that_fails_at_the_prompt_ends_nothing(start: Callable[..., Run], tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    run = start("--cli", "--out", str(out))
    run.expect("mininet>")
    run.type("iperf h0 h1")
    run.expect("*** iperf h0 h1: ")
    run.expect("mininet>")
    run.type("h1 wormcast status")  # its shell is free again, and knows wormcast
    run.expect("h1: host 1, wormcast-agent")
    run.expect("mininet>")
    run.type("wormcast topo show")
    run.expect("2 hosts")
    run.expect("mininet>")
    run.type("iperf h0 nosuch")
    run.expect("mininet>")
    run.type("py net['h0'].no_such_thing()")
    run.expect("mininet>")
    os.kill(daemon(out, "wormcast-agent", "h1-eth0"), signal.SIGKILL)
    run.expect("the agent of h1 ended (SIGKILL)")
    run.type("start h1")
    run.expect("mininet>")
    run.type("start h1")
    run.expect("h1 is running")
    run.expect("mininet>")
    run.type("start h7")
    run.expect("'h7' is not")
    run.expect("mininet>")
    run.type("exit")
    assert run.wait() == 0, run.text


def test_ctrl_c_at_the_prompt_ends_what_runs_there_and_no_daemon(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    out = tmp_path / "fabric"
    run = start("--cli", "--out", str(out))
    run.expect("mininet>")
    before = set(processes_of(out))
    run.type("h0 sleep 1000")
    until(lambda: _has(out, b"sleep"), "sleep does not run")
    os.write(run.terminal, b"\x03")
    run.expect("mininet>")
    until(lambda: not _has(out, b"sleep"), "sleep still runs")
    assert before <= set(processes_of(out))
    run.type("h0 wormcast status")
    run.expect("h0: host 0")


def _has(out: Path, word: bytes) -> bool:
    for pid in processes_of(out):
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0] == word:
                return True
        except OSError:
            continue
    return False


ENDS = {
    "SIGINT": lambda run, _out: run.process.send_signal(signal.SIGINT),
    "SIGTERM": lambda run, _out: run.process.send_signal(signal.SIGTERM),
    "SIGHUP": lambda run, _out: run.process.send_signal(signal.SIGHUP),
    "SIGQUIT": lambda run, _out: run.process.send_signal(signal.SIGQUIT),
    "SIGKILL": lambda run, _out: run.process.kill(),
    "SIGKILL of unshare": lambda _run, out: os.kill(daemon(out, "unshare"), signal.SIGKILL),
    "SIGKILL of the first process": lambda _run, out: os.kill(first_of(out), signal.SIGKILL),
    "closed terminal": lambda run, _out: hang_up(run),
}


def first_of(out: Path) -> int:
    return next(f.first_pid for f in sandbox.running() if f.directory == out)


def hang_up(run: Run) -> None:
    """What the kernel does to a session when its terminal closes."""
    os.close(run.terminal)
    run.terminal = -1
    os.killpg(run.process.pid, signal.SIGHUP)


def is_zombie(process: Path) -> bool:
    try:
        return "State:\tZ" in (process / "status").read_text()
    except OSError:
        return True


def namespaces() -> set[str]:
    """Network, mount and process namespaces in use; not by zombies, which nobody here reaps."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and not is_zombie(process):
            for kind in ("net", "mnt", "pid"):
                try:
                    found.add(os.readlink(process / "ns" / kind))  # noqa: PTH115
                except OSError:
                    continue
    return found


MOMENTS = {"early": (0.0, 1.0), "late": (1.0, 3.0)}
"""Seconds after the sandbox has begun, between which each run of the tests draws anew."""


@pytest.mark.parametrize("when", ["up", *MOMENTS])
@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_however_and_whenever_it_ends(
    start: Callable[..., Run], tmp_path: Path, end: str, when: str
) -> None:
    out = tmp_path / "fabric"
    spaces = namespaces()
    run = start("--out", str(out))
    if when == "up":
        run.expect("fabric up")
    else:
        drawn = random.Random(f"{os.environ.get('FRESH_FROM', '0')} {end} {when}").uniform(*MOMENTS[when])
        print(f"ends {drawn:.3f} s after its sandbox has begun")
        until(lambda: bool(sandbox.running()), "no sandbox")
        time.sleep(drawn)
    ENDS[end](run, out)
    run.process.wait(SECONDS_MAX)
    until(lambda: not processes_of(out), "processes are left")
    assert not list((tmp_path / "tmp").iterdir())
    if end == "SIGINT":
        assert run.wait() == (0 if "fabric up" in run.text or when == "up" else 130), run.text
    assert "Traceback" not in run.text
    until(lambda: namespaces() <= spaces, "namespaces are left")
    # And the next one comes up in the same place.
    if when == "up":
        again = start("--out", str(out))
        again.expect("fabric up")


@pytest.mark.parametrize("command", [["up"], ["demo", "--size", "1MiB", "--out", "fabric"]])
def test_ctrl_c_on_the_way_up_is_130(tmp_path: Path, command: list[str]) -> None:
    run = Run(tmp_path, "--topology", "line:2", command=command)
    try:
        run.expect("2 switches" if command == ["up"] else "2 P4 switches")
        os.write(run.terminal, b"\x03")
        assert run.wait() == 130, run.text
        assert "Traceback" not in run.text
        until(lambda: not processes_of(tmp_path), "processes are left")
        assert not list(tmp_path.rglob("*.bin"))
    finally:
        run.close()


def test_nothing_is_left_of_what_never_came_up(tmp_path: Path) -> None:
    run = Run(tmp_path, "--topology", "none.json")
    assert run.wait() == 2
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]
    run.close()


def test_a_switch_that_dies_on_the_way_up_is_told_plainly(start: Callable[..., Run], tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    run = start("--out", str(out))

    def killed() -> bool:
        try:
            os.kill(daemon(out, "wormcast-switch", "s1-p0"), signal.SIGKILL)
        except (AssertionError, OSError):
            return run.process.poll() is not None
        return True

    until(killed, "no switch")
    assert run.wait() == 1, run.text
    assert "wormcast: switch s1 ended (SIGKILL): see " in run.text
    assert "Traceback" not in run.text


def test_a_wait_that_is_too_short_is_said_shortly(start: Callable[..., Run]) -> None:
    run = start("--wait", "0.05")
    assert run.wait() == 1
    lines = [line for line in run.text.splitlines() if line]
    assert (lines[0], len(lines)) == ("starting 2 switches, 2 hosts", 2), run.text
    assert re.match(r"wormcast: fabric not ready after 0.05 s: .*; see .*controller\.log", lines[1])
    assert len(lines[1]) < 300 + len(str(ROOT))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topology", "none.json"], "Error: none.json: No such file or directory"),
        (["--impair", "loss=2"], "impairment 'loss=2' is not a probability from 0 to 1, or from 0% to 100%"),
        (["--impair", "noise=1"], "impairment 'noise=1' is not one of loss, duplicate"),
        (["--wait", "-1"], "wait '-1' is not a number of seconds above 0, up to 86400"),
        (["--mtu", "100"], "MTU '100' is not a number of bytes from 576 to 65535"),
        (["--fabric-mtu", "1513"], "fabric MTU '1513' is not a number of bytes from 1514 to 65535"),
        (["--mtu", "65536"], "MTU '65536' is not a number of bytes from 576 to 65535"),
        (
            ["--mtu", "65535", "--fabric-mtu", "65534"],
            "fabric MTU '65534' is not a number of bytes from 65535 to 65535",
        ),
        (["--mtu", "9000", "--fabric-mtu", "1600"], "fabric MTU '1600' is not a number of bytes from 9014"),
        (["--name", "a/b"], "name 'a/b' is not 1 to 64 letters"),
        (["--rest", "localhost"], "--rest 'localhost' is not ADDRESS:PORT with a port from 1 to 65535"),
        (["--p4runtime", "127.0.0.1:65535"], "2 switches need ports up to 65536"),
        (["--", "h9", "true"], "'h9' is neither a host (h0, h1) nor start, stop, cut or mend"),
        (
            ["--impair", "delay=x"],
            "impairment 'delay=x' is not a time with the unit us, ms or s, at most 3600s",
        ),
        (["--impair", "rate=9"], "impairment 'rate=9' is not a rate with the unit kbit, mbit or gbit"),
        (["--switch", "bmv2", "--impair", "loss=0.1"], "impairments 'loss=0.1' are wormcast-switch's own"),
        (["--seed", "-1"], "-1 is not in the range 0<=x<=4294967295"),
        (["--out", "/etc/passwd"], "Invalid value for '--out': Directory '/etc/passwd' is a file"),
        (["--out", "/etc/passwd/x"], "Error: /etc/passwd is a file; --out names a directory"),
        (
            ["--out", "/proc/x"],
            "cannot make the directory /proc/x: No such file or directory; --out names another",
        ),
        (["--topology", "/etc"], "topology /etc is a directory; name a file in it"),
        (["--rest", "no-such-host.invalid:80"], "REST cannot listen at no-such-host.invalid:80: "),
        (["--", "h0"], "no command for h0"),
    ],
)
def test_wrong_use_is_answered_with_value_and_bound(
    start: Callable[..., Run], arguments: list[str], said: str
) -> None:
    run = start(*arguments)
    assert run.wait() == 2, run.text
    assert said in run.text.replace("\r\n", "")


@pytest.mark.parametrize(
    ("tool", "lacks", "module"), [("ip", "type veth", "veth"), ("tc", "root tbf", "sch_tbf")]
)
def test_a_missing_kernel_module_is_named(
    start: Callable[..., Run],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    lacks: str,
    module: str,
) -> None:
    """What `ip` and `tc` say on a kernel without it is said here by programs in their place."""
    shim = tmp_path / "bin" / tool
    shim.parent.mkdir()
    refuses = "echo 'RTNETLINK answers: Operation not supported' >&2; exit 2"
    shim.write_text(
        f'#!/bin/sh\n[ "$1" = -batch ] || exec {shutil.which(tool)} "$@"\ntext=$(cat)\n'
        f"case $text in *'{lacks}'*) {refuses} ;; esac\necho \"$text\" | exec {shutil.which(tool)} -batch -\n"
    )
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    run = start("--rate", "10")
    assert run.wait() == 1, run.text
    assert f"on the machine itself: modprobe {module} (" in run.text
    assert len(run.text.strip().splitlines()) == 2, run.text


def test_rest_and_p4runtime_can_be_reached_from_outside(start: Callable[..., Run]) -> None:
    run = start("--rest", "127.0.0.1:18080", "--p4runtime", "127.0.0.1:15051")
    run.expect("fabric up")
    taken = start("--rest", "127.0.0.1:18080")
    assert taken.wait() == 2
    assert "REST cannot listen at 127.0.0.1:18080: Address already in use" in taken.text
    with httpx.Client(base_url="http://127.0.0.1:18080/v1") as client:
        assert len(client.get("hosts").json()["hosts"]) == 2
        # What is slow to read holds up nobody else.
        with client.stream("GET", "/events"):
            assert len(client.get("switches").json()["switches"]) == 2

    async def entries(address: str, device_id: int) -> int:
        options = finsy.SwitchOptions(
            device_id=device_id, initial_election_id=1
        )  # the controller stays primary
        async with finsy.Switch("other", address, options) as switch:
            assert not switch.is_primary
            return len([entry async for entry in switch.read(finsy.P4TableEntry())])

    assert asyncio.run(entries("127.0.0.1:15051", 0)) > 0
    assert asyncio.run(entries("127.0.0.1:15052", 1)) > 0
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 128 + signal.SIGTERM
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", 18080))


def test_a_command_gives_its_exit_code(start: Callable[..., Run]) -> None:
    assert start("--", "h0", "sh", "-c", "exit 9").wait() == 9
