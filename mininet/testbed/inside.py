"""Work inside network namespaces, on threads that enter them: a process to enter each one costs more than the work."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
# linux/ethtool.h: checksums of what is sent and received, and joining of segments. What a veth leaves to hardware.
OFFLOADS = {"tx": 0x17, "rx": 0x15, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
NAME_BYTES = 16


def in_namespaces(works: Sequence[tuple[Path, Callable[[], None]]]) -> None:
    """Do each work in the network namespace of its file, as many at a time as there are processors. What a work starts is
    in its namespace too. Raises what the first of them raises, when all have ended."""
    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(_do, works[n::threads]) for n in range(threads)]:
            done.result()


def _do(works: Sequence[tuple[Path, Callable[[], None]]]) -> None:
    for namespace, work in works:
        with namespace.open("rb") as file:
            _enter(file.fileno())
        work()


def _enter(descriptor: int) -> None:
    """Of this thread alone (setns(2)); Python has it from 3.12 on."""
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), "setns")


def no_offload(interface: str) -> None:
    """veth leaves checksums to hardware that is not there; frames pass through raw sockets. A kernel that lacks one of
    these has nothing to leave."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for command in OFFLOADS.values():
            value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
            name = interface.encode().ljust(NAME_BYTES, b"\0")
            request = struct.pack(f"{NAME_BYTES}sP16x", name, ctypes.addressof(value))
            with contextlib.suppress(OSError):
                fcntl.ioctl(asking, SIOCETHTOOL, request)


def no_ipv6() -> None:
    """Nothing is said over IPv6 here; so it is where the kernel has none."""
    with contextlib.suppress(FileNotFoundError):
        Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1\n")
