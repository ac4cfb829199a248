"""`wormcast receive` with real agents: which groups it receives from, and over whose ends."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_lab.lab import PROGRAM, Lab, environment, group
from agent_lab.service import LIMIT_S, Service, file_of, names, send, services, until
from wormcast.client import Agent
from wormcast.client.files import encode_file_start

pytestmark = pytest.mark.network

FIRST = [group(1, "repeat", [0, 1, 2]), group(2, "circuit", [0, 1, 2])]


@pytest.fixture(scope="module")
def made() -> Iterator[Lab]:
    # Shells start what runs in the background deaf to SIGINT, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    lab = Lab(3, FIRST, "--receiver-wait", "600")
    yield lab
    lab.close()
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def lab(made: Lab) -> Lab:
    """All agents live, with the first groups."""
    made.plan(FIRST)
    return made


@pytest.fixture
def into(tmp_path: Path) -> Path:
    directory = tmp_path / "into"
    directory.mkdir()
    return directory


@pytest.fixture
def serve(lab: Lab, into: Path) -> Iterator[Callable[..., Service]]:
    with services() as started:

        def start(*options: str, **more: Any) -> Service:
            started.append(Service(lab, into, *options, **more))
            return started[-1]

        yield start


def test_files_of_two_origins_and_all_groups_come_also_of_one_made_later(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    service = serve()
    service.says("receiving from group 2 (group2)")
    one, two, three = (file_of(tmp_path / f"{n}.bin", 5000 + n, n) for n in (1, 2, 3))
    send(lab, 0, 1, one)
    send(lab, 2, 2, two)
    lab.plan([*FIRST, group(7, "circuit", [0, 1, 2])])
    send(lab, 2, 7, three)
    for path in (one, two, three):
        assert (service.into / path.name).read_bytes() == path.read_bytes()
    until(lambda: all(record.outcome == "received" for record in service.records()))
    seen = [(record.group, record.origin, record.name) for record in service.records()]
    assert seen == [("group1", 0, "1.bin"), ("group2", 2, "2.bin"), ("group7", 2, "3.bin")]
    digests = [record.sha256 for record in service.records()]
    assert digests == [hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, two, three)]
    # Deleted, and made again with another number.
    lab.plan([{**group(9, "circuit", [0, 1, 2]), "name": "group7"}])
    service.says("the receiver of group 7 (group7) is closed")
    service.says("receiving from group 9 (group7)")
    send(lab, 0, 9, two)
    until(lambda: len(service.records()) == 4 and service.records()[-1].outcome == "received")
    assert (service.records()[-1].group_number, service.records()[-1].file) == (
        9,
        str(service.into / "2.1.bin"),
    )
    assert service.stop() == 0


def test_only_named_groups_and_hosts_are_received_from_once_they_are_there(
    lab: Lab, serve: Callable[..., Service]
) -> None:
    service = serve("--group", "later", "--group", "2", "--from", "0")
    service.says("this host is in no group 'later' yet")
    service.says("receiving from group 2 (group2)")
    lab.plan([*FIRST, {**group(5, "repeat", [0, 1]), "name": "later"}, group(6, "repeat", [0, 1])])
    service.says("receiving from group 5 (later)")
    # Of a group without this host nothing can come, until it joins.
    lab.plan([*FIRST, {**group(5, "repeat", [1, 2]), "name": "later"}])
    with Agent(lab.socket(1)) as agent:
        receivers = {one["group"]: one["receivers"] for one in agent.status()["groups"]}
    assert receivers == {1: 0, 2: 1, 5: 1}
    assert service.log.count("no group 'later' yet") == 1
    assert service.stop(signal.SIGINT) == 130


def test_a_sink_is_left_alone_unless_it_is_named(lab: Lab, serve: Callable[..., Service]) -> None:
    lab.plan([*FIRST, {**group(8, "repeat", [0, 1]), "sink": True}])
    service = serve()
    service.says("receiving from group 2 (group2)")
    with Agent(lab.socket(0)) as agent, agent.open_sender(8) as sender:
        assert not sender.send(b"no file", LIMIT_S).failed
    assert service.records() == []
    assert service.stop() == 0
    named = serve("--group", "8")
    named.says("receiving from group 8 (group8)")


def test_a_host_that_is_in_no_group_is_waited_for(lab: Lab, serve: Callable[..., Service]) -> None:
    lab.plan([group(1, "repeat", [1, 2])])
    service = serve("--from", "0")
    service.says("group 1 (group1) is not received from: host 0 is not another member of group 1")
    lab.plan(FIRST)
    service.says("receiving from group 1 (group1)")


def test_a_group_of_another_program_is_left_to_it_until_that_ends(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    with Agent(lab.socket(1)) as other:
        other.open_receiver(1)
        service = serve()
        service.says("group 1 (group1) is not received from: group 1 already has a receiver")
        service.says("receiving from group 2 (group2)")
        lab.plan([*FIRST, group(3, "repeat", [0, 1])])
        service.says("receiving from group 3 (group3)")
        assert service.log.count("already has a receiver") == 1
    service.says("receiving from group 1 (group1)")
    send(lab, 0, 1, file_of(tmp_path / "a"))


def test_it_waits_for_an_agent_that_is_not_there_and_outlives_one_that_is_killed(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    lab.agent("kill", 1)
    service = serve()
    service.says("waiting for the agent: no agent at ")
    lab.agent("start", 1)
    service.says("receiving from group 1 (group1)")
    # One that is in the middle is given up.
    large = file_of(tmp_path / "large", 1_000_000)
    with Agent(lab.socket(0)) as agent, agent.open_sender(1) as sender:
        sender.write(encode_file_start("large", None) + large.read_bytes())
        until(lambda: open_files(service) > 0)
        lab.agent("kill", 1)
        service.says("large from host 0, group 1 (group1): the agent is gone")
        lab.agent("start", 1)
    service.says("receiving from group 1 (group1)", 2)
    until(lambda: plan_of(lab, 1))
    send(lab, 0, 2, large)
    assert names(service.into) == ["large"]
    assert service.stop() == 0
    # What its origin has of the first may have come once more before that was cancelled.
    outcomes = [record.outcome for record in service.records()]
    assert (outcomes[0], outcomes.count("received"), set(outcomes)) == ("failed", 1, {"failed", "received"})


def plan_of(lab: Lab, host: int) -> int:
    with Agent(lab.socket(host)) as agent:
        return int(agent.status()["plan_epoch"])


def open_files(service: Service) -> int:
    """Files without name that it has open in its directory."""
    count = 0
    for link in Path(f"/proc/{service.process.pid}/fd").iterdir():
        try:
            count += link.readlink().name.startswith("#")
        except FileNotFoundError:
            continue
    return count


def test_what_is_arriving_when_it_ends_is_given_up(lab: Lab, serve: Callable[..., Service]) -> None:
    service = serve()
    service.says("receiving from group 1 (group1)")
    with Agent(lab.socket(0)) as agent, agent.open_sender(1) as sender:
        sender.write(encode_file_start("half", None) + bytes(100_000))
        until(lambda: open_files(service) > 0)
        assert service.stop() == 0
        until(lambda: sender.message_state().members[0].state == "failed" or sender.poll())
    assert names(service.into) == []
    (record,) = service.records()
    assert (record.outcome, record.reason, record.name) == ("failed", "this service has ended", "half")


def test_killed_it_leaves_nothing_and_starts_again(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    service = serve()
    service.says("receiving from group 1 (group1)")
    send(lab, 0, 1, file_of(tmp_path / "whole"))
    with Agent(lab.socket(0)) as agent, agent.open_sender(1) as sender:
        sender.write(encode_file_start("half", None) + bytes(100_000))
        until(lambda: open_files(service) > 0)
        service.process.kill()
        service.process.wait()
    assert names(service.into) == ["whole"]
    again = serve()
    again.says("receiving from group 1 (group1)")
    send(lab, 0, 1, file_of(tmp_path / "whole"))
    assert names(again.into) == ["whole", "whole.1"]
    assert again.stop() == 0
    assert [record.number for record in again.records()] == [0, 1]
    assert len({record.message for record in again.records()}) == 2


def test_two_services_do_not_share_a_directory(serve: Callable[..., Service]) -> None:
    first = serve()
    first.says("receiving from")
    second = serve()
    assert second.process.wait(LIMIT_S) == 2
    assert "another `wormcast receive` receives into it" in second.log


def test_a_frozen_agent_does_not_keep_it_from_ending(lab: Lab, serve: Callable[..., Service]) -> None:
    service = serve()
    service.says("receiving from group 1 (group1)")
    pid = agent_pid(lab, 1)
    subprocess.run(["kill", "-STOP", str(pid)], check=True)
    try:
        assert service.stop() == 0
        # Nor one that does not answer.
        again = serve()
        until(lambda: sockets_of(again.process.pid))
        assert again.stop() == 0
    finally:
        subprocess.run(["kill", "-CONT", str(pid)], check=True)


def sockets_of(pid: int) -> list[str]:
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(link.readlink()))
    return [link for link in found if link.startswith("socket:")]


def agent_pid(lab: Lab, host: int) -> int:
    with Agent(lab.socket(host)) as agent:
        peer = agent._connection._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(peer[:4], sys.byteorder)


FEW = """
import wormcast.receive.receivers as receivers
receivers.RECEIVERS_MAX, receivers.CONNECTIONS_MAX, receivers.GROUPS_MAX = 2, 2, 4
from wormcast.cli.main import main
main(prog_name='wormcast')
"""


def test_more_groups_than_it_may_have_are_named(
    lab: Lab, serve: Callable[..., Service], tmp_path: Path
) -> None:
    groups = [group(number, "repeat", [0, 1, 2]) for number in range(1, 6)]
    lab.plan(groups)
    service = serve(program=[sys.executable, "-c", FEW])
    service.says("group 5 (group5) is not received from: this service receives from at most 4 groups")
    for number in (1, 2, 3, 4):
        send(lab, 0, number, file_of(tmp_path / f"{number}"))
    lab.plan(groups[1:])
    service.says("receiving from group 5 (group5)")
    send(lab, 0, 5, file_of(tmp_path / "5"))
    assert names(service.into) == ["1", "2", "3", "4", "5"]


def test_a_connection_that_is_refused_is_had_when_there_is_room(
    lab: Lab, serve: Callable[..., Service]
) -> None:
    others = [Agent(lab.socket(1)) for _ in range(31)]
    try:
        lab.plan([group(number, "repeat", [0, 1, 2]) for number in range(1, 4)])
        service = serve(program=[sys.executable, "-c", FEW])
        service.says(
            "group 3 (group3) is not received from: the agent ended the connection: 32 local clients"
        )
    finally:
        for other in others:
            other.close()
    service.says("receiving from group 3 (group3)")


def test_figures_are_served_over_http(lab: Lab, serve: Callable[..., Service], tmp_path: Path) -> None:
    place = tmp_path / "metrics.sock"
    service = serve("--metrics", f"unix:{place}", "--exec", "exit 3")
    service.says("receiving from group 2 (group2)")
    send(lab, 0, 1, file_of(tmp_path / "x", 4321))
    service.says("ended with 3")
    until(lambda: "wormcast_receive_commands_failed_total 1" in page(place), lambda: page(place))
    until(lambda: "wormcast_receive_groups 2" in page(place), lambda: page(place))
    for line in (
        'wormcast_receive_files_total{outcome="received"} 1',
        'wormcast_receive_files_total{outcome="failed"} 0',
        "wormcast_receive_bytes_total 4321",
        "wormcast_receive_arriving 0",
        "wormcast_receive_commands_waiting 0",
    ):
        assert line in page(place).splitlines(), page(place)
    assert service.stop() == 0


def page(place: Path) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return client.makefile().read()


def test_a_port_alone_is_for_this_machine(serve: Callable[..., Service]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = serve("--metrics", str(port))
    service.says("receiving from group 1 (group1)")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert b"wormcast_receive_files_total" in answer.read()
    again = serve("--metrics", str(port))
    assert again.process.wait(LIMIT_S) == 2
    assert f"metrics cannot be served at {port}: " in again.log


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--into", "missing"], "missing is not a directory; make it first"),
        (["--into", "/dev/full"], "/dev/full is a file, not a directory"),
        (["--into", "n" * 300], "File name too long"),
        (["--into", "/proc/self"], ""),
        (["--into", "here", "--group", "255"], "--group 255: groups are 0 to 65535, not 255"),
        (["--into", "here", "--group", "-1"], "--group -1: groups are"),
        (["--into", "here", "--group", ""], "wanted a number or a name"),
        (["--into", "here", "--metrics", "70000"], "ports are 0 to 65535"),
        (["--into", "here", "--history", "--exec", "x"], "--exec has no effect with --history"),
        (["--into", "missing", "--history"], "missing"),
        ([], "Missing option '--into'"),
    ],
)
def test_wrong_use_is_refused(tmp_path: Path, options: list[str], words: str) -> None:
    (tmp_path / "here").mkdir()
    command = [*PROGRAM, "receive", *options]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
