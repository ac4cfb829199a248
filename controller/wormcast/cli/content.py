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
    """Bytes of a file descriptor; `size` is None for a pipe."""

    def __init__(self, descriptor: int, size: int | None, deadline: float | None) -> None:
        self.size = size
        self._descriptor = descriptor
        self._deadline = deadline

    def chunks(self) -> Iterator[bytes]:
        """All of it. Raises `AgentTimeoutError` at the deadline."""
        while True:
            if self.size is None:
                self._wait()
            chunk = os.read(self._descriptor, _CHUNK_BYTES)
            if not chunk:
                return
            yield chunk

    def _wait(self) -> None:
        """Until a pipe has something, or its writer is gone."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        left_ms = None
        if self._deadline is not None:
            left_ms = max(0.0, self._deadline - time.monotonic()) * 1000
        if not poll.poll(left_ms):
            raise AgentTimeoutError("nothing came from standard input or the pipe within the time limit")


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
        is_file = stat.S_ISREG(about.st_mode)
        yield Content(descriptor, about.st_size if is_file else None, deadline)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _standard_input() -> Iterator[int]:
    try:
        yield sys.stdin.fileno()
    except io.UnsupportedOperation:
        raise OSError("there is no standard input") from None
