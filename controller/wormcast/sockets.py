"""Unix sockets the controller listens on, and who may connect to them."""

from __future__ import annotations

import contextlib
import grp
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CONNECT_TIMEOUT_S = 1.0
BACKLOG = 128
OWNER_ALONE = 0o600
OWNER_AND_GROUP = 0o660
MODE_BOUND = "0600 (the owner), 0660 (a group too), 0666 (everyone)"


class SocketInUse(OSError):
    """Another process listens there; the text names the path."""


class AccessError(ValueError):
    """A mode or group that cannot be; the text names the value and what would do."""


@dataclass(frozen=True)
class SocketAccess:
    """Who may connect: mode of the socket's file, and its group if that is not ours."""

    mode: int = OWNER_ALONE
    group_id: int | None = None

    @classmethod
    def parse(cls, mode: str | None, group: str | None) -> SocketAccess:
        """From options; a group alone means that it may connect. Raises `AccessError`."""
        group_id = None
        if group is not None:
            try:
                group_id = grp.getgrnam(group).gr_gid
            except KeyError:
                raise AccessError(f"there is no user group {group!r} on this machine") from None
        if mode is None:
            return cls(OWNER_ALONE if group is None else OWNER_AND_GROUP, group_id)
        if not re.fullmatch(r"0?[0-7]{3}", mode) or int(mode, 8) & OWNER_ALONE != OWNER_ALONE:
            raise AccessError(f"socket mode {mode!r} is not valid; possible: {MODE_BOUND}")
        return cls(int(mode, 8), group_id)

    def grant(self, path: Path) -> None:
        """Lets in whom the access names, at a socket that only its owner could reach so far."""
        if self.group_id is not None:
            os.chown(path, -1, self.group_id)
        path.chmod(self.mode)


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


def listen_at(path: Path, access: SocketAccess) -> socket.socket:
    """A socket that listens at a path; nobody else can connect before it has its mode. Raises as `claim_path`."""
    claim_path(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with owner_alone():
            listener.bind(str(path))
        listener.listen(BACKLOG)
        access.grant(path)
    except BaseException:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def owner_alone() -> Iterator[None]:
    """Files made meanwhile, by any thread of this process, are for their owner alone."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)
