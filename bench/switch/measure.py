"""Packets a second through one switch with two ports, for two programs and frame sizes.

Runs in a network namespace of its own (`bench/switch/run` makes it). Each switch is flooded
on one port; what comes out of the other is counted by the kernel at the far end of the link.
Switches take turns, so that what else the machine does falls on all of them.
"""

import argparse
import asyncio
import json
import logging
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import finsy as fy

ROOT = Path(__file__).resolve().parents[2]
DESTINATION = bytes.fromhex("03574f524d00")
SOURCE = bytes.fromhex("020000000001")
ETHERTYPE_WORM = bytes.fromhex("88b5")
CPU_PORT, DROP_PORT = 510, 511
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Case:
    """A program, what it is told, and the frame that goes through it."""

    name: str
    title: str
    json: Path
    p4info: Path
    entry: Callable[[], fy.P4TableEntry]
    head: bytes

    def frame(self, size: int) -> bytes:
        """The frame, filled up to a size."""
        return self.head + bytes(size - len(self.head))


def worm_header(route: bytes) -> bytes:
    """Header and route of a UNICAST worm (protocol/SPEC.md §2)."""
    header = bytearray([0x10, 0x06, len(route), 0, 0, 1, 0, 1, 0x88, 0xB6, 0, 0]) + route
    padded = header + bytes(len(header) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = (total ^ 0xFFFF).to_bytes(2, "big")
    return bytes(header)


def cases() -> dict[str, Case]:
    """Everything that can be measured."""
    ethernet = DESTINATION + SOURCE + ETHERTYPE_WORM
    bench, compiled = ROOT / "bench/switch", ROOT / "p4src/compiled"

    def l2_entry() -> fy.P4TableEntry:
        address = int.from_bytes(DESTINATION, "big")
        return fy.P4TableEntry("addresses", match=fy.Match(dst=address), action=fy.Action("forward", port=1))

    def worm_entry() -> fy.P4TableEntry:
        return fy.P4TableEntry("ports", match=fy.Match(port=1), action=fy.Action("port_known"))

    return {
        "l2": Case(
            "l2",
            "L2 exact match",
            bench / "l2.json",
            bench / "l2.p4info.txtpb",
            l2_entry,
            ethernet,
        ),
        "unicast": Case(
            "unicast",
            "worm UNICAST",
            compiled / "wormcast.json",
            compiled / "wormcast.p4info.txtpb",
            worm_entry,
            ethernet + worm_header(bytes([1, 7])),
        ),
    }


@dataclass(frozen=True)
class Run:
    """One flood through one switch."""

    switch: str
    case: str
    size: int
    offered_pps: float
    delivered_pps: float
    cpu_us_per_packet: float
    load: float


def shell(command: str) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def make_links() -> None:
    """Generator g0 - s0, switch, s1 - g1 sink."""
    shell("ip link set lo up")
    shell("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 || true")
    for number in (0, 1):
        shell(f"ip link add g{number} type veth peer name s{number}")
        shell(f"ip link set g{number} up && ip link set s{number} up")


def received_packets(interface: str) -> int:
    """Frames the kernel has received on an interface."""
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == interface:
            return int(counts.split()[1])
    raise LookupError(interface)


def cpu_s(pid: int) -> float:
    """CPU time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def command_of(switch: str, binary: str, port: int) -> list[str]:
    """Both take the same command line."""
    command = [binary, "--no-p4", "-i", "0@s0", "-i", "1@s1", "--device-id", "1"]
    if switch == "simple_switch_grpc":
        command += ["--thrift-port", str(port + 1000), "--log-level", "off"]
    command += ["--", "--grpc-server-addr", f"127.0.0.1:{port}"]
    return [*command, "--cpu-port", str(CPU_PORT), "--drop-port", str(DROP_PORT)]


@contextmanager
def running(switch: str, binary: str, case: Case, port: int) -> Iterator[int]:
    """A switch with the program of a case; gives its process id."""
    command = command_of(switch, binary, port)
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            wait_until_it_listens(port)
            asyncio.run(asyncio.wait_for(install(case, port), 30))
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
    """Sets the program and its entry."""
    options = fy.SwitchOptions(p4info=case.p4info, p4blob=case.json, device_id=1)
    async with fy.Switch("switch", f"127.0.0.1:{port}", options) as switch:
        await switch.write([+case.entry()])


def flood(flooder: str, frame: bytes, seconds: float) -> float:
    """Frames sent a second."""
    command = [flooder, "g0", str(seconds), frame.hex()]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(output[0]) / float(output[3])


def measure(flooder: str, switch: str, pid: int, case: Case, size: int, seconds: float) -> Run:
    """One flood."""
    flood(flooder, case.frame(size), 0.2)  # caches and tables are warm from here on
    time.sleep(0.1)
    packets, cpu = received_packets("g1"), cpu_s(pid)
    offered = flood(flooder, case.frame(size), seconds)
    time.sleep(0.1)  # what is still in the switch comes out
    delivered = received_packets("g1") - packets
    used = cpu_s(pid) - cpu
    return Run(
        switch,
        case.name,
        size,
        offered,
        delivered / seconds,
        used / max(delivered, 1) * 1e6,
        os.getloadavg()[0],
    )


def machine() -> dict[str, str | int]:
    """What it was measured on."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "processor": model,
        "cores": os.cpu_count() or 0,
        "kernel": platform.release(),
        "system": platform.system(),
    }


def spread(values: list[float]) -> tuple[float, float, float]:
    """Median, least, greatest."""
    return statistics.median(values), min(values), max(values)


def table(runs: list[Run], switches: list[str], chosen: list[Case], sizes: list[int]) -> str:
    """The result as markdown."""
    lines = [
        "| case | frame | switch | delivered kpps: median (least-greatest) | offered kpps "
        "| CPU a packet | beside BMv2 |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in chosen:
        for size in sizes:
            of_cell = [run for run in runs if run.case == case.name and run.size == size]
            reference = [run.delivered_pps for run in of_cell if run.switch != switches[0]]
            for switch in switches:
                mine = [run for run in of_cell if run.switch == switch]
                median, least, greatest = spread([run.delivered_pps for run in mine])
                offered = statistics.median(run.offered_pps for run in mine)
                cpu = statistics.median(run.cpu_us_per_packet for run in mine)
                ratio = "" if not reference else f"{median / statistics.median(reference):.1f}x"
                lines.append(
                    f"| {case.title} | {size} B | {switch} | {median / 1e3:.0f} "
                    f"({least / 1e3:.0f}-{greatest / 1e3:.0f}) | {offered / 1e3:.0f} "
                    f"| {cpu:.2f} us | {ratio} |"
                )
    return "\n".join(lines)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--switch", required=True, help="the wormcast-switch binary")
    parser.add_argument("--flood", required=True, help="the traffic generator (an example)")
    parser.add_argument("--bmv2", default=shutil.which("simple_switch_grpc") or "")
    parser.add_argument("--cases", default="l2,unicast")
    parser.add_argument("--sizes", default="64,1500")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench-switch")
    arguments = parser.parse_args()

    logging.getLogger("finsy").setLevel(logging.ERROR)
    binaries = {"wormcast-switch": arguments.switch}
    if arguments.bmv2:
        binaries["simple_switch_grpc"] = arguments.bmv2
    else:
        print("simple_switch_grpc is not installed: measured without it", file=sys.stderr)
    chosen = [cases()[name] for name in arguments.cases.split(",")]
    sizes = [int(size) for size in arguments.sizes.split(",")]

    make_links()
    runs: list[Run] = []
    port = 20000
    for repeat in range(arguments.repeats):
        for case in chosen:
            for switch, binary in binaries.items():
                port += 1
                with running(switch, binary, case, port) as pid:
                    for size in sizes:
                        run = measure(arguments.flood, switch, pid, case, size, arguments.seconds)
                        runs.append(run)
                        print(
                            f"{repeat + 1}/{arguments.repeats} {switch:20} {case.name:8} "
                            f"{size:5} B {run.delivered_pps / 1e3:8.1f} kpps of "
                            f"{run.offered_pps / 1e3:.1f} offered, "
                            f"{run.cpu_us_per_packet:.2f} us CPU a packet",
                            file=sys.stderr,
                            flush=True,
                        )
    on = machine()
    method = (
        f"median of {arguments.repeats} floods of {arguments.seconds:g} s, switches in turn; "
        "one generator, veth links, receiver counts in the kernel"
    )
    markdown = (
        f"{on['processor']}, {on['cores']} cores, Linux {on['kernel']}; {method}.\n\n"
        f"{table(runs, list(binaries), chosen, sizes)}\n"
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {"machine": on, "method": method, "runs": [asdict(run) for run in runs]}
    (arguments.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    (arguments.out / "result.md").write_text(markdown)
    print(markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
