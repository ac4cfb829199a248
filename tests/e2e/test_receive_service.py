"""`wormcast receive` on running fabrics: all groups of its host, over the ends of agent, controller and itself."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from receivers import wait_for_receivers
from wormcast.mininet.fabric import Fabric
from wormcast.receive.history import Record, read_history

SECONDS_MAX = 600.0
"""Only against hanging for ever."""
HOSTS = (1, 2)
"""Where a service receives."""


@pytest.fixture(scope="module")
def fabric(make_fabric: Callable[..., Fabric], switch: str) -> Fabric:
    return make_fabric("testbed", switch=switch, rate_mbps=50.0 if switch == "wormcast" else 5.0)


@pytest.fixture
def make_group(fabric: Fabric) -> Iterator[Callable[..., int]]:
    made: list[int] = []

    def make(scheme: str, *members: int, **more: Any) -> int:
        number = int(fabric.post("groups", {"scheme": scheme, "members": list(members), **more})["id"])
        made.append(number)
        fabric.wait_group(number)
        return number

    yield make
    for number in made:
        fabric.delete(f"groups/{number}")


class Service:
    """`wormcast receive` on a host."""

    def __init__(self, fabric: Fabric, host: int, into: Path, *options: str) -> None:
        into.mkdir(exist_ok=True)
        self.into = into
        self._fabric, self._host, self._options = fabric, host, options
        self._log = into.parent / f"log-{host}"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            argv = ["wormcast", "receive", "--into", str(self.into), *self._options]
            self.process = self._fabric.popen(self._host, argv, stdout=subprocess.DEVNULL, stderr=log)

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return int(self.process.wait(SECONDS_MAX))

    @property
    def log(self) -> str:
        return self._log.read_text()

    def receives(self, *groups: int) -> None:
        """Waits until it does, from these groups."""

        def open_at() -> set[int]:
            status = self._fabric.agent_status(self._host) or {"groups": []}
            return {int(one["group"]) for one in status["groups"] if one["receivers"]}

        until(lambda: set(groups) <= open_at(), lambda: self.log)

    def records(self) -> list[Record]:
        return read_history(self.into)[0]

    def names(self) -> list[str]:
        return sorted(path.name for path in self.into.iterdir() if path.name[0] != ".")


@pytest.fixture
def serve(fabric: Fabric, tmp_path: Path) -> Iterator[Callable[..., list[Service]]]:
    """A service on each of HOSTS."""
    services: list[Service] = []

    def start(*options: str) -> list[Service]:
        services.extend(Service(fabric, host, tmp_path / f"into-{host}", *options) for host in HOSTS)
        return services

    yield start
    for service in services:
        service.process.kill()
        service.process.wait()


def until(condition: Callable[[], object], what: Callable[[], object] = str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def sending(fabric: Fabric, host: int, group: int, path: Path) -> subprocess.Popen[bytes]:
    argv = ["wormcast", "send", str(path), "-g", str(group), "--json"]
    return fabric.popen(host, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def sent(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, error = process.communicate(timeout=SECONDS_MAX)
    report: dict[str, Any] = json.loads(out or error)
    return report


def send(fabric: Fabric, host: int, group: int, path: Path) -> None:
    """To all members."""
    report = sent(sending(fabric, host, group, path))
    assert report.get("failed") == 0, report


def test_files_of_two_origins_two_groups_and_one_made_later_each_with_its_command(
    fabric: Fabric,
    make_group: Callable[..., int],
    serve: Callable[..., list[Service]],
    tmp_path: Path,
    random_file: Callable[[int], Path],
) -> None:
    note = 'printf "%s\\0" "$WORMCAST_FILE" "$WORMCAST_ORIGIN" "$WORMCAST_MESSAGE" "$WORMCAST_SHA256" '
    note += '>>"${WORMCAST_FILE%/*}/.notes"; case $WORMCAST_FILE in *bad*) exit 9;; esac'
    groups = [make_group("switch", 0, *HOSTS), make_group("circuit", 3, *HOSTS)]
    services = serve("--exec", note)
    for service in services:
        service.receives(*groups)
    evil = tmp_path / 'it\'s "$(touch ran)" `touch ran`; touch ran.bin'
    evil.write_bytes(os.urandom(50_000))
    bad = random_file(60_000).rename(tmp_path / "bad.bin")
    both = [sending(fabric, 0, groups[0], evil), sending(fabric, 3, groups[1], bad)]
    assert [sent(process)["failed"] for process in both] == [0, 0]
    later = make_group("tree", 0, 3, *HOSTS, name="later")
    argv = ["wormcast", "recv", "-g", "later", "-o", str(tmp_path), "--count", "1"]
    other = fabric.popen(3, argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    last = random_file(70_000).rename(tmp_path / "last.bin")
    # The services are not waited for: nobody would know when to send.
    wait_for_receivers(fabric, [(3, later)])
    send(fabric, 0, later, last)
    assert other.wait(SECONDS_MAX) == 0
    for service in services:
        until(lambda: [one.command for one in service.records()] == ["ended"] * 3)  # noqa: B023 - used at once
        assert service.names() == sorted(path.name for path in (evil, bad, last))
        records = {record.name: record for record in service.records()}
        for path, origin, status in ((evil, 0, 0), (bad, 3, 9), (last, 0, 0)):
            record, digest = records[path.name], hashlib.sha256(path.read_bytes()).hexdigest()
            assert (service.into / path.name).read_bytes() == path.read_bytes()
            assert (record.outcome, record.origin, record.sha256) == ("received", origin, digest)
            assert record.exit_status == status
        told = (service.into / ".notes").read_bytes().decode().split("\0")[:-1]
        # In the order in which they were confirmed.
        facts = [(r.file, r.origin, r.message, r.sha256) for r in service.records()]
        assert told == [str(fact) for record in facts for fact in record]
        assert "ended with 9" in service.log
        assert records["last.bin"].group == "later"
    # The same message has the same number at all members.
    one, two = ({record.name: record.message for record in service.records()} for service in services)
    assert one == two
    assert not list(tmp_path.rglob("ran"))


def test_it_outlives_the_agent_and_the_controller(
    fabric: Fabric,
    make_group: Callable[..., int],
    serve: Callable[..., list[Service]],
    tmp_path: Path,
    random_file: Callable[[int], Path],
) -> None:
    group = make_group("switch", 0, *HOSTS)
    one, two = serve()
    for service in (one, two):
        service.receives(group)
    rate = fabric.options.rate_mbps
    assert rate is not None
    large = random_file(int(rate * 250_000)).rename(tmp_path / "large.bin")
    process = sending(fabric, 0, group, large)
    until(lambda: stream_bytes(fabric, 1, group) > 100_000)
    fabric.kill_agent(1)
    fabric.start_agent(1)
    report = sent(process)
    delivered = {member["host"]: member["delivered"] for member in report["members"]}
    # Nothing is said to be there that is not.
    assert delivered[2]
    assert ("large.bin" in one.names()) >= delivered[1]
    fabric.wait_group(group)
    one.receives(group)
    fabric.stop_controller()
    small = random_file(30_000).rename(tmp_path / "small.bin")
    send(fabric, 0, group, small)
    fabric.start_controller()
    fabric.wait_ready()
    later = make_group("circuit", 0, *HOSTS)
    for service in (one, two):
        service.receives(later)
    send(fabric, 0, later, small)
    for service in (one, two):
        assert {"small.bin", "small.1.bin"} <= set(service.names())
        whole = {record.file for record in service.records() if record.outcome == "received"}
        assert {str(service.into / "small.bin"), str(service.into / "small.1.bin")} <= whole
        assert all((service.into / name).read_bytes() in contents(large, small) for name in service.names())
        assert service.end(signal.SIGTERM) == 0


def contents(*paths: Path) -> list[bytes]:
    return [path.read_bytes() for path in paths]


def stream_bytes(fabric: Fabric, host: int, group: int) -> int:
    status = fabric.agent_status(host) or {"groups": []}
    streams = [stream for one in status["groups"] if one["group"] == group for stream in one["streams"]]
    return sum(stream["data_received_bytes"] for stream in streams)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ended_in_the_middle_it_keeps_what_is_whole_and_nothing_else(
    fabric: Fabric,
    make_group: Callable[..., int],
    serve: Callable[..., list[Service]],
    tmp_path: Path,
    random_file: Callable[[int], Path],
    number: int,
) -> None:
    group = make_group("circuit", 0, *HOSTS)
    services = serve()
    for service in services:
        service.receives(group)
    whole = random_file(40_000).rename(tmp_path / "whole.bin")
    send(fabric, 0, group, whole)
    # For ever, if nobody stops it.
    endless = sending(fabric, 0, group, Path("/dev/zero"))
    before = {host: stream_bytes(fabric, host, group) for host in HOSTS}
    until(lambda: all(stream_bytes(fabric, host, group) > before[host] + 100_000 for host in HOSTS))
    for service in services:
        assert service.end(number) == (0 if number == signal.SIGTERM else -number)
        assert service.names() == ["whole.bin"]
        assert not list(service.into.glob(".wormcast-partial-*"))
    report = sent(endless)
    assert (report["delivered"], report["failed"]) == (0, 2)
    for service in services:
        service.start()
        service.receives(group)
    send(fabric, 0, group, whole)
    for service in services:
        assert service.names() == ["whole.1.bin", "whole.bin"]
        records = service.records()
        # What was cut off is written down if there was time for it.
        cut = ["failed"] if number == signal.SIGTERM else []
        assert [record.outcome for record in records] == ["received", *cut, "received"]
        argv = ["wormcast", "receive", "--history", "--json", "--into", str(service.into)]
        out, _ = fabric.popen(1, argv, stdout=subprocess.PIPE).communicate(timeout=SECONDS_MAX)
        assert [Record(**json.loads(line)) for line in out.splitlines()] == records
