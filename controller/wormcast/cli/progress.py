"""How far it has come, in one line on standard error, however wide the terminal is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import click

WIDTH_UNKNOWN = 80
_INTERVAL_S = 0.1
_BAR_LEAST, _BAR_MOST = 10, 40
_LABEL_LEAST = 8
_BEFORE_LABEL = 2
"""So many items have their place before the label."""
_RATE_S, _RATE_LEAST = 2.0, 2
_CLEAR = "\r\x1b[K"


@dataclass(frozen=True)
class Facts:
    """What the line says."""

    label: str
    fraction: float | None
    """Of the whole; None if that is not known."""
    items: Sequence[str]
    """What matters most first: the others go where there is no room."""


class Rate:
    """Of what grows: over the last seconds, as far as it is known for so long."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, now: float, total: int) -> float | None:
        """In bits a second; `total` bytes have come by now."""
        self._seen.append((now, total))
        while now - self._seen[0][0] > _RATE_S and len(self._seen) > _RATE_LEAST:
            self._seen.popleft()
        since, before = self._seen[0]
        return (total - before) * 8 / (now - since) if now > since else None


def facts_of(label: str, done: int, total: int | None, rate: float | None, *more: str) -> Facts:
    """Of bytes that move. `rate`: in bits a second, if it is known."""
    of = f" of {total / 2**20:.1f}" if total is not None else ""
    items = [f"{done / 2**20:.1f}{of} MiB"]
    if rate is not None:
        items.insert(0, f"{rate / 1e6:.1f} Mb/s")
    fraction = None if total is None else min(done / total, 1.0) if total else 1.0
    if fraction is not None:
        items.insert(0, f"{int(fraction * 100)} %")
    return Facts(label, fraction, [*items, *more])


def line_of(facts: Facts, width: int) -> str:
    """A line of `width` columns at most."""
    from rich.cells import cell_len

    label, text, room = facts.label, "", width
    for place, item in enumerate(facts.items):
        longer = f"{text}, {item}" if text else item
        kept = min(cell_len(label), _LABEL_LEAST) + 2 if place >= _BEFORE_LABEL else 0
        if len(longer) + kept > room:
            break
        text = longer
    if not text:
        return shortened(label, room)
    room -= len(text) + 2
    if room < min(cell_len(label), _LABEL_LEAST):
        return text
    label = shortened(label, room)
    room -= cell_len(label) + 2
    if facts.fraction is None or room < _BAR_LEAST:
        return f"{label}  {text}"
    cells = min(room, _BAR_MOST) - 2
    full = int(cells * facts.fraction)
    return f"{label}  [{'#' * full}{'.' * (cells - full)}]  {text}"


def shortened(text: str, width: int) -> str:
    """At most so many columns of a terminal."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 2, 0)).rstrip() + ".."[: max(width, 0)]


class ProgressLine:
    """The last line of a terminal. Without a terminal that can go back in a line, only what is said is shown."""

    def __init__(self, *, quiet: bool, as_json: bool = False) -> None:
        self._as_json = as_json
        can_go_back = os.environ.get("TERM", "") not in ("", "dumb")
        self._on = not quiet and can_go_back and sys.stderr.isatty()
        self._facts: Facts | None = None
        self._shown = False
        self._due = 0.0
        self._handler: Any = None

    def __enter__(self) -> ProgressLine:
        if self._on and threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGWINCH, self._resized)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._handler is not None:
            signal.signal(signal.SIGWINCH, self._handler)
            self._handler = None

    def show(self, facts: Facts | None) -> None:
        """Now and then, what is true now; None: there is nothing to show."""
        if not self._on:
            return
        self._facts = facts
        if facts is None:
            self._clear()
        elif (now := time.monotonic()) >= self._due:
            self._due = now + _INTERVAL_S
            self._draw()

    def say(self, text: str) -> None:
        """A line that stays, above this one."""
        self._clear()
        click.echo(text, err=True)
        if self._on and self._facts is not None:
            self._draw()

    def note(self, code: str, text: str, **more: object) -> None:
        """Says what is worth knowing meanwhile; as JSON where the rest is."""
        if self._as_json:
            self.say(json.dumps({"notice": {"code": code, "message": text, **more}}))
        else:
            self.say(f"wormcast: {text}")

    def close(self) -> None:
        self._clear()
        self._on = False

    def _resized(self, _signal: int, _frame: FrameType | None) -> None:
        if self._facts is not None and self._shown:
            self._draw()

    def _draw(self) -> None:
        assert self._facts is not None
        # In the last column some terminals go on to the next line.
        text = line_of(self._facts, _width() - 1)
        self._write(f"{_CLEAR}{text}")
        self._shown = True

    def _clear(self) -> None:
        if self._shown:
            self._write(_CLEAR)
            self._shown = False

    def _write(self, text: str) -> None:
        # Past Python's buffers, because a signal may come in the middle of anything. Who has no terminal any more
        # needs no line.
        with contextlib.suppress(OSError):
            os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding or "ascii", "replace"))


def _width() -> int:
    with contextlib.suppress(OSError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH_UNKNOWN
    return WIDTH_UNKNOWN
