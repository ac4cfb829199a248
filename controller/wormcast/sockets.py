"""Where the controller listens, who may connect to its Unix sockets, and why it cannot listen at a place."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wormcast.decimal import read_decimal

CONNECT_TIMEOUT_S = 1.0
BACKLOG = 128
PORT_MAX = 65_535
OWNER_ALONE = 0o600
OWNER_AND_GROUP = 0o660
PATH_BYTES_MAX = 107
"""Of the path of a Unix socket: Linux keeps it in 108 bytes with a zero at the end."""
MODE_BOUND = "0600 (the owner), 0660 (a group too), 0666 (everyone)"


class CannotListen(Exception):
    """Nothing can listen there; the text says why and what would do."""


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

    Raises `CannotListen` where a process listens and where the place cannot be used.
    """
    size = len(os.fsencode(path))
    if size > PATH_BYTES_MAX:
        raise CannotListen(
            f"the path has {size} bytes; a Unix socket takes 1 to {PATH_BYTES_MAX}: choose a shorter one"
        )
    make_directory(path.parent)
    if path.is_dir():
        raise CannotListen("it is a directory; name a file in it that is not there yet")
    if not path.is_socket():
        if path.exists():
            raise CannotListen("it is a file and no socket; remove it, or name one that is not there yet")
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
        except OSError as error:
            raise CannotListen(f"there is a socket: {refusal_of(error)}") from error
    raise CannotListen(f"another process listens on {path}; end it, or choose another place")


def make_directory(directory: Path) -> None:
    """A directory for a file of ours. Raises `CannotListen`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotListen(f"directory {directory} cannot be made: {refusal_of(error)}") from error


def refusal_of(error: OSError) -> str:
    """What the system refused and what to do about it, in words."""
    reason = error.strerror or str(error)
    advice = _ADVICE.get(error.errno or 0)
    return f"{reason[:1].lower()}{reason[1:]}" + (f"; {advice}" if advice else "")


_ADVICE = {
    errno.EADDRINUSE: "end the process that listens there, or choose another",
    errno.EADDRNOTAVAIL: "`ip address` shows the addresses of this machine; 0.0.0.0 is all of them",
    errno.EACCES: "run this as a user who may, as root, or choose another place",
    errno.EPERM: "run this as a user who may, as root, or choose another place",
    errno.EROFS: "choose a place that can be written",
    errno.ENOENT: "choose a place where directories can be made",
    errno.EEXIST: "a part of the path is a file; choose another place",
    errno.ENOTDIR: "a part of the path is a file; choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "make room there, or choose another place",
}


def check_address(address: str) -> None:
    """Whether this process could listen at host:port now. Raises `CannotListen`."""
    host, _, digits = address.rpartition(":")
    port = read_decimal(digits)
    if not host or port is None or port > PORT_MAX:
        raise CannotListen(f"wanted unix:/path or host:port; ports are 0 to {PORT_MAX}")
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise CannotListen(f"there is no host {host!r}; name an address of this machine") from None
    refused = []
    for family, kind, protocol, _, place in found:
        try:
            with socket.socket(family, kind, protocol) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                trial.bind(place)
        except OSError as error:
            refused.append(error)
    # A name may have addresses of a kind that this machine lacks beside those it has.
    lacking = all(error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) for error in refused)
    if refused and not (lacking and len(refused) < len(found)):
        raise CannotListen(refusal_of(refused[0])) from refused[0]


def listen_at(path: Path, access: SocketAccess) -> socket.socket:
    """A socket that listens at a path; nobody else can connect before it has its mode. Raises as `claim_path`."""
    claim_path(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with owner_alone():
            listener.bind(str(path))
        listener.listen(BACKLOG)
        access.grant(path)
    except OSError as error:
        listener.close()
        raise CannotListen(refusal_of(error)) from error
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
