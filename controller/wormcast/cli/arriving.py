"""A file that arrives, and where its bytes go until it is whole: a directory, a temporary file, or straight to
standard output."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from wormcast.cli.bundle import BundleOptions, BundleTarget
from wormcast.cli.offered import OfferTarget, Plans
from wormcast.cli.placing import PartialFile, sync_directory, umask
from wormcast.client import IncomingMessage, WrittenFile
from wormcast.client.files import FileDecoder, FileFormatError, FileHeader, parse_header

_SPOOL_MEMORY_BYTES = 1 << 20
"""What comes for standard output is kept in memory up to this, then in a temporary file."""


@dataclass(frozen=True)
class FileSettings:
    """Where files go, and how."""

    output: Path
    overwrite: bool = False
    fsync: bool = False
    preserve: bool = True
    """Files get the permissions and the time that the sender's file has."""
    bundles: BundleOptions = field(default_factory=BundleOptions)

    @property
    def to_stdout(self) -> bool:
        """Files go to standard output, one whole file after another."""
        return str(self.output) == "-"


class _InDirectory:
    """A file without name, until it is whole. The agent writes it."""

    def __init__(self, settings: FileSettings, message: IncomingMessage, size: int | None) -> None:
        self._settings = settings
        self._partial = PartialFile(settings.output)
        try:
            message.write_to(self._partial.out.fileno(), size)
        except BaseException:
            self.close()
            raise

    def finish(self, header: FileHeader) -> Path:
        out = self._partial.out
        keep = self._settings.preserve
        mode = header.mode if keep and header.mode is not None else 0o666
        with contextlib.suppress(PermissionError):
            # Not every file system has permissions.
            os.fchmod(out.fileno(), mode & ~umask())
        if keep and header.mtime_ns is not None:
            os.utime(out.fileno(), ns=(time.time_ns(), header.mtime_ns))
        if self._settings.fsync:
            os.fsync(out.fileno())
        path = self._partial.place(header.name, overwrite=self._settings.overwrite)
        if self._settings.fsync:
            sync_directory(path.parent)
        self.close()
        return path

    def close(self) -> None:
        self._partial.close()


class _Spooled:
    """Kept until it is whole and its turn comes."""

    def __init__(self) -> None:
        self.kept: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOL_MEMORY_BYTES)  # noqa: SIM115

    def write(self, content: bytes) -> None:
        self.kept.write(content)

    def finish(self) -> None:
        self.kept.seek(0)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.kept.close()


class _Streamed:
    """Written as it comes."""

    def write(self, content: bytes) -> None:
        rest = memoryview(content)
        while len(rest):
            rest = rest[os.write(sys.stdout.fileno(), rest) :]

    def finish(self) -> None:
        pass

    def close(self) -> None:
        pass


class ArrivingFile:
    """One file on its way: for a directory, written by the agent; for standard output, taken here."""

    def __init__(self, settings: FileSettings, message: IncomingMessage, *, stream: bool) -> None:
        """`stream`: what is for standard output is written as it comes."""
        self.message = message
        self.since = None if message.age_s is None else time.monotonic() - message.age_s
        """When its first byte came to this host, as far as the agent tells."""
        self.lost: str | None = None
        """Its sender counts this host as failed, for this reason, though the file is whole."""
        self._settings = settings
        self._stream = stream
        self._decoder = FileDecoder()
        self._header: FileHeader | None = None
        self._plans: Plans | None = None
        self._written = 0
        self._target: _InDirectory | BundleTarget | OfferTarget | _Spooled | _Streamed | None = None
        self.has_ended = False
        """All of it has come."""
        self.placed: list[Path] = []
        """What of a bundle got which names, or has them already."""
        self.is_unchanged = False
        """All of a bundle was here already."""

    @property
    def origin(self) -> int:
        return self.message.origin

    @property
    def name(self) -> str | None:
        """As the sender gave it, made safe; None before the header has come."""
        return None if self.header is None else self.header.name

    @property
    def header(self) -> FileHeader | None:
        """Once it has come."""
        return self._header or self._decoder.header

    @property
    def size(self) -> int:
        """Bytes of content so far."""
        return self._written or self._decoder.size

    @property
    def announced(self) -> int | None:
        """Bytes of content there will be, as far as the sender knew."""
        return None if self.header is None else self.header.size

    @property
    def shown(self) -> str:
        return f"{self.name or 'file'} from host {self.origin}"

    @property
    def is_torn(self) -> bool:
        """Standard output would hold a part of it, if it ended here."""
        return isinstance(self._target, _Streamed) and self.size > 0

    @property
    def offer(self) -> OfferTarget | None:
        """It is a list that goes before files, and no file."""
        return self._target if isinstance(self._target, OfferTarget) else None

    def place(self, header: str, plans: Plans) -> None:
        """Has the agent write it into the directory. ``plans``: what was here of lists that have gone before."""
        self._header, self._plans = parse_header(header), plans
        about, size, settings = self._header.bundle, self._header.size, self._settings
        if about is None or size is None:
            self._target = _InDirectory(settings, self.message, size)
            return
        if self._header.offer:
            self._target = OfferTarget(
                settings.output,
                self.message,
                about,
                settings.bundles,
                plans,
                preserve=settings.preserve,
                overwrite=settings.overwrite,
            )
            return
        self._target = BundleTarget(
            settings.output,
            self.message,
            about,
            size,
            settings.bundles,
            preserve=settings.preserve,
            fsync=settings.fsync,
            plans=plans.of(self.message) if self._header.offered else None,
        )

    def note_written(self, size: int) -> None:
        """The agent has written so much of it."""
        self._written = size

    def write(self, data: bytes) -> None:
        content = self._decoder.feed(data)
        if self._decoder.header is not None and self._decoder.header.bundle is not None:
            raise FileFormatError(
                "directories and several files are for a directory, not for standard output"
            )
        if content:
            self._open().write(content)

    @property
    def is_at_work(self) -> bool:
        """A bundle is being made of what has come, or what is here is compared with a list."""
        return isinstance(self._target, (BundleTarget, OfferTarget)) and self._target.is_at_work

    def finish(self, written: WrittenFile | None, meanwhile: Callable[[], None]) -> tuple[Path | None, str]:
        """Checks the whole and gives it its name; the path (None: standard output) and digest. A bundle of which
        several things are placed has the path of the directory that they are in. ``meanwhile`` is called if it takes long."""
        if written is not None and isinstance(self._target, BundleTarget):
            self._written = written.size
            placed, unchanged = self._target.finish(overwrite=self._settings.overwrite, meanwhile=meanwhile)
            self.placed, self.is_unchanged = placed + unchanged, not placed
            if self._plans is not None and self._target.planned is not None:
                self._plans.forget(self.message, self._target.planned)
            return self.placed[0] if len(self.placed) == 1 else self._settings.output, written.sha256
        if written is not None and isinstance(self._target, _InDirectory) and self._header is not None:
            self._written = written.size
            return self._target.finish(self._header), written.sha256
        digest = self._decoder.finish()
        self._open().finish()
        return None, digest

    @property
    def kept(self) -> IO[bytes]:
        """What was kept of it, from its start, once it is whole."""
        target = self._open()
        assert isinstance(target, _Spooled)
        return target.kept

    def fault(self) -> Exception | None:
        """Why the agent cannot write it, where that is known here."""
        return self._target.fault() if isinstance(self._target, BundleTarget) else None

    def drop(self) -> None:
        """Removes what has come, or what was kept."""
        if self._target is not None:
            self._target.close()

    def _open(self) -> _Spooled | _Streamed:
        if self._target is None:
            if not self._settings.to_stdout:
                # What is no file is refused by its first bytes.
                raise FileFormatError("the message is not a file that the agent knows")
            self._target = _Streamed() if self._stream else _Spooled()
        assert not isinstance(self._target, (_InDirectory, BundleTarget, OfferTarget))
        return self._target


def is_full(error: OSError) -> bool:
    """There is no space left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
