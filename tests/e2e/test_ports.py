"""Ports of switches in a sandbox, in which these tests run."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from wormcast.mininet.sandbox import P4RUNTIME_PORTS

ALLOWED = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_no_client_is_given_a_port_of_a_switch() -> None:
    """A switch could not listen at it then, and its fabric would wait for it for ever."""
    before = ALLOWED.read_text()
    last = P4RUNTIME_PORTS.stop - 1
    ALLOWED.write_text(f"{last - 20} {last + 20}\n")
    given: list[socket.socket] = []
    try:
        for _ in range(20):
            given.append(socket.create_server(("127.0.0.1", 0)))
        with pytest.raises(OSError, match="in use"):
            socket.create_server(("127.0.0.1", 0))
        assert {one.getsockname()[1] for one in given} == set(range(last + 1, last + 21))
    finally:
        ALLOWED.write_text(before)
        for one in given:
            one.close()
