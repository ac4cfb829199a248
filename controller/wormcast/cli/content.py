"""What is sent: a file, a pipe or standard input, read until a deadline."""

from __future__ import annotations

import contextlib
import io
import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from wormcast.client import AgentTimeoutError

_CHUNK_BYTES = 256 << 10


class Content:
    """Bytes of a file descriptor. A pipe has no size, permissions or time, and is read here; the agent reads a file."""

    def __init__(self, descriptor: int, about: os.stat_result | None, deadline: float | None) -> None:
        self.size = None if about is None else about.st_size
        self.mode = None if about is None else about.st_mode
        self.mtime_ns = None if about is None else about.st_mtime_ns
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
def open_content(file: Path, deadline: float | None) -> Iterator[Content]:
    """The content of a file; - is standard input."""
    if str(file) == "-":
        with _standard_input() as descriptor:
            yield Content(descriptor, None, deadline)
        return
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a directory; pack it into one file first, e.g. with tar")
    # A named pipe without a writer would hold up open() itself.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.set_blocking(descriptor, True)
        about = os.fstat(descriptor)
        yield Content(descriptor, about if stat.S_ISREG(about.st_mode) else None, deadline)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _standard_input() -> Iterator[int]:
    try:
        yield sys.stdin.fileno()
    except io.UnsupportedOperation:
        raise OSError("there is no standard input") from None
