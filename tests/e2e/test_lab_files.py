"""Labs of `wormcast topo lab`, brought up as containerlab and Kathará would: a network namespace for each container,
and in it the commands of the lab, word for word."""

from __future__ import annotations

import ipaddress
import itertools
import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from wormcast import lab_files, routing
from wormcast.mininet import programs

SECONDS_MAX = 600.0
"""Only against hanging for ever."""
BRIDGE = "lab-mgmt"
PORTS = itertools.count()


class Room:
    """The containers of a lab, as namespaces of the network and of mounts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.hosts = directory / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment: dict[str, str] = {}
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "link", "set", BRIDGE, "up")

    def start(self, name: str) -> None:
        """A container that does nothing yet."""
        # What each container has of its own: a /run, its hosts file, and lo.
        prepare = f"mount -t tmpfs tmpfs /run; mount --bind {self.hosts} /etc/hosts; mount -t sysfs sysfs /sys; ip link set lo up"
        self.processes[name] = subprocess.Popen(
            ["unshare", "--net", "--mount", "bash", "-c", f"{prepare}; echo ready; exec sleep infinity"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        stdout = self.processes[name].stdout
        assert stdout is not None
        assert stdout.readline() == b"ready\n"

    def inside(self, name: str) -> list[str]:
        """What enters a container."""
        return ["nsenter", "--target", str(self.processes[name].pid), "--net", "--mount", "--wd=/"]

    def spawn(self, name: str, command: list[str]) -> None:
        """Start a command in a container; it ends with the room."""
        with (self.directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*self.inside(name), *command],
                env=self.surroundings(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes[f"{name} runs"] = process

    def surroundings(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("WORMCAST_")}
        return {**kept, "PATH": f"{programs.BIN}:{os.environ['PATH']}", **self.environment}

    def ask(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a container to its end."""
        return subprocess.run(
            [*self.inside(name), *command],
            env=self.surroundings(),
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    def link(self, a: tuple[str, str], b: tuple[str, str]) -> None:
        """A cable between an interface of one container and one of another."""
        run("ip", "link", "add", "lab-a", "type", "veth", "peer", "name", "lab-b")
        for temporary, (name, interface) in (("lab-a", a), ("lab-b", b)):
            run("ip", "link", "set", temporary, "netns", str(self.processes[name].pid), "name", interface)

    def attach(self, name: str, interface: str) -> None:
        """A cable to the management network."""
        port = f"m{next(PORTS)}"
        run("ip", "link", "add", port, "type", "veth", "peer", "name", "lab-b")
        run("ip", "link", "set", "lab-b", "netns", str(self.processes[name].pid), "name", interface)
        run("ip", "link", "set", port, "master", BRIDGE, "up")

    def close(self) -> None:
        """End all of it; the links go with their namespaces."""
        for process in reversed(self.processes.values()):
            process.kill()
        for name, process in self.processes.items():
            if name.endswith(" runs"):
                subprocess.run(["pkill", "-KILL", "--session", str(process.pid)])
        for process in self.processes.values():
            process.wait()
        run("ip", "link", "del", BRIDGE)


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path)
    try:
        yield made
    finally:
        made.close()


def as_containerlab(room: Room, text: str) -> None:
    """What `containerlab deploy` does with such a file: a name for each container, links, and then its command."""
    lab = json.loads(text)
    nodes = lab["topology"]["nodes"]
    addresses = ipaddress.IPv4Network("172.20.20.0/24").hosts()
    for name in nodes:
        room.start(name)
        address = next(addresses)
        room.attach(name, "eth0")
        assert room.ask(name, "ip", "addr", "add", f"{address}/24", "dev", "eth0").returncode == 0
        assert room.ask(name, "ip", "link", "set", "eth0", "up").returncode == 0
        with room.hosts.open("a") as hosts:
            hosts.write(f"{address} clab-{lab['name']}-{name}\n")
    # Commands run before the links are there, as containers do.
    for name, node in nodes.items():
        room.environment = node["env"]
        room.spawn(name, shlex.split(node["cmd"]))
    for link in lab["topology"]["links"]:
        a, b = (tuple(end.split(":")) for end in link["endpoints"])
        room.link(a, b)


def as_kathara(room: Room, files: dict[str, str]) -> None:
    """What `kathara lstart` does with such a folder: collision domains of two devices are cables here."""
    wires: dict[str, list[tuple[str, str]]] = {}
    for line in files["lab.conf"].splitlines():
        if match := re.fullmatch(r'(\w+)\[(\d+)\]="(\w+)"', line):
            if match[1] not in room.processes:
                room.start(match[1])
            wires.setdefault(match[3], []).append((match[1], f"eth{match[2]}"))
        elif match := re.fullmatch(r'\w+\[env\]="(\w+)=(.*)"', line):
            room.environment[match[1]] = match[2]
        else:
            assert re.fullmatch(r'LAB_[A-Z]+=".*"|\w+\[image\]="wormcast"|\w+\[entrypoint\]="bash"', line), (
                line
            )
    for name, interface in wires.pop("management"):
        room.attach(name, interface)
    for ends in wires.values():
        assert len(ends) <= 2
        if len(ends) == 2:
            room.link(ends[0], ends[1])
        else:
            run("ip", "link", "add", "lab-a", "type", "dummy")
            run(
                "ip", "link", "set", "lab-a", "netns", str(room.processes[ends[0][0]].pid), "name", ends[0][1]
            )
    for name in list(room.processes):
        text = files[f"{name}.startup"].replace("/var/log/wormcast.log", str(room.directory / f"{name}.out"))
        room.spawn(name, ["bash", "-c", text])


TOOLS: dict[str, Callable[[Room, dict[str, object]], None]] = {
    "containerlab": lambda room, topology: as_containerlab(room, lab_files.containerlab(topology)),
    "kathara": lambda room, topology: as_kathara(room, lab_files.kathara(topology)),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("kind", ["line:2", "irregular:4:7"])
def test_a_file_goes_through_a_lab(room: Room, tool: str, kind: str, tmp_path: Path) -> None:
    topology = routing.make(kind)
    TOOLS[tool](room, topology)
    deadline = time.monotonic() + SECONDS_MAX
    hosts = len(topology["hosts"])
    while True:
        asked = room.ask("h0", "wormcast", "host", "list", "--json")
        if asked.returncode == 0 and asked.stdout.count('"state": "up"') == hosts:
            break
        logs = "\n".join(f"{log.name}: {log.read_text()[-400:]}" for log in tmp_path.glob("*.log"))
        assert time.monotonic() < deadline, f"{asked.stdout}{asked.stderr}\n{logs}"
        time.sleep(0.2)
    data = tmp_path / "data"
    data.write_bytes(os.urandom(200_000))
    last = f"h{hosts - 1}"
    made = room.ask("h0", "wormcast", "group", "create", "--scheme", "switch", "0", str(hosts - 1))
    assert made.returncode == 0, made.stderr
    (tmp_path / "got").mkdir()
    room.spawn(last, ["wormcast", "recv", "--group", "0", "--output", str(tmp_path / "got"), "--count", "1"])
    while '"receivers": 1' not in room.ask(last, "wormcast", "status", "--json").stdout:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    sent = room.ask("h0", "wormcast", "send", str(data), "--group", "0")
    assert sent.returncode == 0, sent.stderr
    assert (tmp_path / "got" / "data").read_bytes() == data.read_bytes()
