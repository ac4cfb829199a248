"""pytest's side of a network namespace with switches in a ring, their hosts and a controller."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from wormcast.discovery.lldp import Announcement

from controller_lab.announcing import encode_announcement

ROOT = Path(__file__).resolve().parents[3]
SWITCHES = 3
THRIFT_PORT_FIRST = 9090
"""That of switch 0."""
PORTS = 4
HOST_PORT = 0
LINKS = [(0, 1, 1, 1), (1, 2, 2, 2), (0, 3, 2, 3)]
READY_SECONDS_MAX = 600.0


@dataclass(frozen=True)
class Target:
    """A switch program, if it is there."""

    name: str
    binary: str | None


def targets() -> list[Target]:
    """Both switches; where one is not installed its tests are skipped."""
    ours = os.environ.get("WORMCAST_SWITCH") or shutil.which("wormcast-switch")
    built = ROOT / "target" / "release" / "wormcast-switch"
    return [
        Target("wormcast-switch", ours or (str(built) if built.exists() else None)),
        Target("simple_switch_grpc", shutil.which("simple_switch_grpc")),
    ]


class Lab:
    """Three switches in a ring, a host on each, one controller. A context manager."""

    def __init__(self, target: Target, directory: Path) -> None:
        self.target = target
        self.directory = directory
        self.pipeline: Path | None = None
        worker = Path(__file__).with_name("namespace_worker.py")
        unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._worker = subprocess.Popen(
            [*unshare, sys.executable, str(worker)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.agents_address = f"unix:{directory}/agents.sock"
        self.api = self.client("controller")

    def __enter__(self) -> Self:
        self.ask("run", argv=["ip", "link", "set", "lo", "up"])
        self.ask(
            "run",
            argv=[
                "sysctl",
                "-qw",
                "net.ipv6.conf.all.disable_ipv6=1",
                "net.ipv6.conf.default.disable_ipv6=1",
            ],
        )
        for switch in range(SWITCHES):
            self._cable(f"s{switch}-p{HOST_PORT}", f"h{switch}")
        for a, a_port, b, b_port in LINKS:
            self._cable(f"s{a}-p{a_port}", f"s{b}-p{b_port}")
        for switch in range(SWITCHES):
            self.start_switch(switch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._worker.stdin is not None
        self._worker.stdin.close()
        try:
            self._worker.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._worker.kill()
            self._worker.wait()
        self.api.close()

    def ask(self, do: str, **request: Any) -> Any:
        """One request to the worker; what went wrong in there is an AssertionError with the logs."""
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._worker.stdin.flush()
        answer = json.loads(self._worker.stdout.readline())
        assert "error" not in answer, f"{answer['error']}\n{self.logs()}"
        return answer["result"]

    def _cable(self, one: str, other: str) -> None:
        self.ask(
            "run",
            argv=[
                "ip",
                "link",
                "add",
                one,
                "mtu",
                "4000",
                "type",
                "veth",
                "peer",
                "name",
                other,
                "mtu",
                "4000",
            ],
        )
        for end in (one, other):
            self.ask("run", argv=["ip", "link", "set", end, "up"])

    def switch_address(self, switch: int) -> str:
        """Where a switch listens: the last one on a Unix socket."""
        return f"unix:{self.directory}/s2.grpc" if switch == SWITCHES - 1 else f"127.0.0.1:{50051 + switch}"

    def start_switch(self, switch: int) -> None:
        """Starts one switch, without a program."""
        assert self.target.binary is not None
        ports = [HOST_PORT, *(p for a, ap, b, bp in LINKS for s, p in ((a, ap), (b, bp)) if s == switch)]
        argv = [self.target.binary, "--no-p4", "--device-id", str(switch)]
        argv += ["--thrift-port", str(THRIFT_PORT_FIRST + switch)]
        for port in ports:
            argv += ["-i", f"{port}@s{switch}-p{port}"]
        argv += [
            "--",
            "--grpc-server-addr",
            self.switch_address(switch),
            "--cpu-port",
            "510",
            "--drop-port",
            "511",
        ]
        self.ask("start", name=f"s{switch}", argv=argv, log=f"{self.directory}/s{switch}.log")

    def client(self, name: str) -> httpx.Client:
        """The REST API of a controller of that name."""
        transport = httpx.HTTPTransport(uds=f"{self.directory}/{name}.rest")
        return httpx.Client(transport=transport, base_url="http://controller/v1", timeout=600)

    def start_controller(self, name: str = "controller", *options: str) -> None:
        """Starts a controller as a user does, with further options, and waits until it answers."""
        switches = [
            {"id": n, "address": self.switch_address(n), "device_id": n, "ports": PORTS}
            for n in range(SWITCHES)
        ]
        file = self.directory / "switches.json"
        file.write_text(json.dumps({"switches": switches}))
        argv = [sys.executable, "-m", "wormcast.cli.main", "controller", "run", "--switches", str(file)]
        agents = self.agents_address if name == "controller" else f"unix:{self.directory}/{name}.agents"
        argv += ["--agents", agents, "--listen", f"unix:{self.directory}/{name}.rest"]
        argv += ["--state", f"{self.directory}/{name}.db", "-v", *options]
        if self.pipeline is not None:
            argv += ["--pipeline", str(self.pipeline)]
        self.ask("start", name=name, argv=argv, log=f"{self.directory}/{name}.log")
        with self.client(name) as client:
            self.until(lambda: answers(client))

    def stop_controller(self, force: bool = False, name: str = "controller") -> int:
        """Ends it, by SIGKILL if `force`; returns its exit code."""
        code: int = self.ask("stop", name=name, force=force)
        return code

    def get(self, path: str) -> Any:
        answer = self.api.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: object) -> Any:
        answer = self.api.post(path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def until(self, condition: Callable[[], object], seconds_max: float = READY_SECONDS_MAX) -> float:
        """Waits until a condition holds; returns how long it took."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < seconds_max, f"not within {seconds_max:g} s\n{self.logs()}"
            time.sleep(0.02)
        return time.monotonic() - began

    def links(self) -> set[tuple[int, int, int, int]]:
        """Links the controller takes for up."""
        return {(x["a"], x["a_port"], x["b"], x["b_port"]) for x in self.get("links")["links"]}

    def cut(self, link: tuple[int, int, int, int], restore: bool = False) -> None:
        """Makes a link lose every frame, with its ends still up (BMv2 stops when one of its interfaces goes down)."""
        a, a_port, b, b_port = link
        for end in (f"s{a}-p{a_port}", f"s{b}-p{b_port}"):
            if restore:
                self.ask("run", argv=["tc", "qdisc", "del", "dev", end, "root"])
            else:
                self.ask("run", argv=["tc", "qdisc", "replace", "dev", end, "root", "pfifo", "limit", "0"])

    def announce(self, host: int) -> None:
        """Lets the host send LLDP announcements as its agent would."""
        frame = encode_announcement(Announcement(f"h{host}", bytes([2, 0, 0, 0, 0, host]), 4))
        self.ask("repeat", interface=f"h{host}", frame=frame.hex(), interval_s=0.3)

    def logs(self) -> str:
        """The ends of the logs."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
            for path in sorted(self.directory.glob("*.log"))
        )


def answers(client: httpx.Client) -> bool:
    """Whether the controller is there."""
    try:
        return client.get("status").status_code == 200
    except httpx.TransportError:
        return False


def udp_frame(group: str, payload: bytes) -> bytes:
    """An IPv4 multicast datagram as a plain host's kernel puts it on the wire."""
    address = socket.inet_aton(group)
    mac = b"\x01\x00\x5e" + bytes([address[1] & 0x7F]) + address[2:]
    udp = (5000).to_bytes(2, "big") * 2 + (8 + len(payload)).to_bytes(2, "big") + b"\0\0" + payload
    header = bytearray.fromhex("45000000000040000811") + b"\0\0" + socket.inet_aton("10.0.0.1") + address
    header[2:4] = (20 + len(udp)).to_bytes(2, "big")
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, 20, 2))
    total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = (~(total + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
    return mac + b"\2\0\0\0\0\x01" + b"\x08\x00" + bytes(header) + udp
