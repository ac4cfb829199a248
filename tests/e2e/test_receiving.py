"""`wormcast recv` on running fabrics: its rate is that of the link, standard output gets whole files, an agent that
restarts is waited for, and nothing is left of what was killed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wormcast.mininet.fabric import Fabric

SECONDS_MAX = 600.0
"""Only against hanging for ever."""


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=50.0 if switch == "wormcast" else 5.0)


@pytest.fixture
def group(fabric: Fabric) -> Any:
    made = fabric.post("groups", {"scheme": "switch", "members": [0, 1, 2]})
    fabric.wait_group(made["id"])
    yield made["id"]
    fabric.delete(f"groups/{made['id']}")


def start(fabric: Fabric, host: int, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return fabric.popen(host, ["wormcast", *words], **pipes)


def recv(fabric: Fabric, host: int, group: int, output: object, *more: str) -> subprocess.Popen[bytes]:
    process = start(fabric, host, "recv", "-g", str(group), "-o", str(output), "--json", *more)
    until(lambda: receivers(fabric, host, group) == 1)
    return process


def receivers(fabric: Fabric, host: int, group: int) -> int:
    status = fabric.agent_status(host)
    groups = [] if status is None else status["groups"]
    return sum(one["receivers"] for one in groups if one["group"] == group)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, list[dict[str, Any]]]:
    out, error = process.communicate(timeout=SECONDS_MAX)
    return process.returncode, [json.loads(line) for line in (out or error).decode().splitlines()]


def test_the_rate_is_that_of_the_link_for_who_reads_late(
    fabric: Fabric, group: int, tmp_path: Path, random_file: Callable[[int], Path]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    rate = fabric.options.rate_mbps
    assert rate is not None
    file = random_file(int(rate * 250_000))
    first = recv(fabric, 1, group, one, "--count", "1")
    sending = start(fabric, 0, "send", str(file), "-g", str(group), "--json")
    # Most of it is at host 2 when it begins to read there.
    until(lambda: stream_bytes(fabric, 2, group) > 100_000)
    late = recv(fabric, 2, group, two, "--count", "1")
    assert ended(sending)[0] == 0
    for process in (first, late):
        code, (report,) = ended(process)
        assert code == 0
        assert report["rate_mbit_s"] <= rate, report
    assert (two / file.name).read_bytes() == file.read_bytes()


def stream_bytes(fabric: Fabric, host: int, group: int) -> int:
    status = fabric.agent_status(host)
    groups = [] if status is None else status["groups"]
    streams = [stream for one in groups if one["group"] == group for stream in one["streams"]]
    return sum(stream["data_received_bytes"] for stream in streams)


def test_files_of_two_origins_at_once_are_whole_on_standard_output(
    fabric: Fabric, group: int, tmp_path: Path, random_file: Callable[[int], Path]
) -> None:
    files = [random_file(300_001), tmp_path / "other"]
    files[1].write_bytes(files[0].read_bytes()[::-1])
    taken = tmp_path / "taken"
    with taken.open("wb") as out:
        arguments = ["recv", "-g", str(group), "-o", "-", "--count", "2"]
        reading = start(fabric, 2, *arguments, stdout=out)
    until(lambda: receivers(fabric, 2, group) == 1)
    (tmp_path / "rest").mkdir()
    others = [recv(fabric, host, group, tmp_path / "rest", "--count", "1") for host in (0, 1)]
    sending = [
        start(fabric, host, "send", str(file), "-g", str(group), "--json")
        for host, file in zip((0, 1), files, strict=True)
    ]
    assert [ended(process)[0] for process in [*sending, *others]] == [0] * 4
    assert reading.wait(SECONDS_MAX) == 0
    one, other = (file.read_bytes() for file in files)
    assert taken.read_bytes() in (one + other, other + one)


def test_a_receiver_outlives_its_agent(
    fabric: Fabric, group: int, tmp_path: Path, random_file: Callable[[int], Path]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    file = random_file(100_000)
    waiting = recv(fabric, 1, group, one, "--count", "1")
    other = recv(fabric, 2, group, two, "--count", "1")
    fabric.kill_agent(1)
    time.sleep(1)
    fabric.start_agent(1)
    until(lambda: receivers(fabric, 1, group) == 1)
    fabric.wait_group(group)
    assert ended(start(fabric, 0, "send", str(file), "-g", str(group), "--json"))[0] == 0
    code, (report,) = ended(waiting)
    assert (code, report["bytes"]) == (0, 100_000)
    assert ended(other)[0] == 0
    assert (one / file.name).read_bytes() == file.read_bytes()


def test_a_sender_stops_when_its_receivers_are_killed(fabric: Fabric, group: int, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    reading = [recv(fabric, host, group, directory) for host, directory in ((1, one), (2, two))]
    # For ever, if nobody stops it.
    sending = start(fabric, 0, "send", "/dev/zero", "-g", str(group), "--json")
    until(lambda: stream_bytes(fabric, 1, group) > 100_000 and stream_bytes(fabric, 2, group) > 100_000)
    for process in reading:
        process.kill()
        process.communicate()
    code, (report,) = ended(sending)
    assert (code, report["stopped"], report["delivered"], report["failed"]) == (3, True, 0, 2)
    assert list(one.iterdir()) == list(two.iterdir()) == []
