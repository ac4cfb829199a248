"""Standard output, of whole files one after another, written while others arrive."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections import deque

from wormcast.cli.arriving import ArrivingFile
from wormcast.client import Agent

_PIECE_BYTES = 64 << 10
_TIME_INTERVAL_S = 5.0


class Outlet:
    """Files that are whole, in the order in which they became so."""

    def __init__(self) -> None:
        self.files: deque[ArrivingFile] = deque()
        """The first is being written."""
        sys.stdout.flush()
        self._descriptor = sys.stdout.fileno()
        is_file = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        # Whatever can be written to takes this much at once, without a wait.
        self._piece_bytes = _PIECE_BYTES if is_file else select.PIPE_BUF
        self._rest = memoryview(b"")
        self._begun = False
        self._asked_at = time.monotonic()

    @property
    def is_busy(self) -> bool:
        """There is something to write."""
        return bool(self.files)

    def has_begun(self, file: ArrivingFile) -> bool:
        """Some of it may be out already."""
        return self._begun and self.files[0] is file

    def put(self, file: ArrivingFile) -> None:
        """The next to be written."""
        if not self.files:
            self._asked_at = time.monotonic()
        self.files.append(file)

    def remove(self, file: ArrivingFile) -> None:
        """It is not to be written, or not any further."""
        if file in self.files:
            if self.files[0] is file:
                self._rest, self._begun = memoryview(b""), False
            self.files.remove(file)

    def step(self, agent: Agent | None, *, wait: bool) -> tuple[bool, bool]:
        """Writes a piece, if there is room; whether it did, and whether that was the rest of the file.

        `wait`: until there is room, or something comes from the agent.
        """
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        if agent is not None:
            poll.register(agent.fileno(), select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(None if wait else 0)}
        if self._descriptor not in ready:
            return False, False
        self._begun = True
        if not len(self._rest):
            self._rest = memoryview(self.files[0].kept.read(_PIECE_BYTES))
        if len(self._rest):
            written = os.write(self._descriptor, self._rest[: self._piece_bytes])
            self._rest = self._rest[written:]
            return True, False
        self.files.popleft()
        self._begun = False
        return True, True

    def ask_for_time(self) -> None:
        """Asks the agent, now and then, not to give up what waits here: whoever reads standard output does take
        something, however slowly."""
        now = time.monotonic()
        if now - self._asked_at >= _TIME_INTERVAL_S:
            self._asked_at = now
            for file in self.files:
                if file.lost is None:
                    file.message.extend()
