"""A terminal for a command: what it writes there, at any width."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
import subprocess
import termios
import threading
from types import TracebackType
from typing import Any

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """Give `descriptor` to a command as its standard error; leaving reads on to the end."""

    def __init__(self, columns: int) -> None:
        self._own, self.descriptor = os.openpty()
        self.resize(columns)
        self._written = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            os.close(self.descriptor)
        self._reader.join(5)
        os.close(self._own)

    def resize(self, columns: int, process: subprocess.Popen[bytes] | None = None) -> None:
        """As who drags the edge of the window; a process that is named is told."""
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        if process is not None:
            import signal

            process.send_signal(signal.SIGWINCH)

    @property
    def text(self) -> str:
        """All that was written."""
        return self._written.decode()

    def drawn(self) -> list[str]:
        """What was written between moves of the cursor."""
        return [part for part in CONTROL.split(self.text) if part]

    def _read(self) -> None:
        while True:
            try:
                data: Any = os.read(self._own, 1 << 16)
            except OSError:
                return
            if not data:
                return
            self._written += data
