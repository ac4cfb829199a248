"""Who may connect to the controller's Unix sockets: their owner, and whom the operator names."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from wormcast.sockets import AccessError, SocketAccess

NOBODY = 65534
START_SECONDS_MAX = 600.0
INTERPRETER = Path(sys.executable).resolve()
"""The system's: a checkout may lie where no other user gets."""
CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.send(b'x')"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everyone may enter."""
    with tempfile.TemporaryDirectory(prefix="wormcast-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def start(place: Path, *options: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "wormcast.cli.main", "controller", "run", "--state", ":memory:", *options]
    argv += ["--listen", f"unix:{place}/api.sock", "--agents", f"unix:{place}/agents.sock"]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, umask=0)


def modes(place: Path, process: subprocess.Popen[str]) -> list[int]:
    """Of both sockets, when they are there."""
    deadline = time.monotonic() + START_SECONDS_MAX
    paths = [place / "api.sock", place / "agents.sock"]
    while not all(map(can_connect, paths)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the controller does not listen"
        time.sleep(0.05)
    return [stat.S_IMODE(path.stat().st_mode) for path in paths]


def can_connect(path: Path, user: int | None = None) -> bool:
    done = subprocess.run(
        [INTERPRETER, "-c", CONNECT, path], user=user, cwd="/", capture_output=True, check=False, text=True
    )
    assert done.returncode == 0 or "Error" in done.stderr
    return done.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
@pytest.mark.parametrize(
    ("options", "mode", "others"),
    [
        ([], 0o600, False),
        (["--socket-mode", "0666"], 0o666, True),
        (["--socket-group", "nogroup"], 0o660, False),
    ],
)
def test_sockets_are_for_their_owner_unless_others_are_let_in(
    place: Path, options: list[str], mode: int, others: bool
) -> None:
    process = start(place, *options)
    try:
        assert modes(place, process) == [mode, mode]
        for name in ("api.sock", "agents.sock"):
            assert can_connect(place / name, NOBODY) == others
            assert can_connect(place / name)
        if "--socket-group" in options:
            assert (place / "api.sock").stat().st_gid == SocketAccess.parse(None, "nogroup").group_id
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=600)
    assert process.returncode == 0


@pytest.mark.parametrize("mode", ["600x", "0o600", "8", "99", "0400", "0060", "1600", "", "-1", "rw", "²00"])
def test_modes_that_lock_out_the_owner_or_are_none_are_refused(mode: str) -> None:
    with pytest.raises(AccessError, match="possible: 0600"):
        SocketAccess.parse(mode, None)


def test_wrong_access_ends_the_start_with_what_would_do(place: Path) -> None:
    for options, words in (
        (["--socket-mode", "777x"], "possible: 0600"),
        (["--socket-group", "no-such"], "no-such"),
    ):
        process = start(place, *options)
        _, error = process.communicate(timeout=START_SECONDS_MAX)
        assert process.returncode == 78
        assert words in error
