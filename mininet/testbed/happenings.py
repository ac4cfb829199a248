"""Waiting for a controller by its events: who waits looks again when something has happened, and not all the time."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from pathlib import Path

AGAIN_S = 0.05
"""Between attempts to reach a controller that is not there yet."""


class Happenings:
    """Follows the events of the controller behind a Unix socket, in a thread, also when it starts anew.

    A context manager: it follows no longer than somebody waits, as the controller takes few who do.
    """

    def __init__(self, address: Path) -> None:
        self._address = address
        self._happened = threading.Event()
        self._stopped = threading.Event()
        self._connected: socket.socket | None = None

    def __enter__(self) -> Happenings:
        threading.Thread(target=self._follow, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with contextlib.suppress(OSError):  # it is not connected
            if self._connected is not None:
                self._connected.shutdown(socket.SHUT_RDWR)

    def wait(self, seconds_max: float) -> None:
        """Returns once something has happened since it last returned, or after `seconds_max`."""
        self._happened.wait(seconds_max)
        self._happened.clear()

    def _follow(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):  # it starts, or has ended
                self._listen()
            self._stopped.wait(AGAIN_S)

    def _listen(self) -> None:
        with socket.socket(socket.AF_UNIX) as self._connected:
            self._connected.connect(str(self._address))
            if self._stopped.is_set():  # before there was something to end
                return
            connection = http.client.HTTPConnection("controller")
            connection.sock = self._connected
            connection.request("GET", "/v1/events")
            answer = connection.getresponse()
            self._happened.set()  # what happened before is in no event that comes
            for line in answer:
                if line.startswith(b"data:"):
                    self._happened.set()
