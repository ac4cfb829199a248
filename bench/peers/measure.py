"""A file from one host to seven others over one switch: Wormcast, and beside it UFTP and udpcast on a Linux bridge.

All links have the same rate. With `--loss` every link of Wormcast's fabric loses that part of its frames in both directions, and
every host beside it loses that part of what arrives. Every file that arrives is compared with what was sent.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECEIVERS = 7
SCHEMES = ("switch", "circuit")
SETTLE_S = 1.0
"""Until the receivers of a peer listen."""
SECONDS_MAX = 900
PEER_SECONDS_MAX = 90
"""After that a transfer of a peer has failed."""
# As the fabric's links (mininet/testbed/links.py): a burst of some frames, a queue of 40 ms.
BURST_BYTES, QUEUE_BYTES = 15_000, 150_000
HEADROOM = 0.95
"""Part of the link that UFTP and udpcast are told to use; they need a rate."""


def network(rate: float, loss: float) -> None:
    """A bridge with eight hosts in this namespace, each with its own."""
    commands = ["ip link add br0 type bridge mcast_snooping 0", "ip link set br0 up"]
    shape = f"tbf rate {rate}mbit burst {BURST_BYTES} limit {QUEUE_BYTES}"
    for host in range(RECEIVERS + 1):
        inside = f"ip netns exec h{host}"
        commands += [
            f"ip netns add h{host}",
            f"ip link add p{host} type veth peer name eth0 netns h{host}",
            f"ip link set p{host} master br0 up",
            f"{inside} ip addr add 10.0.0.{host + 1}/24 brd + dev eth0",
            f"{inside} ip link set eth0 up",
            f"{inside} ip link set lo up",
            f"{inside} ip route add 224.0.0.0/4 dev eth0",
        ]
        commands += [
            f"{before}tc qdisc add dev {device} root {shape}"
            for before, device in (("", f"p{host}"), (f"{inside} ", "eth0"))
        ]
        if loss:
            drop = f"-m statistic --mode random --probability {loss} -j DROP"
            commands.append(f"{inside} iptables -A INPUT {drop}")
    for command in commands:
        subprocess.run(command.split(), check=True)


def transfer(
    file: Path,
    receive: Callable[[Path], list[str]],
    send: list[str],
    received: Callable[[Path], Path],
    ends: bool,
) -> float:
    """Seconds that the sender took, with all files compared. `ends`: whether receivers end by themselves."""
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / f"h{host}" for host in range(1, RECEIVERS + 1)]
        processes = []
        for host, folder in enumerate(folders, 1):
            folder.mkdir()
            command = ["ip", "netns", "exec", f"h{host}", *receive(folder)]
            processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(SETTLE_S)
        begin = time.monotonic()
        done = subprocess.run(
            ["ip", "netns", "exec", "h0", *send], capture_output=True, text=True, timeout=SECONDS_MAX
        )
        took = time.monotonic() - begin
        for process in processes:
            if not ends:
                process.terminate()
            process.wait(SECONDS_MAX)
        if done.returncode != 0:
            raise RuntimeError(
                f"{send[0]} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"
            )
        wrong = [folder.name for folder in folders if received(folder).read_bytes() != file.read_bytes()]
        if wrong:
            raise RuntimeError(f"{send[0]}: the file is not right at {', '.join(wrong)}")
        return took


def uftp(file: Path, rate: float) -> float:
    kbps = str(round(rate * 1000 * HEADROOM))
    return transfer(
        file,
        lambda folder: ["uftpd", "-d", "-D", str(folder), "-I", "eth0"],
        ["uftp", "-I", "eth0", "-R", kbps, str(file)],
        lambda folder: folder / file.name,
        ends=False,
    )


def udpcast(file: Path, rate: float) -> float:
    send = [
        "udp-sender",
        "--file",
        str(file),
        "--interface",
        "eth0",
        "--nokbd",
        "--no-progress",
        "--full-duplex",
    ]
    return transfer(
        file,
        lambda folder: [
            "udp-receiver", "--file", str(folder / file.name), "--interface", "eth0", "--nokbd", "--no-progress"
        ],
        [*send, "--min-receivers", str(RECEIVERS), "--max-bitrate", f"{round(rate * 1000 * HEADROOM)}k"],
        lambda folder: folder / file.name,
        ends=True,
    )  # fmt: skip


PEERS = {"UFTP": ("uftpd", uftp), "udpcast": ("udp-sender", udpcast)}


def wormcast(rate: float, loss: float, size: int) -> dict[str, float]:
    """Seconds of each scheme, by the demo on one switch."""
    with tempfile.TemporaryDirectory() as place:
        hosts = [{"id": host, "switch": 0, "port": host} for host in range(RECEIVERS + 1)]
        topology = Path(place) / "one.json"
        topology.write_text(json.dumps({"switches": [{"id": 0, "ports": 8}], "hosts": hosts, "links": []}))
        command = [ROOT / ".venv" / "bin" / "wormcast", "demo", "--topology", topology, "--out", place]
        command += ["--rate", str(rate), "--size", str(size), "--schemes", ",".join(SCHEMES)]
        command += ["--impair", f"loss={loss}"] if loss else []
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=SECONDS_MAX)
        report = json.loads((Path(place) / "report.json").read_text())
    return {f"wormcast, {one['scheme']}": one["seconds"] for one in report["schemes"]}


def peer_seconds(name: str, rate: float, loss: float, size: int) -> float:
    """One transfer, in a sandbox that takes its network with it; infinite if it failed or did not end."""
    sandbox = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    # The sandbox ends with this process, and takes receivers that still wait with it.
    command = [
        "timeout",
        "--signal=KILL",
        str(PEER_SECONDS_MAX),
        *sandbox,
        sys.executable,
        __file__,
        "--inside",
        name,
        "--rate",
        str(rate),
        "--loss",
        str(loss),
    ]
    done = subprocess.run(
        [*command, "--bytes", str(size)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    return float(done.stdout) if done.returncode == 0 else math.inf


def inside(name: str, rate: float, loss: float, size: int) -> None:
    """In the sandbox: make the network, send, print the seconds."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    network(rate, loss)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "file"
        file.write_bytes(os.urandom(size))
        print(PEERS[name][1](file, rate))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=20.0, help="Mb/s of each link")
    parser.add_argument("--loss", type=float, default=0.0, help="part of the frames that each link loses")
    parser.add_argument("--bytes", type=int, default=16 << 20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--inside", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.inside, options.rate, options.loss, options.bytes)
        return
    seconds: dict[str, list[float]] = {}
    for _ in range(options.repeats):
        for name, took in wormcast(options.rate, options.loss, options.bytes).items():
            seconds.setdefault(name, []).append(took)
        for name, (program, _) in PEERS.items():
            if shutil.which(program):
                took = peer_seconds(name, options.rate, options.loss, options.bytes)
                seconds.setdefault(name, []).append(took)
    for name, (program, _) in PEERS.items():
        if not shutil.which(program):
            print(f"SKIPPED {name}: {program} is not installed")
    ideal = options.bytes * 8 / options.rate / 1e6
    print(f"| {options.loss:.1%} lost | seconds, median (all) | of the link |\n|---|---:|---:|")
    for name, took in seconds.items():
        median = statistics.median(took)
        every = ", ".join(f"{one:.1f}" for one in took)
        print(f"| {name} | {median:.1f} ({every}) | {ideal / median:.0%} |")


if __name__ == "__main__":
    main()
