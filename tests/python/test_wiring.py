"""Commands that make links."""

import os
import stat
from pathlib import Path

import pytest
from wormcast.mininet.wiring import WiringError, batch, in_parallel


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
    with pytest.raises(KeyboardInterrupt):
        in_parallel(["ip link"])
    program(tmp_path, "echo no such device >&2; exit 1")
    with pytest.raises(WiringError, match="ip: no such device"):
        batch("ip", ["link del a"])
    with pytest.raises(WiringError, match="no such device"):
        in_parallel(["ip link"])
