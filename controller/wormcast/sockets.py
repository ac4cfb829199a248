"""Unix sockets the controller listens on."""

from __future__ import annotations

import socket
from pathlib import Path

CONNECT_TIMEOUT_S = 1.0


class SocketInUse(OSError):
    """Another process listens there; the text names the path."""


def claim_path(path: Path) -> None:
    """Makes room for a socket: its directory, and no socket of a process that is gone.

    Raises `SocketInUse` where a process listens, `OSError` where the place cannot be used.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_TIMEOUT_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except TimeoutError:
            pass
    raise SocketInUse(f"another process listens on {path}")
