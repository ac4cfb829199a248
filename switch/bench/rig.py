"""Links, switches and counters of the measurements, in a network namespace of their own."""

import asyncio
import json
import os
import platform
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import finsy as fy
from cases import CPU_PORT, DROP_PORT, Case

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
OURS, BMV2, BARE = "wormcast-switch", "simple_switch_grpc", "bare forwarder"
WRITES_A_BATCH = 500
INJECTED_BYTES_MAX = 1_514
"""Longest frame of the usual MTU. Far larger ones are not injected: XDP on veth wants a frame in one page."""
MTU_SMALL, MTU_LARGE = 1_500, 9_216


@dataclass(frozen=True)
class Programs:
    switch: str
    examples: Path
    bmv2: str | None

    def example(self, name: str) -> str:
        """Path of one of the switch's example programs."""
        return str(self.examples / name)


def shell(command: str) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def make_links(sizes: list[int], ports: int = 8) -> None:
    """Ends g0... of the measurer, s0... of the switch, for frames of these sizes."""
    mtu = MTU_SMALL if max(sizes) <= INJECTED_BYTES_MAX else MTU_LARGE
    shell("ip link set lo up")
    shell("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 || true")
    for number in range(ports):
        shell(f"ip link add g{number} mtu {mtu} type veth peer name s{number} mtu {mtu}")
        shell(f"ip link set g{number} up && ip link set s{number} up")


def received_packets(interfaces: list[str]) -> int:
    """Frames the kernel has received on interfaces."""
    found = {}
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() in interfaces:
            found[name.strip()] = int(counts.split()[1])
    return sum(found[interface] for interface in interfaces)


def cpu_s(pid: int) -> float:
    """CPU time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def command_of(name: str, programs: Programs, port: int, options: list[str]) -> list[str]:
    """Both switches take the same command line; the bare forwarder moves frames and no more."""
    if name == BARE:
        return [programs.example("bare_forwarder"), "s0", "s1", *options]
    interfaces = [part for number in range(8) for part in ("-i", f"{number}@s{number}")]
    binary = programs.switch if name == OURS else str(programs.bmv2)
    command = [binary, "--no-p4", *interfaces, "--device-id", "1"]
    command += options if name == OURS else ["--thrift-port", str(port + 1000), "--log-level", "off"]
    command += ["--", "--grpc-server-addr", f"127.0.0.1:{port}"]
    return [*command, "--cpu-port", str(CPU_PORT), "--drop-port", str(DROP_PORT)]


@contextmanager
def running(name: str, programs: Programs, case: Case | None, port: int, options: list[str]) -> Iterator[int]:
    """A switch with the program and entries of a case; gives its process id."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command_of(name, programs, port, options), stdout=quiet, stderr=quiet) as process:
        try:
            if name == BARE:
                time.sleep(0.3)
            else:
                wait_until_it_listens(port)
                if case is not None:
                    asyncio.run(asyncio.wait_for(install(case, port), 120))
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended with status {process.returncode}")
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_until_it_listens(port: int) -> None:
    """Returns once the gRPC server takes connections."""
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


async def install(case: Case, port: int) -> None:
    """Sets the program and its entries."""
    options = fy.SwitchOptions(p4info=case.p4info, p4blob=case.json, device_id=1)
    entities = case.entities()
    async with fy.Switch("switch", f"127.0.0.1:{port}", options) as switch:
        for first in range(0, len(entities), WRITES_A_BATCH):
            await switch.write([update(entity) for entity in entities[first : first + WRITES_A_BATCH]])


def update(
    entity: fy.P4TableEntry | fy.P4MulticastGroupEntry,
) -> fy.P4TableEntry | fy.P4MulticastGroupEntry:
    """A default entry is there and is modified; any other is inserted."""
    is_default = isinstance(entity, fy.P4TableEntry) and entity.is_default_action
    return ~entity if is_default else +entity


@dataclass(frozen=True)
class Flood:
    """Frames of one case and size, in a file for the generator."""

    path: str
    can_inject: bool
    port: int = 0

    def run(self, programs: Programs, seconds: float, rate: float | None) -> float:
        """Frames a second that were offered.

        One frame, again and again, seems to be received by s0; several are sent into g0, which
        one core can do some hundred thousand times a second.
        """
        command = [*self.command(programs, seconds, rate), "--json"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        result = json.loads(output)
        return float(result["frames"]) / float(result["seconds"])

    def command(self, programs: Programs, seconds: float, rate: float | None) -> list[str]:
        """The same as a command."""
        end = "s" if self.can_inject else "g"
        command = [programs.example("flood"), f"{end}{self.port}", str(seconds), f"@{self.path}"]
        command += ["--inject"] if self.can_inject else []
        return command if rate is None else [*command, f"{rate:.0f}"]


@contextmanager
def flood_of(case: Case, size: int, can_inject: bool) -> Iterator[Flood]:
    """The frames of a case, into its port."""
    with tempfile.NamedTemporaryFile("w", suffix=".hex") as file:
        file.write("".join(frame.hex() + "\n" for frame in case.frames(size)))
        file.flush()
        yield Flood(file.name, len(case.heads) == 1 and can_inject, case.port_in)


def machine() -> dict[str, str | int]:
    """What it was measured on."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {"processor": model, "cores": os.cpu_count() or 0, "kernel": platform.release()}
