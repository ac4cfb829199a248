"""What labs are built of: cables, running switches, frames."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from wormcast.mininet.nodes import start_daemon, stop_process
from wormcast.mininet.programs import find_switch

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "switch" / "tests" / "programs"
L2_PROGRAM = ROOT / "switch" / "bench" / "programs"

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
ETH_P_ALL = 3
RECEIVE_BUFFER_BYTES = 64 << 20
SO_TIMESTAMPNS = 35
"""As in asm-generic/socket.h; Python 3.11 has no name for it."""
SO_RCVBUFFORCE = 33


class LabError(RuntimeError):
    """A lab cannot go on; the text says why and what to do."""


def switch_binary() -> Path:
    """wormcast-switch. Raises LabError where it is not installed."""
    try:
        return Path(find_switch("wormcast"))
    except FileNotFoundError as error:
        raise LabError(str(error)) from error


def ip(*words: str) -> None:
    """Run ip(8). Raises LabError with what it says."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def make_cable(one: str, other: str) -> None:
    """Two virtual interfaces, each the other end of the other."""
    ip("link", "add", one, "type", "veth", "peer", "name", other)
    for end in (one, other):
        ip("link", "set", end, "up")


def open_interface(interface: str, *, timeout_s: float | None = None) -> socket.socket:
    """A packet socket that sends and receives whole frames, with the kernel's time of arrival."""
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    link.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    link.bind((interface, ETH_P_ALL))
    link.settimeout(timeout_s)
    return link


class SwitchProcess:
    """wormcast-switch, from its start until it has written its statistics.

    `argv`: the command line behind the program's name. The log is `directory`/switch.log.
    """

    def __init__(self, argv: Sequence[str], directory: Path) -> None:
        self.log_path = directory / "switch.log"
        self._statistics_path = directory / "switch.json"
        self._statistics_path.unlink(missing_ok=True)
        self._log: IO[bytes] = self.log_path.open("wb")
        command = [str(switch_binary()), *argv, "--log-console", "--log-level", "info"]
        self.process = start_daemon([*command, "--statistics", str(self._statistics_path)], self._log)
        try:
            wait_until(self._listens, "the switch listens", START_SECONDS_MAX)
        except LabError as error:
            stop_process(self.process)
            raise LabError(f"{error}; its log ends: {self.log()[-800:]}") from error

    def _listens(self) -> bool:
        if self.process.poll() is not None:
            raise LabError(f"wormcast-switch ended with code {self.process.returncode}: {self.log()[-800:]}")
        return "istening on" in self.log()

    def log(self) -> str:
        """What it has said so far."""
        return self.log_path.read_text(errors="replace")

    def log_lines(self, word: str) -> list[str]:
        return [line for line in self.log().splitlines() if word in line]

    def stop(self) -> dict[str, Any]:
        """End it as a user would; give its statistics."""
        code = stop_process(self.process, STOP_SECONDS_MAX)
        self._log.close()
        if code != 0:
            raise LabError(f"wormcast-switch ended with code {code}: {self.log()[-800:]}")
        statistics: dict[str, Any] = json.loads(self._statistics_path.read_text())
        return statistics

    def kill(self) -> None:
        """End it in any case."""
        if self.process.poll() is None:
            stop_process(self.process)
        self._log.close()


@contextlib.contextmanager
def running_switch(argv: Sequence[str], directory: Path) -> Iterator[SwitchProcess]:
    """A switch that runs until the block ends."""
    switch = SwitchProcess(argv, directory)
    try:
        yield switch
    finally:
        switch.kill()


def wait_until(condition: Callable[[], bool], what: str, seconds_max: float) -> None:
    """Wait for something. Raises LabError when it does not come about."""
    deadline = time.monotonic() + seconds_max
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"waited {seconds_max:.0f} s in vain until {what}")
        time.sleep(0.02)


def ipv4_frame(destination: bytes, source: bytes, payload: bytes, *, dscp: int = 0) -> bytes:
    """An Ethernet frame with a UDP datagram in it, of addresses in 10.0.0.0/8 made from the MAC addresses."""
    udp = b"\x13\x88\x13\x88" + (8 + len(payload)).to_bytes(2, "big") + bytes(2) + payload
    head = bytes([0x45, dscp << 2]) + (20 + len(udp)).to_bytes(2, "big") + bytes(4) + b"\x40\x11"
    addresses = b"\x0a" + source[3:] + b"\x0a" + destination[3:]
    words = head + bytes(2) + addresses
    total = sum(int.from_bytes(words[at : at + 2], "big") for at in range(0, 20, 2))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = (~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
    return destination + source + b"\x08\x00" + head + checksum + addresses + udp
