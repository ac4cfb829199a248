"""Senders, receivers and the messages that arrive."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from wormcast.client.connection import Connection, Json, understood
from wormcast.client.errors import AgentProtocolError, HandleClosedError, RefusedError
from wormcast.client.frames import DATA_BYTES_MAX, DataFrame, WindowFrame
from wormcast.client.outcomes import (
    Group,
    MessageState,
    Progress,
    StableMessage,
    read_message_state,
    read_outcomes,
)

AbortReason = Literal["no_space", "storage", "cancelled"]


ANNOUNCED_LEAST = 1024
"""Shorter messages fit one packet; the agent sees by itself how long they are."""


class Sender:
    """Sends messages to a group; made by Agent.open_sender()."""

    def __init__(
        self,
        connection: Connection,
        opened: Json,
        on_progress: Callable[[Progress], None] | None,
        on_unclaimed: Callable[[int], None] | None = None,
    ) -> None:
        self.group = Group.parse(opened)
        host = connection.hello.get("host")
        self.origin = None if host is None else int(host)
        self._connection = connection
        self._handle = int(opened["handle"])
        self._window = int(opened["window_bytes"])
        self._closed: str | None = None
        self._read_by_agent = False
        """A file of the message is; nothing else can be written meanwhile."""
        self._on_progress = on_progress
        self._on_unclaimed = on_unclaimed
        self._end_request: int | None = None
        self._ended: int | None = None
        """Number of the message that ended last, until another begins; then it is the one before."""
        self._before: int | None = None
        self._base = Progress.parse(opened["progress"])
        self.progress = Progress()
        """Since this sender was opened."""
        self.failures: dict[int, str] = {}
        """Members known so far not to get the current message, or that ended last, with the reason."""
        connection.attach(self._handle, self._take)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Appends to the current message; waits while the agent has no room."""
        rest = memoryview(data).cast("B")
        self._go_on()
        while len(rest):
            self.poll()
            size = min(len(rest), self._window, DATA_BYTES_MAX)
            if size == 0:
                self._connection.pump(None)
                continue
            self._window -= size
            self._connection.send_data(self._handle, rest[:size])
            rest = rest[size:]

    def send_file(self, descriptor: int, size: int, look: Callable[[], None] | None = None) -> str:
        """Appends all of a regular file of ``size`` bytes to the current message; the agent reads it itself. Gives
        the SHA-256 of it. ``look`` is called now and then meanwhile.

        RefusedError with code "storage" if it cannot be read, or changed meanwhile.
        """
        self._go_on()
        self.poll()
        request = {"op": "send_file", "handle": self._handle, "bytes": size}
        number = self._connection.begin(request, descriptor=descriptor, answered=self._begin_window)
        self._read_by_agent = True
        while (answer := self._connection.late_result(number)) is None:
            self._connection.pump(time.monotonic() + _LOOK_S)
            self._check_open()
            if look is not None:
                look()
        return understood(lambda value: str(value["sha256"]), answer)

    def _begin_window(self) -> None:
        """What is left of the window comes behind the answer."""
        self._read_by_agent = False
        self._window = 0

    def _go_on(self) -> None:
        """With the current message, or another one."""
        if self._ended is not None:
            self._before, self._ended = self._ended, None
            self.failures.clear()

    def poll(self) -> None:
        """Takes what has come from the agent, without a wait: it keeps progress and failures current."""
        while self._connection.pump(time.monotonic()):
            pass
        self._check_open()

    def announce(self, size: int) -> None:
        """Says how long the message will be that is written next; a group of scheme auto chooses its way by it."""
        self._connection.ask({"op": "announce_message", "handle": self._handle, "bytes": size})

    def end(self) -> int:
        """Ends the current message and returns its number.

        Waits for the agent to have taken all of it: as long as the group needs.
        """
        self._check_open()
        try:
            answer = self._connection.ask({"op": "end_message", "handle": self._handle}, timeout_s=_FOREVER_S)
        finally:
            self._end_request = self._connection.last_request
        self._ended = understood(lambda value: int(value["message"]), answer)
        return self._ended

    def wait_stable(self, message: int, timeout_s: float | None = None) -> StableMessage:
        """Waits until every member that will ever have the message has confirmed it. The outcomes name all members
        of the group, also those that take no part.

        RefusedError with code "timeout" after ``timeout_s``.
        """
        request: Json = {"op": "wait_stable", "handle": self._handle, "message": message}
        if timeout_s is not None:
            request["timeout_ms"] = max(0, round(timeout_s * 1000))
        answer = self._connection.ask(request, timeout_s=_FOREVER_S if timeout_s is None else timeout_s)
        return StableMessage(message, understood(read_outcomes, answer))

    def message_state(self) -> MessageState:
        """What is known now of the message being written, or ended last, at each member."""
        answer = self._connection.ask({"op": "message_state", "handle": self._handle})
        return understood(read_message_state, answer)

    @property
    def was_ended(self) -> bool:
        """The end of a message was asked for: its members may have all of it."""
        return self._end_request is not None

    def give_up(self) -> bool:
        """Closes the sender; true if the agent had taken the end of its message before, which
        goes on its way then; else it is cancelled."""
        self.close()
        late = None if self._end_request is None else self._connection.late_answer(self._end_request)
        return late is not None and "result" in late

    def send(self, data: bytes, timeout_s: float | None = None) -> StableMessage:
        """One whole message; waits until it is stable."""
        if len(data) > ANNOUNCED_LEAST:
            self.announce(len(data))
        self.write(data)
        return self.wait_stable(self.end(), timeout_s)

    def cancel(self) -> None:
        """Gives up the message being written."""
        self._connection.ask({"op": "cancel_message", "handle": self._handle})
        while self._read_by_agent:
            self._connection.pump(None)

    def close(self) -> None:
        """Closes the sender; a message not ended is cancelled."""
        if self._closed is None:
            self._closed = "it was closed"
            self._connection.detach(self._handle)
            self._connection.ask({"op": "close", "handle": self._handle})

    def _check_open(self) -> None:
        if self._closed is not None:
            raise HandleClosedError(f"the sender to group {self.group.label} is closed: {self._closed}")

    def _take(self, item: Json | DataFrame | WindowFrame) -> None:
        if isinstance(item, WindowFrame):
            self._window += item.size
        elif isinstance(item, DataFrame):
            raise AgentProtocolError("message bytes for a sender")
        elif item["event"] == "progress":
            self.progress = understood(Progress.parse, item).since(self._base)
            if self._on_progress is not None:
                self._on_progress(self.progress)
        elif item["event"] == "member_failed":
            message, host, reason = understood(
                lambda event: (int(event["message"]), int(event["host"]), str(event["reason"])), item
            )
            # Word of a message before may come late.
            if self._before is None or message > self._before:
                self.failures[host] = reason
        elif item["event"] == "member_unclaimed":
            if self._on_unclaimed is not None:
                self._on_unclaimed(understood(lambda event: int(event["host"]), item))
        elif item["event"] == "handle_closed":
            self._closed = str(item.get("reason"))
            self._connection.detach(self._handle)


# A quarter of the window of an arriving message (API.md §7).
_WINDOW_UPDATE_BYTES = 128 << 10
_FOREVER_S = 10.0 * 365 * 86_400
_LOOK_S = 0.5
"""Between two looks at what is going on while the agent reads a file."""


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

    def extend(self) -> None:
        """This program is still at work on it: the agent's time for confirm() begins anew."""
        with contextlib.suppress(RefusedError):
            # Agents before this one know no such request, and a message that was lost is reported otherwise.
            self.connection.ask({"op": "extend", "handle": self.handle})

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


Status = dict[str, Any]
