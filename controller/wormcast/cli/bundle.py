"""Several files and directories as one message: from where they are, and to where they go."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import wormcast_bundle

from wormcast.cli.placing import umask
from wormcast.cli.refusal import Refusal
from wormcast.client.files import Bundle, FileFormatError, other_names, safe_top_name

if TYPE_CHECKING:
    from wormcast.client import IncomingMessage

EXTEND_INTERVAL_S = 5.0
"""Between two words to the agent that a message is not forgotten: a quarter of what it waits is plenty."""


@dataclass(frozen=True)
class BundleOptions:
    """What goes along of files and directories, at both ends."""

    exclude: tuple[str, ...] = ()
    """Patterns of the shell: of a name, or of a path from its top."""
    xattrs: bool = False
    owner: bool = False
    changed: bool = False
    """At the sender: what receivers have is not sent."""


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """What cannot be sent is a refusal."""
    try:
        yield
    except wormcast_bundle.BundleError as error:
        code, text = error.args
        raise Refusal(text, code="cannot-read" if code == "storage" else code) from None


class Work:
    """A thread at one end of a socket; the agent has the other."""

    def __init__(self, work: Callable[[int], object]) -> None:
        self._own, self.agents = socket.socketpair()
        self.error: Exception | None = None
        self.result: object = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._work(self._own.fileno())
        except Exception as error:
            self.error = error
        # The agent learns that no more comes, or is taken.
        with contextlib.suppress(OSError):
            self._own.shutdown(socket.SHUT_RDWR)

    def wait(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Until it is done."""
        while True:
            self._thread.join(EXTEND_INTERVAL_S)
            if not self._thread.is_alive():
                return
            meanwhile()

    @property
    def is_at_work(self) -> bool:
        return self._thread.is_alive()

    def leave(self) -> None:
        """Ends what it reads and writes, and does not wait for it."""
        for end in (self._own, self.agents):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.agents.close()

    def stop(self) -> None:
        """Ends it wherever it is."""
        for end in (self._own, self.agents):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._own.close()
        self.agents.close()


def pack(paths: list[Path], options: BundleOptions) -> wormcast_bundle.Packed:
    """OSError, or BundleError of what is refused."""
    return wormcast_bundle.pack(
        [os.fsencode(path) for path in paths],
        [os.fsencode(pattern.rstrip("/")) for pattern in options.exclude],
        options.xattrs,
        options.owner,
    )


class BundleSource:
    """Files and directories that are sent."""

    def __init__(self, packed: wormcast_bundle.Packed) -> None:
        self.packed = packed
        self.size = packed.size
        self.about = Bundle(len(packed), packed.list_bytes)
        self.left_out = [os.fsdecode(path) for path in packed.left_out]
        """Sockets, pipes and devices."""

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[int, Callable[[bool], str | None]]]:
        """A descriptor for the agent to read from; and why the bundle is not as it was announced, if that is known.
        That takes whether all of it was read: else it breaks off here."""
        work = Work(self.packed.write)
        try:
            yield work.agents.fileno(), lambda whole: _fault(work, whole)
        finally:
            work.stop()


def _fault(work: Work, whole: bool) -> str | None:
    """None if it was the agent that broke off."""
    if not whole:
        with contextlib.suppress(OSError):
            work.agents.shutdown(socket.SHUT_RDWR)
    work.wait()
    error = work.error
    if isinstance(error, wormcast_bundle.BundleError):
        code, text = error.args
        return None if code == "broken" else str(text)
    return None if error is None else str(error)


class BundleTarget:
    """A bundle that arrives, under a hidden name until it is whole."""

    def __init__(
        self,
        directory: Path,
        message: IncomingMessage,
        about: Bundle,
        size: int,
        options: BundleOptions,
        *,
        preserve: bool,
        fsync: bool,
        plans: list[wormcast_bundle.Plan] | None = None,
    ) -> None:
        """`plans`: what was here of lists that have gone before; None: none has."""
        self._directory = directory
        self._fsync = fsync
        self.planned: bytes | None = None
        """Once it is finished: of which list the plan was that nobody needs any more."""
        mask = umask()
        self._work = Work(
            lambda descriptor: wormcast_bundle.unpack(
                descriptor,
                os.fsencode(directory),
                about.entries,
                about.list_bytes,
                size,
                umask=mask,
                preserve=preserve,
                owners=options.owner,
                attributes=options.xattrs,
                sync=fsync,
                plans=plans,
            )
        )
        try:
            message.write_to(self._work.agents.fileno(), size)
        except BaseException:
            self.close()
            raise
        self._work.agents.close()

    def fault(self) -> Exception | None:
        """Why no more is taken, when the agent finds that it is not."""
        self._work.wait()
        return error_of(self._work)

    @property
    def is_at_work(self) -> bool:
        """Something is being made, or waited for."""
        return self._work.is_at_work

    def finish(self, *, overwrite: bool, meanwhile: Callable[[], None]) -> tuple[list[Path], list[Path]]:
        """All is there: gives it its names, which are returned; then those of what was there already, and stays. OSError or FileFormatError: nothing is there, but for what is named.
        ``meanwhile`` is called now and then. What is replaced is removed by ``close``."""
        self._work.wait(meanwhile)
        fault = error_of(self._work)
        if fault is not None:
            raise fault
        unpacked = self._work.result
        assert isinstance(unpacked, wormcast_bundle.Unpacked)
        try:
            unchanged = [os.fsdecode(name) for name in unpacked.unchanged()]
        except wormcast_bundle.BundleError as error:
            raise _translated(error) from None
        placed: list[Path] = []
        try:
            for index, top in enumerate(unpacked.tops()):
                own = {*unchanged, *(path.name for path in placed)}
                placed.append(self._directory / _place(unpacked, index, top, own if overwrite else None))
            if self._fsync:
                unpacked.sync()
        except OSError as error:
            if placed:
                names = ", ".join(map(shown, placed))
                raise OSError(error.errno, f"{error.strerror}; {names} is there already") from error
            raise
        unpacked.done()
        self.planned = unpacked.planned
        return placed, [self._directory / name for name in unchanged]

    def close(self) -> None:
        """Nothing is left of what was not placed, or was replaced; to remove it may take a while."""
        self._work.stop()
        unpacked, self._work.result = self._work.result, None
        if isinstance(unpacked, wormcast_bundle.Unpacked):
            threading.Thread(target=unpacked.close).start()


def error_of(work: Work) -> Exception | None:
    """What went wrong at a receiver."""
    error = work.error
    return _translated(error) if isinstance(error, wormcast_bundle.BundleError) else error


def _translated(error: wormcast_bundle.BundleError) -> Exception:
    code, text = error.args
    if code == "no_space":
        return OSError(errno.ENOSPC, text)
    return OSError(errno.EIO, text) if code == "storage" else FileFormatError(text)


def _place(unpacked: wormcast_bundle.Unpacked, index: int, top: bytes, kept: set[str] | None) -> str:
    """Its name. With `kept`, what has it already is replaced, but for these."""
    for name in other_names(safe_top_name(top)):
        if unpacked.place(index, os.fsencode(name), kept is not None and name not in kept):
            return name
    raise OSError(errno.EEXIST, f"too many files named like {shown(os.fsdecode(top))}")


def shown(path: Path | str) -> str:
    """A path of any bytes, as text."""
    return os.fsencode(path).decode(errors="replace")
