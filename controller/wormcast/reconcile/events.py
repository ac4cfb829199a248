"""What happened, for those who watch: a bounded history and bounded queues."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

HISTORY_MAX = 1024
"""Events kept for watchers that come late."""
FREQUENT = frozenset({"transfer"})
"""Kinds that happen so often that they would push the others out of the history."""
FREQUENT_MAX = 256
"""Events of these kinds that are kept."""
QUEUE_MAX = 1024
"""Events waiting for one watcher; one that falls further behind is cut off."""
WATCHERS_MAX = 64


@dataclass(frozen=True)
class Event:
    """One thing that happened."""

    number: int
    time_s: float
    """Seconds since the epoch of Unix."""
    kind: str
    data: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The form of `/v1/events`."""
        return {"number": self.number, "time_s": round(self.time_s, 3), "kind": self.kind, **self.data}


class WatcherLimit(Exception):
    """As many watch as may."""


class EventLog:
    """History and distribution of events."""

    def __init__(self) -> None:
        self._history: deque[Event] = deque(maxlen=HISTORY_MAX)
        self._frequent: deque[Event] = deque(maxlen=FREQUENT_MAX)
        self._queues: list[asyncio.Queue[Event | None]] = []
        self._number = 0
        self.cut_off = 0
        """Watchers that fell behind."""

    def add(self, kind: str, time_s: float, **data: Any) -> None:
        """Records an event and notifies the watchers."""
        self._number += 1
        event = Event(self._number, time_s, kind, data)
        (self._frequent if kind in FREQUENT else self._history).append(event)
        for queue in list(self._queues):
            if queue.qsize() >= QUEUE_MAX:
                self._queues.remove(queue)
                self.cut_off += 1
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)

    def history(self, after: int = 0) -> list[Event]:
        """Events with a greater number, as far as they are kept."""
        kept = [event for event in (*self._history, *self._frequent) if event.number > after]
        return sorted(kept, key=lambda event: event.number)

    def close(self) -> None:
        for queue in self._queues:
            queue.put_nowait(None)
        self._queues.clear()

    @contextlib.contextmanager
    def watch(self) -> Iterator[AsyncIterator[Event]]:
        """Events from now on; the iterator ends when the watcher is cut off. Raises `WatcherLimit`."""
        if len(self._queues) >= WATCHERS_MAX:
            raise WatcherLimit
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._queues.append(queue)
        try:
            yield _drain(queue)
        finally:
            with contextlib.suppress(ValueError):
                self._queues.remove(queue)


async def _drain(queue: asyncio.Queue[Event | None]) -> AsyncIterator[Event]:
    while (event := await queue.get()) is not None:
        yield event
