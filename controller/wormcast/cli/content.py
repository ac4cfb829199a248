"""What is sent: a file, several, a pipe or standard input, read until a deadline."""

from __future__ import annotations

import contextlib
import io
import os
import select
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import wormcast_bundle

from wormcast.cli.bundle import BundleOptions, BundleSource, pack
from wormcast.client import AgentTimeoutError
from wormcast.client.files import Bundle

_CHUNK_BYTES = 256 << 10
_LOOK_S = 0.1
"""Between two looks whether all files are hashed."""


class Content:
    """Bytes of a file descriptor. A pipe has no size, permissions or time, and is read here; the agent reads a file."""

    def __init__(self, descriptor: int, deadline: float | None, about: os.stat_result | None = None) -> None:
        self.size = None if about is None else about.st_size
        self.mode = None if about is None else about.st_mode
        self.mtime_ns = None if about is None else about.st_mtime_ns
        self.bundle: Bundle | None = None
        self.offer: wormcast_bundle.Offer | None = None
        """Its list goes first, and then what of it somebody lacks: there is no descriptor before."""
        self.is_offered = False
        """Its list has gone before."""
        self.left_out: list[str] = []
        """What is not sent of directories."""
        self.fault: Callable[[bool], str | None] = lambda whole: None  # noqa: ARG005
        """Why it is not as it was announced, if that is known; takes whether all of it was read."""
        self.descriptor = descriptor
        self._deadline = deadline

    def chunks(self, wake: int) -> Iterator[bytes]:
        """All of a pipe. An empty chunk: it has nothing yet, but there is something to read from the descriptor
        `wake`. Raises `AgentTimeoutError` at the deadline."""
        while True:
            if not self._wait(wake):
                yield b""
                continue
            chunk = os.read(self.descriptor, _CHUNK_BYTES)
            if not chunk:
                return
            yield chunk

    def _wait(self, wake: int) -> bool:
        """Until a pipe has something, or its writer is gone."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        poll.register(wake, select.POLLIN)
        left_ms = None
        if self._deadline is not None:
            left_ms = max(0.0, self._deadline - time.monotonic()) * 1000
        ready = {descriptor for descriptor, _ in poll.poll(left_ms)}
        if self._deadline is not None and self.descriptor not in ready and time.monotonic() >= self._deadline:
            raise AgentTimeoutError("nothing came from standard input or the pipe within the time limit")
        return self.descriptor in ready


@contextlib.contextmanager
def open_content(
    files: list[Path], options: BundleOptions, deadline: float | None, end: float | None
) -> Iterator[Content]:
    """The content of a file (- is standard input), of a directory, or of several of them. `deadline` is for reading a
    pipe, `end` for what is read beforehand."""
    if is_bundle(files, options):
        packed = pack(files, options)
        if options.changed:
            content = Content(-1, deadline)
            content.size, content.offer = packed.size - packed.list_bytes, _hashed(packed, end)
            content.left_out = [os.fsdecode(path) for path in packed.left_out]
            yield content
        else:
            with open_bundle(packed, deadline) as content:
                yield content
        return
    [file] = files
    if str(file) == "-":
        with _standard_input() as descriptor:
            yield Content(descriptor, deadline)
        return
    # A named pipe without a writer would hold up open() itself.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.set_blocking(descriptor, True)
        about = os.fstat(descriptor)
        yield Content(descriptor, deadline, about if stat.S_ISREG(about.st_mode) else None)
    finally:
        os.close(descriptor)


def _hashed(packed: wormcast_bundle.Packed, end: float | None) -> wormcast_bundle.Offer:
    """What is in all files. In a thread, so that Ctrl-C and `end` end it."""
    done: list[wormcast_bundle.Offer | BaseException] = []

    def work() -> None:
        try:
            done.append(packed.offer())
        except BaseException as error:
            done.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_S)
        if end is not None and time.monotonic() >= end:
            raise AgentTimeoutError(
                "the files were not read to their end within the time limit; nothing was sent"
            )
    [offer] = done
    if isinstance(offer, BaseException):
        raise offer
    return offer


@contextlib.contextmanager
def open_bundle(
    packed: wormcast_bundle.Packed, deadline: float | None, *, is_offered: bool = False
) -> Iterator[Content]:
    """The content of files and directories that have been looked at."""
    source = BundleSource(packed)
    with source.open() as (descriptor, fault):
        content = Content(descriptor, deadline)
        content.size, content.bundle = source.size, source.about
        content.is_offered = is_offered
        content.left_out, content.fault = source.left_out, fault
        yield content


def name_of(files: list[Path]) -> str:
    """What receivers are shown."""
    first = "stdin" if str(files[0]) == "-" else files[0].name
    if first in ("", ".."):
        first = files[0].resolve().name
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


def is_bundle(files: list[Path], options: BundleOptions) -> bool:
    """Whether more than the content of one file is sent."""
    more = options.xattrs or options.owner or options.changed
    return len(files) > 1 or more or files[0].is_dir()


@contextlib.contextmanager
def _standard_input() -> Iterator[int]:
    try:
        yield sys.stdin.fileno()
    except io.UnsupportedOperation:
        raise OSError("there is no standard input") from None
