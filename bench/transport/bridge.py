"""A bare Linux bridge with a host in a namespace of its own at each port, and programs that run on the hosts.

It forwards more cheaply than any P4 switch does.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

# As the fabric's links (mininet/testbed/links.py): a burst of some frames, a queue of 40 ms.
BURST_BYTES, QUEUE_BYTES = 15_000, 150_000
OFFLOADS = "tso off gso off gro off"


class PeerError(RuntimeError):
    """A peer did not do what it was started for; the text says how it ended."""


def address(host: int) -> str:
    """IPv4 address of a host; 0 is the source."""
    return f"10.0.0.{host + 1}"


def make(hosts: int, mtu: int, rate: float | None, loss: float) -> None:
    """The bridge, and all hosts. `rate`: Mb/s. `loss`: part of what arrives at each host."""
    commands = ["ip link add br0 type bridge mcast_snooping 0", f"ip link set br0 mtu {mtu} up"]
    for host in range(hosts):
        inside = f"ip netns exec h{host}"
        commands += [
            f"ip netns add h{host}",
            f"ip link add p{host} mtu {mtu} type veth peer name eth0 mtu {mtu} netns h{host}",
            f"ip link set p{host} master br0 up",
            f"{inside} ip addr add {address(host)}/24 brd + dev eth0",
            f"{inside} ip link set eth0 up",
            f"{inside} ip link set lo up",
            f"{inside} ip route add 224.0.0.0/4 dev eth0",
            # Frames are as long as they are said to be, and one that is lost is one frame.
            f"{inside} ethtool -K eth0 {OFFLOADS}",
            f"ethtool -K p{host} {OFFLOADS}",
        ]
        if rate is not None:
            shape = f"tbf rate {rate}mbit burst {BURST_BYTES} limit {QUEUE_BYTES}"
            for before, device in (("", f"p{host}"), (f"{inside} ", "eth0")):
                commands.append(f"{before}tc qdisc add dev {device} root {shape}")
        if loss:
            drop = f"-m statistic --mode random --probability {loss} -j DROP"
            commands.append(f"{inside} iptables -A INPUT ! -i lo {drop}")
    for command in commands:
        subprocess.run(command.split(), check=True, stdout=subprocess.DEVNULL)


class Program:
    """A program on a host. When it has ended, `seconds` is what it and its children took of the processor."""

    def __init__(self, host: int, argv: Sequence[str], **options: str) -> None:
        self.what = f"{argv[0]} on h{host}"
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 (closed with it)
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", f"h{host}", *argv],
            stdin=subprocess.DEVNULL,
            stdout=self.said,
            stderr=self.said,
            env={**os.environ, **options},
        )
        self.seconds = 0.0

    def wait(self, *, wanted: bool = True) -> str:
        """Until it ends; what it printed. Raises `PeerError` where it failed, if what it does is `wanted`."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = used.ru_utime + used.ru_stime
        self.said.seek(0)
        text = self.said.read().decode(errors="replace")
        if wanted and self.process.returncode != 0:
            raise PeerError(f"{self.what} ended with {self.process.returncode}: {text.strip()[-300:]}")
        return text

    def stop(self) -> None:
        """It does not end by itself."""
        os.kill(self.process.pid, 15)
        self.wait(wanted=False)

    def wait_for(self, text: str) -> None:
        """Until it has printed this, or has ended."""
        while text.encode() not in os.pread(self.said.fileno(), 1 << 20, 0):
            if self.process.poll() is not None:
                raise PeerError(f"{self.what} ended with {self.process.returncode}")
            time.sleep(0.02)


def listens(host: int, kind: str, port: int) -> None:
    """Wait until somebody on the host listens at a port; `kind`: tcp or udp."""
    wanted = f":{port:04X} "
    while True:
        table = subprocess.run(
            ["ip", "netns", "exec", f"h{host}", "cat", f"/proc/net/{kind}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        if wanted in table:
            return
        time.sleep(0.02)


def shell(script: str, *words: str | Path) -> list[str]:
    """A command line of a pipe, of which every part has to succeed."""
    return ["bash", "-c", f"set -e -o pipefail; {script}", "bash", *map(str, words)]
