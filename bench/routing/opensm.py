"""OpenSM on ibsim, InfiniBand's simulator, as a yardstick: what it routes on a topology file,
how long that takes and how far its routes go.

Needs the packages `opensm` and `ibsim-utils`; `dump` also `infiniband-diags`. Everything runs in a directory of its own; only
processes started here are ended.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Topology = Mapping[str, Any]

NEEDED = ("opensm", "ibsim", "ibsim-run")
DUMPERS = ("ibnetdiscover", "dump_lfts", "ibroute", "saquery")
SIMULATOR_WAIT = 60.0
"""Most seconds until ibsim has read its net list."""
FIRST_SWITCH_GUID = 0x200000
"""ibsim numbers the switches from here, in the order of the net list."""
NO_PATH = 0xFF
FIRST_LINE = re.compile(r"^\w+ +\d+ (\d+):(\d+):(\d+) (\d+) ")

LOG_MODULES = """\
osm_ucast_updn.c=0x12
osm_lid_mgr.c=0x12
"""
"""Modules whose beginning and end of functions are logged; few lines while routes are made."""
BEGIN = ("updn_lid_matrices: [", "osm_lid_mgr_process_subnet: ]")
"""The routing engine starts here: updn says so itself, for the others the step before ends."""


class OpenSmError(RuntimeError):
    """OpenSM or ibsim did not do what was asked; the text has the end of their output."""


@dataclass(frozen=True)
class Answer:
    """What one run of OpenSM made of a topology."""

    engine: str
    """The engine that made the tables; OpenSM falls back to another where one gives up."""
    seconds: float
    """From the begin of the engine until the tables are written, on OpenSM's own clock."""
    peak_kib: int
    hops: dict[int, dict[int, int]] = field(repr=False)
    """Least hops from switch to switch, as in its table of hops; empty unless asked for."""
    ports: dict[int, dict[int, int]] = field(repr=False)
    """Port of each switch towards each host, in our numbers; empty unless asked for."""


@dataclass(frozen=True)
class Dump:
    """What the tools of InfiniBand print of a fabric that OpenSM has routed."""

    engine: str
    """The engine that made the tables."""
    ibnetdiscover: str
    tables: dict[str, str]
    """By the name of the program or of OpenSM's file: dump_lfts, ibroute (of every switch, one
    after the other), opensm-lfts.dump, opensm.fdbs."""
    records: str
    """What saquery PR prints of all pairs of hosts; empty unless asked for."""


def missing(*more: str) -> list[str]:
    """Programs that are not installed."""
    return [name for name in (*NEEDED, *more) if shutil.which(name, path=_path()) is None]


def net_list(topology: Topology) -> str:
    """The topology as ibsim reads it: switch id n is "Sn", host id n is "Hn", our port p is
    InfiniBand's p + 1. The first host runs the subnet manager, and so comes first; switches
    follow in order of id, so that the order of their GUIDs is that of the ids."""
    ports: dict[int, dict[int, str]] = {switch["id"]: {} for switch in topology["switches"]}
    for host in topology["hosts"]:
        ports[host["switch"]][host["port"] + 1] = f'"H{host["id"]}"[1]'
    for link in topology["links"]:
        ports[link["a"]][link["a_port"] + 1] = f'"S{link["b"]}"[{link["b_port"] + 1}]'
        ports[link["b"]][link["b_port"] + 1] = f'"S{link["a"]}"[{link["a_port"] + 1}]'
    hosts = [
        f'Hca 1 "H{host["id"]}"\n[1] "S{host["switch"]}"[{host["port"] + 1}]\n' for host in topology["hosts"]
    ]
    switches = []
    for switch in sorted(topology["switches"], key=lambda switch: switch["id"]):
        lines = [f'Switch {switch["ports"]} "S{switch["id"]}"']
        lines += [f"[{port}] {end}" for port, end in sorted(ports[switch["id"]].items())]
        switches.append("\n".join(lines) + "\n")
    return "\n".join([*hosts[:1], *switches, *hosts[1:]])


def route(
    topology: Topology, engine: str, root: int | None = None, *, timeout: float = 600, tables: bool = False
) -> Answer:
    """Lets OpenSM route a topology once.

    `engine`: updn, nue, lash, dfsssp, …; `root`: the root switch, for updn. Raises
    `OpenSmError` if it does not come to an end in `timeout` seconds.
    """
    switches = sorted(switch["id"] for switch in topology["switches"])
    with tempfile.TemporaryDirectory(prefix="opensm-") as name:
        folder = Path(name)
        command = _prepare(folder, topology, engine, root)
        with _simulator(folder, topology):
            peak = _run(command, folder, timeout)
        made, begun = _made_and_begun(folder)
        seconds = _seconds(made[-1]) - _seconds(begun[0])
        hops = _read_hops(folder / "opensm-lid-matrix.dump", switches) if tables else {}
        ports = read_ports(folder / "opensm-lfts.dump") if tables else {}
        return Answer(_engine(made), seconds, peak, hops, ports)


def dump(
    topology: Topology,
    engine: str,
    root: int | None = None,
    *,
    lmc: int = 0,
    records: bool = False,
    timeout: float = 600,
) -> Dump:
    """Lets OpenSM route a topology as `route` does, and the other tools print what they find.

    `lmc`: every port of a host has 2^lmc LIDs. `records`: OpenSM uses service levels, and is
    asked for the path records. Raises `OpenSmError`.
    """
    with tempfile.TemporaryDirectory(prefix="opensm-") as name:
        folder = Path(name)
        command = [*_prepare(folder, topology, engine, root), "-l", str(lmc)]
        with _simulator(folder, topology), contextlib.ExitStack() as stack:
            host = None
            if records:
                # It stays, on the first host, and the other programs run on the second.
                stack.enter_context(_staying([*command, "-Q"], folder, timeout))
                host = f"H{topology['hosts'][1]['id']}"
            else:
                _run(command, folder, timeout)
            made, _ = _made_and_begun(folder)
            found = _print(folder, timeout, "ibnetdiscover", host=host)
            lids = re.findall(r"^Switch.* port 0 lid (\d+)", found, re.M)
            tables = {name: (folder / name).read_text() for name in ("opensm-lfts.dump", "opensm.fdbs")}
            tables["dump_lfts"] = _print(folder, timeout, "dump_lfts", host=host)
            tables["ibroute"] = "".join(_print(folder, timeout, "ibroute", lid, host=host) for lid in lids)
            answers = "".join(_ask_pairs(folder, timeout, found, host)) if records else ""
        return Dump(_engine(made), found, tables, answers)


def _ask_pairs(folder: Path, timeout: float, found: str, host: str | None) -> Iterator[str]:
    """Path records of all pairs of hosts, one by one: ibsim loses answers of several packets."""
    lids = re.findall(r"# lid (\d+) lmc", found)
    for src, dst in itertools.permutations(lids, 2):
        yield _print(folder, timeout, "saquery", "--slid", src, "--dlid", dst, "PR", host=host)


@contextmanager
def _staying(command: Sequence[str], folder: Path, timeout: float) -> Iterator[None]:
    """OpenSM until the end of the block; it begins when the subnet is up."""
    with (folder / "conf").open("a") as conf:
        conf.write("force_log_flush TRUE\n")
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [word for word in command if word != "-o"],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
    log = folder / "log"
    try:
        deadline = time.monotonic() + timeout
        while not log.exists() or "SUBNET UP" not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise OpenSmError("OpenSM does not bring the subnet up")
            time.sleep(0.05)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _print(folder: Path, timeout: float, *command: str, host: str | None = None) -> str:
    done = subprocess.run(
        ["ibsim-run", *command],
        cwd=folder,
        env=_environment(folder) | ({"SIM_HOST": host} if host else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if done.returncode:
        raise OpenSmError(f"{' '.join(command)} failed: {done.stderr[-500:]}")
    return done.stdout


def _prepare(folder: Path, topology: Topology, engine: str, root: int | None) -> list[str]:
    """Writes OpenSM's files; the command that runs it."""
    switches = sorted(switch["id"] for switch in topology["switches"])
    (folder / "modules").write_text(LOG_MODULES)
    (folder / "conf").write_text(f"per_module_logging_file {folder}/modules\n")
    (folder / "net").write_text(net_list(topology))
    command = ["ibsim-run", "opensm", "-F", f"{folder}/conf", "-o", "-R", engine, "-f", f"{folder}/log"]
    command += ["-D", "0x43"]
    if root is not None:
        (folder / "roots").write_text(f"{FIRST_SWITCH_GUID + switches.index(root):#x}\n")
        command += ["-a", f"{folder}/roots"]
    return command


def _made_and_begun(folder: Path) -> tuple[list[str], list[str]]:
    """Lines of OpenSM's log: its tables are made, the engine begins."""
    log = (folder / "log").read_text(errors="replace").splitlines()
    made = [line for line in log if "tables configured on all switches" in line]
    begun = [line for mark in BEGIN for line in log if mark in line]
    if not made or not begun:
        raise OpenSmError("OpenSM wrote no tables:\n" + "\n".join(log[-5:]))
    return made, begun


def _engine(made: Sequence[str]) -> str:
    return made[-1].split(": ")[-1].split()[0]


@contextmanager
def _simulator(folder: Path, topology: Topology) -> Iterator[None]:
    hosts, switches = len(topology["hosts"]), len(topology["switches"])
    ports = hosts + sum(switch["ports"] + 1 for switch in topology["switches"])
    limits = ["-N", str(hosts + switches + 16), "-S", str(switches + 16), "-P", str(ports + 256)]
    limits += ["-L", "49151"]
    with (folder / "ibsim.log").open("wb") as log:
        process = subprocess.Popen(
            ["ibsim", "-s", "-n", *limits, str(folder / "net")],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
        )
    try:
        _await_socket(process, folder)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_socket(process: subprocess.Popen[bytes], folder: Path) -> None:
    """ibsim listens on abstract sockets when the net is read; the first is `sim:ctl:…`."""
    deadline = time.monotonic() + SIMULATOR_WAIT
    name = f"wormcast-{folder.name}"
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        if name in Path("/proc/net/unix").read_text():
            return
        time.sleep(0.05)
    raise OpenSmError(f"ibsim did not start:\n{(folder / 'ibsim.log').read_text(errors='replace')[-500:]}")


def _run(command: Sequence[str], folder: Path, timeout: float) -> int:
    """Runs OpenSM; its peak memory in KiB."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
    deadline = time.monotonic() + timeout
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_maxrss
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise OpenSmError(f"{command[4]} took more than {timeout:.0f} s")
        time.sleep(0.02)


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": _path(),
        "OSM_TMP_DIR": str(folder),
        "OSM_CACHE_DIR": str(folder),
        # Part of the sockets' names, so that several simulators do not meet.
        "IBSIM_SOCKNAME": f"wormcast-{folder.name}",
    }


def _seconds(line: str) -> float:
    match = FIRST_LINE.match(line)
    if match is None:
        raise OpenSmError(f"a line of OpenSM's log without a time: {line}")
    hours, minutes, seconds, micros = map(int, match.groups())
    return hours * 3600 + minutes * 60 + seconds + micros / 1e6


def _read_hops(path: Path, switches: Sequence[int]) -> dict[int, dict[int, int]]:
    """`Switch: guid G`, then a line for each LID: hops over each port, and whose LID it is.
    Only switches are listed as destinations here."""
    hops: dict[int, dict[int, int]] = {}
    row: dict[int, int] = {}
    for line in path.read_text().splitlines():
        if line.startswith("Switch:"):
            row = hops.setdefault(switches[int(line.split()[2], 16) - FIRST_SWITCH_GUID], {})
        elif match := re.match(r"0x\w+: ([0-9a-f ]+)# portguid (0x\w+)", line):
            guid = int(match[2], 16)
            over = [int(field, 16) for field in match[1].split()]
            place = guid - FIRST_SWITCH_GUID
            if 0 <= place < len(switches) and min(over) != NO_PATH:
                row[switches[place]] = min(over)
    return hops


def read_ports(path: Path) -> dict[int, dict[int, int]]:
    """`Unicast lids … of switch … ('S3'):`, then LID, port and whose LID it is on each line.
    Only hosts are listed as destinations here."""
    ports: dict[int, dict[int, int]] = {}
    row: dict[int, int] = {}
    for line in path.read_text().splitlines():
        if match := re.match(r"Unicast lids .*\('S(\d+)'\)", line):
            row = ports.setdefault(int(match[1]), {})
        elif match := re.match(r"0x\w+ (\d+) # .*'H(\d+)'", line):
            row[int(match[2])] = int(match[1]) - 1
    return ports
