"""Commands that make links."""

import os
import stat
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from wormcast.mininet import wiring
from wormcast.mininet.inside import in_namespaces, no_ipv6, no_offload
from wormcast.mininet.links import Link
from wormcast.mininet.options import Mtus
from wormcast.mininet.wiring import Wires, WiringError, batch

OFFLOADED = (
    "tx-checksumming",
    "rx-checksumming",
    "tx-tcp-segmentation",
    "generic-segmentation-offload",
    "generic-receive-offload",
)


def program(directory: Path, body: str) -> None:
    path = directory / "ip"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_command_that_ctrl_c_ends_has_not_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    # Whoever started the tests may ignore it, as a shell does for what runs in the background.
    program(tmp_path, "exec env --default-signal=INT sh -c 'kill -INT $$'")
    with pytest.raises(KeyboardInterrupt):
        batch("ip", ["link add a type veth peer name b"])
    program(tmp_path, "echo no such device >&2; exit 1")
    with pytest.raises(WiringError, match="ip: no such device"):
        batch("ip", ["link del a"])


@pytest.fixture
def namespaces() -> Iterator[list[Path]]:
    """Two network namespaces that nobody else has."""
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces")
    holders = [
        subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for holder in holders:
        assert holder.stdout is not None
        holder.stdout.readline()
    try:
        yield [Path(f"/proc/{holder.pid}/ns/net") for holder in holders]
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


def test_work_in_namespaces_is_done_there_and_this_one_stays(namespaces: list[Path]) -> None:
    before, seen = Path("/proc/self/ns/net").readlink(), {}

    def work(path: Path) -> None:
        batch("ip", ["link set dev lo up", "link add name a type veth peer name b"])
        no_ipv6()
        no_offload("a")
        features = subprocess.run(["ethtool", "-k", "a"], capture_output=True, text=True).stdout
        on = [name for name in OFFLOADED if f"{name}: on" in features]
        seen[path] = (Path("/proc/thread-self/ns/net").readlink(), on)

    in_namespaces([(path, partial(work, path)) for path in namespaces])
    assert seen == {path: (path.readlink(), []) for path in namespaces}
    assert Path("/proc/self/ns/net").readlink() == before
    assert Path("/proc/thread-self/ns/net").readlink() == before


def test_what_fails_in_a_namespace_is_raised(namespaces: list[Path]) -> None:
    with pytest.raises(WiringError, match='Cannot find device "none"'):
        in_namespaces([(path, lambda: batch("ip", ["link set dev none up"])) for path in namespaces])
    with pytest.raises(FileNotFoundError):
        in_namespaces([(Path("/run/netns/none"), lambda: None)])


def test_a_host_takes_two_processes(
    namespaces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And all links of a fabric a few more, however many they are."""
    for number, path in enumerate(namespaces):
        (tmp_path / f"h{number}").symlink_to(path)
    monkeypatch.setattr(wiring, "NAMESPACES", tmp_path)
    ran = []
    monkeypatch.setattr(wiring, "batch", lambda tool, commands: ran.append((tool, list(commands))))
    links = [Link(number % 2, number, host=number) for number in range(2)]
    Wires([*links, *(Link(0, n, far_switch=1, far_port=n) for n in range(2, 9))], Mtus(), 100.0).make()
    assert [tool for tool, _ in ran[:4]] == ["ip", "ip", "ip", "tc"]
    assert sorted(tool for tool, _ in ran[4:]) == ["ip", "ip", "tc", "tc"]
    assert sum("addr add 10.0.0.1/16 dev h0-eth0" in commands for _, commands in ran) == 1
