"""OpenSM on ibsim, InfiniBand's simulator, as a yardstick: what it routes on a topology file,
how long that takes and how far its routes go.

Needs the packages `opensm` and `ibsim-utils`. Everything runs in a directory of its own; only
processes started here are ended.
"""

from __future__ import annotations

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


def missing() -> list[str]:
    """Programs that are not installed."""
    return [name for name in NEEDED if shutil.which(name, path=_path()) is None]


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
        (folder / "modules").write_text(LOG_MODULES)
        (folder / "conf").write_text(f"per_module_logging_file {folder}/modules\n")
        (folder / "net").write_text(net_list(topology))
        command = ["ibsim-run", "opensm", "-F", f"{folder}/conf", "-o", "-R", engine, "-f", f"{folder}/log"]
        command += ["-D", "0x43"]
        if root is not None:
            (folder / "roots").write_text(f"{FIRST_SWITCH_GUID + switches.index(root):#x}\n")
            command += ["-a", f"{folder}/roots"]
        with _simulator(folder, topology):
            peak = _run(command, folder, timeout)
        log = (folder / "log").read_text(errors="replace").splitlines()
        made = [line for line in log if "tables configured on all switches" in line]
        begun = [line for mark in BEGIN for line in log if mark in line]
        if not made or not begun:
            raise OpenSmError("OpenSM wrote no tables:\n" + "\n".join(log[-5:]))
        seconds = _seconds(made[-1]) - _seconds(begun[0])
        hops = _read_hops(folder / "opensm-lid-matrix.dump", switches) if tables else {}
        ports = _read_ports(folder / "opensm-lfts.dump") if tables else {}
        return Answer(made[-1].split(": ")[-1].split()[0], seconds, peak, hops, ports)


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


def _read_ports(path: Path) -> dict[int, dict[int, int]]:
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
