"""Counters and MTUs of this machine's interfaces, as the kernel gives them.

From /proc/net and by ioctl, not from /sys: that shows the network namespace it was
mounted in, which need not be the one this process runs in.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import shutil
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

INTERFACES_FILE = Path("/proc/net/dev")
TC_SECONDS_MAX = 10.0
SIOCGIFMTU = 0x8921
NAME_BYTES_MAX = 15


@dataclass(frozen=True)
class InterfaceCounts:
    """Frames an interface lost. `queue`: by its queueing discipline; None where that cannot be read."""

    receive_dropped: int
    receive_errors: int
    send_dropped: int
    send_errors: int
    queue_dropped: int | None = None

    def drops(self) -> dict[str, int]:
        """By cause."""
        found = {
            "kernel_receive": self.receive_dropped,
            "kernel_receive_error": self.receive_errors,
            "kernel_send": self.send_dropped,
            "kernel_send_error": self.send_errors,
        }
        return found if self.queue_dropped is None else {**found, "kernel_queue": self.queue_dropped}


def parse_interfaces(text: str) -> dict[str, InterfaceCounts]:
    """Counts by interface, from the text of /proc/net/dev."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        row = [int(number) for number in numbers.split()]
        found[name.strip()] = InterfaceCounts(row[3], row[2], row[11], row[10])
    return found


def parse_queues(text: str) -> dict[str, int]:
    """Packets dropped by each interface's queueing discipline, from what `tc -s -j qdisc show` prints."""
    return {q["dev"]: q["drops"] for q in json.loads(text) if q.get("root") and "drops" in q}


async def read_interfaces() -> dict[str, InterfaceCounts]:
    """Counts of every interface of this network namespace."""
    queues = await _read_queues()
    return {
        name: InterfaceCounts(
            counts.receive_dropped,
            counts.receive_errors,
            counts.send_dropped,
            counts.send_errors,
            queues.get(name),
        )
        for name, counts in parse_interfaces(INTERFACES_FILE.read_text()).items()
    }


async def _read_queues() -> dict[str, int]:
    """Empty where `tc` is not there or does not answer."""
    tool = shutil.which("tc") or shutil.which("tc", path="/usr/sbin:/sbin")
    if tool is None:
        return {}
    process = await asyncio.create_subprocess_exec(
        tool,
        *("-s", "-j", "qdisc", "show"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(TC_SECONDS_MAX):
            out, _ = await process.communicate()
        return parse_queues(out.decode())
    except (TimeoutError, ValueError, KeyError, TypeError):
        return {}
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def read_mtus(names: set[str]) -> dict[str, int]:
    """MTU of each of these interfaces that is there, bytes."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for name in sorted(names):
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(asking, SIOCGIFMTU, struct.pack("16s16x", name.encode()))
                (found[name],) = struct.unpack_from("i", answer, 16)
    return found
