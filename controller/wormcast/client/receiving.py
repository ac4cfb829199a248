"""Receivers, and the messages that arrive."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from wormcast.client.connection import Connection, Json, understood
from wormcast.client.errors import AgentProtocolError, HandleClosedError, RefusedError
from wormcast.client.frames import DataFrame, WindowFrame
from wormcast.client.outcomes import Group

AbortReason = Literal["no_space", "storage", "cancelled"]
# A quarter of the window of an arriving message (API.md §7).
_WINDOW_UPDATE_BYTES = 128 << 10


@dataclass(eq=False)
class IncomingMessage:
    """A message that arrives; confirm() or abort() it after its end."""

    connection: Connection = field(repr=False)
    handle: int
    group: Group
    origin: int
    number: int = 0
    """Which it is of this origin in this group, the same at all members."""
    age_s: float | None = None
    """For how long it had been arriving at this host when it was announced; None: the agent does not tell."""
    open: bool = True
    taken_bytes: int = 0
    """Taken out since the last window update."""

    def confirm(self) -> None:
        """This program has the message and keeps it: its origin may count on that."""
        self._settle({"op": "confirm", "handle": self.handle})

    def abort(self, reason: AbortReason = "cancelled") -> None:
        """This program does not take the message; the others still get it."""
        self._settle({"op": "abort", "handle": self.handle, "reason": reason})

    def write_to(self, descriptor: int, size: int | None) -> None:
        """Has the agent write the content of the file that arrives into a regular file, from its beginning.
        ``size``: as many bytes as there are to be, if that is known."""
        request: Json = {"op": "receive_file", "handle": self.handle}
        if size is not None:
            request["bytes"] = size
        self.connection.ask(request, descriptor=descriptor)

    def bound_lag(self, size: int) -> None:
        """Has the agent give the message up where more than ``size`` bytes of it wait for this program. Of a file its
        header says so, and the agent keeps to it by itself."""
        self.connection.ask({"op": "bound_lag", "handle": self.handle, "bytes": size})

    def extend(self) -> None:
        """This program is still at work on it: the agent's time for confirm() begins anew."""
        with contextlib.suppress(RefusedError):
            # Agents before this one know no such request, and a message that was lost is reported otherwise.
            self.connection.ask({"op": "extend", "handle": self.handle})

    def answer(self, text: str) -> None:
        """Says something of the message to its origin, once, before it is confirmed or given up: at most 65,536 bytes.
        It goes by the controller, and may get lost."""
        self.connection.ask({"op": "answer", "handle": self.handle, "text": text})

    def _settle(self, request: Json) -> None:
        self.open = False
        self.connection.detach(self.handle)
        self.connection.ask(request)


@dataclass(frozen=True)
class MessageBegin:
    """A message begins to arrive."""

    message: IncomingMessage
    header: str | None = None
    """Of a file, for a receiver that takes files (API.md §8): its content waits for IncomingMessage.write_to()."""


@dataclass(frozen=True)
class MessageData:
    """More of it."""

    message: IncomingMessage
    data: bytes


@dataclass(frozen=True)
class FileProgress:
    """So many bytes of a file's content are written."""

    message: IncomingMessage
    size: int


@dataclass(frozen=True)
class FileFailed:
    """No more of a file's content will be written: abort() it."""

    message: IncomingMessage
    code: str
    """"no_space", "storage", or "damaged" for content that is not as its sender said."""
    reason: str


@dataclass(frozen=True)
class WrittenFile:
    """Content that the agent has written; it is as its sender said."""

    size: int
    sha256: str
    """Of it, in hex."""


@dataclass(frozen=True)
class Arrival:
    """How long a message took to come over the network, whenever it was read here."""

    size: int
    """Bytes of it that came after its first moment."""
    seconds: float
    """From its first moment to its last."""

    @property
    def rate(self) -> float | None:
        """In bits a second; None for what came all at once."""
        return self.size * 8 / self.seconds if self.seconds > 0 and self.size > 0 else None


@dataclass(frozen=True)
class MessageEnd:
    message: IncomingMessage
    length: int
    arrival: Arrival | None = None
    """None: the agent does not tell."""
    file: WrittenFile | None = None
    """If the agent wrote it."""


@dataclass(frozen=True)
class MessageLost:
    """The rest of it will not come."""

    message: IncomingMessage
    reason: str


ReceiverEvent = MessageBegin | MessageData | FileProgress | FileFailed | MessageEnd | MessageLost


class Receiver:
    """Receives a group's messages; made by Agent.open_receiver().

    Messages of one origin come one after the other, in the order sent; messages of
    several origins may come interleaved.
    """

    def __init__(self, connection: Connection, opened: Json) -> None:
        self.group = Group.parse(opened)
        self._connection = connection
        self._handle = int(opened["handle"])
        self._events: deque[ReceiverEvent] = deque()
        self._closed: str | None = None
        connection.attach(self._handle, self._take)

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next_event(self, timeout_s: float | None = None) -> ReceiverEvent | None:
        """The next event; None if none comes in time. Taking data out makes room for more."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            event = self.take_event()
            if event is not None or not self._connection.pump(deadline):
                return event

    def take_event(self) -> ReceiverEvent | None:
        """The next event of those that have come; None if there is none. HandleClosedError after the last."""
        while self._events:
            event = self._events.popleft()
            if not isinstance(event, (MessageBegin, MessageLost)) and not event.message.open:
                # It is lost or settled: without all of its bytes its end would say that it is whole.
                continue
            if isinstance(event, MessageData):
                self._make_room(event.message, len(event.data))
            return event
        if self._closed is not None:
            raise HandleClosedError(f"the receiver of group {self.group.label} is closed: {self._closed}")
        return None

    def _make_room(self, message: IncomingMessage, size: int) -> None:
        """Lets the agent send on; not for every piece, which would cost both sides time."""
        message.taken_bytes += size
        if message.taken_bytes >= _WINDOW_UPDATE_BYTES:
            self._connection.send_window(message.handle, message.taken_bytes)
            message.taken_bytes = 0

    def messages(self, timeout_s: float | None = None) -> Iterator[tuple[int, bytes]]:
        """Whole messages as (origin, bytes), each confirmed when the next is asked for.

        For small messages: each is gathered in memory. Ends when nothing comes for ``timeout_s``.
        """
        parts: dict[int, list[bytes]] = {}
        while (event := self.next_event(timeout_s)) is not None:
            handle = event.message.handle
            match event:
                case MessageBegin():
                    parts[handle] = []
                case MessageData():
                    parts[handle].append(event.data)
                case MessageLost():
                    del parts[handle]
                case MessageEnd():
                    yield event.message.origin, b"".join(parts.pop(handle))
                    event.message.confirm()

    def close(self) -> None:
        """Closes the receiver; a message not confirmed is given up."""
        if self._closed is None:
            self._closed = "it was closed"
            self._connection.detach(self._handle)
            self._connection.ask({"op": "close", "handle": self._handle})

    def _take(self, item: Json | DataFrame | WindowFrame) -> None:
        if not isinstance(item, dict):
            raise AgentProtocolError("message bytes that belong to no message")
        if item["event"] == "message_begin":
            handle, origin = understood(lambda event: (int(event["handle"]), int(event["origin"])), item)
            age_us = understood(lambda event: int(event.get("age_us", -1)), item)
            number = understood(lambda event: int(event.get("message", 0)), item)
            age_s = None if age_us < 0 else age_us / 1e6
            message = IncomingMessage(self._connection, handle, self.group, origin, number, age_s)
            self._connection.attach(message.handle, lambda part: self._take_part(message, part))
            header = item.get("header")
            self._events.append(MessageBegin(message, None if header is None else str(header)))
        elif item["event"] == "handle_closed":
            self._closed = str(item.get("reason"))
            self._connection.detach(self._handle)

    def _take_part(self, message: IncomingMessage, item: Json | DataFrame | WindowFrame) -> None:
        if isinstance(item, DataFrame):
            self._events.append(MessageData(message, item.data))
        elif isinstance(item, WindowFrame):
            raise AgentProtocolError("a window update for a message that is being received")
        elif item["event"] == "message_end":
            self._events.append(understood(lambda event: _message_end(message, event), item))
        elif item["event"] == "file_progress":
            self._events.append(FileProgress(message, understood(lambda event: int(event["bytes"]), item)))
        elif item["event"] == "file_failed":
            code, reason = understood(lambda event: (str(event["code"]), str(event["reason"])), item)
            self._events.append(FileFailed(message, code, reason))
        elif item["event"] == "message_lost":
            message.open = False
            self._connection.detach(message.handle)
            self._events.append(MessageLost(message, str(item.get("reason"))))


def _message_end(message: IncomingMessage, event: Json) -> MessageEnd:
    arrival, file = event.get("arrival"), event.get("file")
    if arrival is not None:
        arrival = Arrival(int(arrival["bytes"]), int(arrival["us"]) / 1e6)
    if file is not None:
        file = WrittenFile(int(file["bytes"]), str(file["sha256"]))
    return MessageEnd(message, int(event["length"]), arrival, file)
