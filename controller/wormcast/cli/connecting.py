"""HTTP connections to a controller. Loaded with the first request: Python's client takes a fifth of a command's start."""

from __future__ import annotations

import socket
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

FAULTS = (OSError, HTTPException)
"""What a connection may fail with."""


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def connection_to(address: str, timeout_s: float | None) -> HTTPConnection | None:
    """Of `http://host:port`, `host:port` or `unix:/path`, not open yet. None: `address` is none of these."""
    if address.startswith("unix:"):
        return _UnixConnection(address.removeprefix("unix:").removeprefix("//"), timeout_s)
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        usable, port = parts.scheme == "http", parts.port
    except ValueError:
        return None
    if not usable or parts.hostname is None:
        return None
    return HTTPConnection(parts.hostname, port, timeout=timeout_s)
