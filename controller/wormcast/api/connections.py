"""HTTP connections of REST with bounds on their number and on how long a client may keep them waiting."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from wormcast.api.failures import describe

CONNECTIONS_MAX = 256
"""One more closes the one that has waited longest for a request; when none waits, it is asked to come again."""
HEAD_SECONDS_MAX = 20.0
"""From the connection, or the answer before, until the head of a request has come."""
BODY_SECONDS_MAX = 60.0
"""From the head of a request until its body has come."""
UNREAD_SECONDS_MAX = 60.0
"""A client that has not taken all that waits for it after so long, nor `UNREAD_BYTES_MIN` of it, is given up."""
UNREAD_BYTES_MIN = 1 << 20
WAITING_BYTES_MAX = 1 << 16
"""More that waits to be taken holds up who makes the answer, until all is taken."""
IDLE_SECONDS_MAX = 10
"""Between two requests."""
RETRY_AFTER_S = 1

_LATE_S = 1.0
"""A timer that is later than this shows that this process stood still: the client gets its time again."""


class Connection(H11Protocol):
    """uvicorn's protocol, with a clock for what the client has to do next."""

    closed_for_room = 0
    """Waiting connections closed for new ones."""
    turned_away = 0
    """Connections refused."""
    timed_out = 0
    """Connections closed because the client took too long."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._clock: asyncio.TimerHandle | None = None
        self._awaited: object = None
        self._unread: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        self._since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        has_room = len(self.connections) < CONNECTIONS_MAX or self._make_room()
        super().connection_made(transport)
        # A little taken now and then is not all.
        transport.set_write_buffer_limits(high=WAITING_BYTES_MAX, low=0)
        self._since = time.monotonic()
        if has_room:
            self._wind()
        else:
            Connection.turned_away += 1
            self._answer(
                503,
                describe(
                    "too many connections; try again later",
                    bound=f"{CONNECTIONS_MAX} connections",
                    code="busy",
                ),
                (b"retry-after", str(RETRY_AFTER_S).encode()),
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._stop_reading()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wind()

    def on_response_complete(self) -> None:
        """The next request may come."""
        super().on_response_complete()
        self._watch_reader()
        self._since = time.monotonic()
        self._wind()

    def handle_events(self) -> None:
        """What has come, as far as it is HTTP."""
        try:
            super().handle_events()
        except UnicodeDecodeError:
            self.send_400_response("the path of the request is not ASCII; encode it with %")

    def send_400_response(self, msg: str) -> None:
        """The refusal of what is not HTTP."""
        if msg.startswith("Invalid"):
            msg = f"not an HTTP/1.1 request, or its head has more than {self.conn._max_incomplete_event_size} bytes"
        self._answer(400, describe(msg, code="syntax"))

    def pause_writing(self) -> None:
        """The client reads slowly or not at all."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """The client has read everything."""
        super().resume_writing()
        self._stop_reading()

    def is_waiting(self) -> bool:
        """Whether no request is being served or read beyond its head."""
        return self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete)

    def _make_room(self) -> bool:
        waiting = [c for c in self.connections if isinstance(c, Connection) and c.is_waiting()]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda c: c._since)
        Connection.closed_for_room += 1
        self.connections.discard(oldest)
        oldest.transport.abort()
        return True

    def _wind(self) -> None:
        """Sets the clock when something else is awaited than before."""
        awaited = (
            self.conn.their_state if self.is_waiting() or self.conn.their_state is h11.SEND_BODY else None
        )
        if awaited is not self._awaited or awaited is None:
            self._stop_clock()
            self._awaited = awaited
        if awaited is not None and self._clock is None and not self.transport.is_closing():
            seconds = HEAD_SECONDS_MAX if awaited is h11.IDLE else BODY_SECONDS_MAX
            self._clock = self.loop.call_later(seconds, self._give_up_writer, self.loop.time() + seconds)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _give_up_writer(self, due: float) -> None:
        self._clock = None
        if self.loop.time() - due > _LATE_S:
            self._wind()
            return
        Connection.timed_out += 1
        head = self.conn.their_state is h11.IDLE
        bound = f"{HEAD_SECONDS_MAX if head else BODY_SECONDS_MAX:g} s"
        what = "head" if head else "body"
        self._answer(408, describe(f"the {what} of the request takes too long", bound=bound, code="timeout"))

    def _watch_reader(self) -> None:
        """Sees to it that what waits is taken."""
        waiting = self.transport.get_write_buffer_size()
        if self._unread is None and waiting:
            self._unread_bytes, seconds = waiting, UNREAD_SECONDS_MAX
            self._unread = self.loop.call_later(seconds, self._look_at_reader, self.loop.time() + seconds)

    def _stop_reading(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _look_at_reader(self, due: float) -> None:
        self._unread = None
        left = self.transport.get_write_buffer_size()
        if left and left > self._unread_bytes - UNREAD_BYTES_MIN and self.loop.time() - due <= _LATE_S:
            Connection.timed_out += 1
            self.transport.abort()
        else:
            self._watch_reader()

    def _answer(self, status: int, body: dict[str, Any], *headers: tuple[bytes, bytes]) -> None:
        """An answer of the connection's own, which is its last."""
        self._stop_clock()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = json.dumps(body).encode()
            all_headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(content)).encode()),
                (b"connection", b"close"),
                *headers,
            ]
            if self.cycle is not None:
                self.cycle.disconnected = True  # what it still says goes nowhere
            for event in (
                h11.Response(status_code=status, headers=all_headers, reason=STATUS_PHRASES[status]),
                h11.Data(data=content),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
            self._watch_reader()
        self.transport.close()
