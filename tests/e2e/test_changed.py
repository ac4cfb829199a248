"""What broke goes on, and what hosts have is not sent again: seven receivers, one of them a service, on both switches."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric

SECONDS_MAX = 600.0
"""Only against hanging for ever."""
HOSTS = range(1, 8)
SERVICE = 1
"""Where `wormcast receive` runs; elsewhere it is `wormcast recv`."""
BLOCK_BYTES = 256 << 10
SMALL_BYTES = 256 << 10
"""More than a list and headers have."""
AWAY = {"controller": {"connected": False}}
"""What an agent would say that does not answer."""


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=50.0 if switch == "wormcast" else 5.0)


@pytest.fixture
def size(switch: str) -> int:
    return 24_000_000 if switch == "wormcast" else 6_000_000


class Receiving:
    """All receivers of a group."""

    def __init__(self, fabric: Fabric, top: Path, scheme: str) -> None:
        self._fabric, self._top = fabric, top
        self.group = int(fabric.post("groups", {"scheme": scheme, "members": list(range(8))})["id"])
        fabric.wait_group(self.group)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        for host in HOSTS:
            self.into(host).mkdir()
        self.start(*HOSTS)

    def into(self, host: int) -> Path:
        return self._top / f"h{host}"

    def start(self, *hosts: int) -> None:
        for host in hosts:
            into = str(self.into(host))
            words = ["wormcast", "recv", "-g", str(self.group), "-o", into, "--overwrite"]
            if host == SERVICE:
                words = ["wormcast", "receive", "--into", into, "--group", str(self.group), "--overwrite"]
            self.processes[host] = self._fabric.popen(
                host, words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        wait_for_receivers(self._fabric, [(host, self.group) for host in hosts])

    def kill(self, host: int) -> None:
        self.processes[host].kill()
        self.processes[host].wait()

    def end(self) -> None:
        for host in HOSTS:
            self.kill(host)
        self._fabric.delete(f"groups/{self.group}")

    def send(self, path: Path, *more: str) -> subprocess.Popen[bytes]:
        words = ["wormcast", "send", str(path), "-g", str(self.group), "--changed", "--json", *more]
        return self._fabric.popen(0, words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def sent(self, path: Path, *more: str) -> dict[str, Any]:
        return self.report(self.send(path, *more))

    def report(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """Of one that has reached every member."""
        out, error = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0, (out, error)
        report: dict[str, Any] = json.loads(out)
        assert report["delivered"] == len(HOSTS)
        return report

    def half_way(self, process: subprocess.Popen[bytes], size: int) -> None:
        """Until a good part has come everywhere, and nothing has a name."""
        deadline = time.monotonic() + SECONDS_MAX
        while not all(bytes_in(self.into(host)) > size // 4 for host in HOSTS):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert not any(self.names(host) for host in HOSTS)

    def names(self, host: int) -> list[str]:
        return sorted(path.name for path in self.into(host).iterdir() if path.name[0] != ".")

    def has(self, path: Path) -> None:
        """Every host has it whole, and nothing of it is left."""
        for host in HOSTS:
            assert (self.into(host) / path.name).read_bytes() == path.read_bytes()
            assert self.names(host) == [path.name]
            assert not list(self.into(host).glob(".wormcast-kept-*"))


@pytest.fixture(params=["switch", "circuit"])
def receiving(fabric: Fabric, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Receiving]:
    receiving = Receiving(fabric, tmp_path, request.param)
    yield receiving
    receiving.end()


def bytes_in(directory: Path) -> int:
    size = 0
    for place, _, files in os.walk(directory):
        for name in files:
            try:
                size += (Path(place) / name).stat().st_blocks * 512
            except FileNotFoundError:
                continue
    return size


def file_of(path: Path, size: int) -> Path:
    path.write_bytes(random.Random(size).randbytes(size))
    return path


def recorded(fabric: Fabric) -> int:
    """Bytes of the last file that the controller has a record of."""
    return int(fabric.get("transfers")["transfers"][-1]["bytes"])


def wait_for_controller(fabric: Fabric) -> None:
    """Until all agents are connected: answers of receivers come by the controller."""
    deadline = time.monotonic() + SECONDS_MAX
    while not all((fabric.agent_status(host) or AWAY)["controller"]["connected"] for host in (0, *HOSTS)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_what_broke_goes_on(fabric: Fabric, receiving: Receiving, tmp_path: Path, size: int) -> None:
    file = file_of(tmp_path / "image.bin", size)
    first = receiving.send(file)
    receiving.half_way(first, size)
    first.kill()
    first.communicate()
    second = receiving.send(file, "--retry", "20")
    receiving.half_way(second, size)
    # It goes on without a controller, and is over when there is one again, and receivers to answer by it.
    receiving.kill(SERVICE)
    receiving.kill(2)
    fabric.stop_controller()
    fabric.start_controller()
    wait_for_controller(fabric)
    receiving.start(SERVICE, 2)
    report = receiving.report(second)
    assert report["bytes"] < size - size // 8
    receiving.has(file)
    assert receiving.sent(file)["bytes"] < SMALL_BYTES


def test_only_what_changed_is_sent(fabric: Fabric, receiving: Receiving, tmp_path: Path, size: int) -> None:
    file = file_of(tmp_path / "image.bin", size)
    for host in HOSTS:
        shutil.copy(file, receiving.into(host))
    with file.open("r+b") as opened:
        opened.seek(5 * BLOCK_BYTES)
        opened.write(b"changed")
    assert BLOCK_BYTES <= receiving.sent(file)["bytes"] < BLOCK_BYTES + SMALL_BYTES
    assert recorded(fabric) < BLOCK_BYTES + SMALL_BYTES
    receiving.has(file)
    # One host has nothing: the others have it, whatever is sent for that one.
    (receiving.into(3) / file.name).unlink()
    before = (receiving.into(4) / file.name).stat().st_ino
    assert receiving.sent(file)["bytes"] >= size
    assert (receiving.into(4) / file.name).stat().st_ino == before
    receiving.has(file)
