"""Files that appear under their name only when they are whole.

Until then a file has no name at all, so nothing is left of it however the program ends. Where the file system
has no unnamed files, it has a hidden name, and is locked as long as its program lives: by that the next one
knows what was left behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import tempfile
from pathlib import Path

import wormcast_bundle

from wormcast.client.files import other_names

PARTIAL_PREFIX = ".wormcast-partial-"
_PARTIAL = re.compile(re.escape(PARTIAL_PREFIX) + "[A-Za-z0-9_]{8}")
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)


class PartialFile:
    """A file on its way into a directory. `place` gives it its name, `close` drops it if it has none."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        descriptor, self._hidden = _open_unnamed(directory), None
        if descriptor is None:
            descriptor, self._hidden = _open_hidden(directory)
        self.out = os.fdopen(descriptor, "wb")

    def place(self, name: str, *, overwrite: bool) -> Path:
        """Gives it its name, or one like it if that is taken; or replaces what has that name."""
        if overwrite:
            path = self._directory / name
            if self._hidden is None:
                self._hidden = self._link_hidden()
            self._hidden.replace(path)
            self._hidden = None
            return path
        for other in other_names(name):
            path = self._directory / other
            with contextlib.suppress(FileExistsError):
                self._link(path)
                return path
        raise OSError(errno.EEXIST, f"too many files named like {name}")

    def close(self) -> None:
        """Nothing is left of it, unless it was placed."""
        # A full disk may object to the last flush; the file goes anyway.
        with contextlib.suppress(OSError):
            self.out.close()
        if self._hidden is not None:
            self._hidden.unlink(missing_ok=True)
            self._hidden = None

    def _link(self, path: Path) -> None:
        """Gives it another name; FileExistsError if that is taken."""
        if self._hidden is None:
            directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                # With a directory given, the link of /proc is followed.
                os.link(
                    _by_descriptor(self.out.fileno()), path.name, src_dir_fd=directory, dst_dir_fd=directory
                )
            finally:
                os.close(directory)
            return
        try:
            path.hardlink_to(self._hidden)
            self._hidden.unlink()
        except FileExistsError:
            raise
        except OSError:
            # No hard links on this file system.
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "it is taken", str(path)) from None
            self._hidden.replace(path)
        self._hidden = None

    def _link_hidden(self) -> Path:
        """A name to be renamed from: an unnamed file can replace no other."""
        for _ in range(tempfile.TMP_MAX):
            path = _hidden_path(self._directory)
            with contextlib.suppress(FileExistsError):
                self._link(path)
                return path
        raise OSError(errno.EEXIST, "no name for a temporary file is free")


def remove_left_behind(directory: Path) -> int:
    """Removes what programs that were killed have left in a directory; gives how many files and directories. What the
    next transfer can go on with stays for a while."""
    count = 0
    with os.scandir(directory) as entries:
        left = [Path(entry.path) for entry in entries if _PARTIAL.fullmatch(entry.name)]
    for path in left:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                mode = os.fstat(descriptor).st_mode
                if stat.S_ISREG(mode):
                    # Refused as long as its program lives.
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                    count += 1
                elif stat.S_ISDIR(mode):
                    count += wormcast_bundle.remove_left_behind(
                        os.fsencode(directory), os.fsencode(path.name)
                    )
            finally:
                os.close(descriptor)
    with contextlib.suppress(OSError):
        count += wormcast_bundle.trim_kept(os.fsencode(directory))
    return count


def sync_directory(directory: Path) -> None:
    """Names given in it are safe on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def umask() -> int:
    """That of this program."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _by_descriptor(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}")


def _open_unnamed(directory: Path) -> int | None:
    """None where there are no unnamed files, or nothing to name them by."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in _NO_UNNAMED:
            return None
        raise
    if not _by_descriptor(descriptor).exists():
        os.close(descriptor)
        return None
    with contextlib.suppress(OSError):
        # For the moment in which it has a hidden name, before it replaces another.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _open_hidden(directory: Path) -> tuple[int, Path]:
    for _ in range(tempfile.TMP_MAX):
        descriptor, name = tempfile.mkstemp(prefix=PARTIAL_PREFIX, dir=directory)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Another program has just taken it for one that was left behind.
            os.close(descriptor)
            continue
        except OSError:
            # No locks on this file system: then nobody takes it for left behind.
            pass
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)
    raise OSError(errno.EEXIST, "no name for a temporary file is free")


def _hidden_path(directory: Path) -> Path:
    names = "abcdefghijklmnopqrstuvwxyz0123456789_"
    return directory / (PARTIAL_PREFIX + "".join(names[byte % len(names)] for byte in os.urandom(8)))
