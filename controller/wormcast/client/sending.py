"""Senders of messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from wormcast.client.connection import Connection, Json, understood
from wormcast.client.errors import AgentProtocolError, HandleClosedError
from wormcast.client.frames import DATA_BYTES_MAX, DataFrame, WindowFrame
from wormcast.client.outcomes import (
    Group,
    MessageState,
    Progress,
    StableMessage,
    read_message_state,
    read_outcomes,
)

ANNOUNCED_LEAST = 1024
"""Shorter messages fit one packet; the agent sees by itself how long they are."""
_FOREVER_S = 10.0 * 365 * 86_400
_LOOK_S = 0.5
"""Between two looks at what is going on while the agent reads a file."""


class Sender:
    """Sends messages to a group; made by Agent.open_sender()."""

    def __init__(
        self,
        connection: Connection,
        opened: Json,
        on_progress: Callable[[Progress], None] | None,
        on_unclaimed: Callable[[int], None] | None = None,
        on_slow: Callable[[int], None] | None = None,
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
        self._on_slow = on_slow
        self._end_request: int | None = None
        self._ended: int | None = None
        """Number of the message that ended last, until another begins; then it is the one before."""
        self._before: int | None = None
        self._base = Progress.parse(opened["progress"])
        self.progress = Progress()
        """Since this sender was opened."""
        self.failures: dict[int, str] = {}
        """Members known so far not to get the current message, or that ended last, with the reason."""
        self.answers: dict[int, str] = {}
        """What receivers have said of the current message, or that ended last: the last word of each member."""
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
            self._before, self._ended, self._end_request = self._ended, None, None
            self.failures.clear()
            self.answers.clear()

    def poll(self) -> None:
        """Takes what has come from the agent, without a wait: it keeps progress and failures current."""
        while self._connection.pump(time.monotonic()):
            pass
        self._check_open()

    def announce(self, size: int) -> None:
        """Says how long the message will be that is written next; it takes its way through a group by that."""
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

    def wait_answers(self, hosts: Iterable[int], timeout_s: float) -> None:
        """Until all of these have answered, for so long at most."""
        missing, deadline = set(hosts), time.monotonic() + timeout_s
        while missing - self.answers.keys() and self._connection.pump(deadline):
            self._check_open()

    def message_state(self) -> MessageState:
        """What is known now of the message being written, or ended last, at each member."""
        answer = self._connection.ask({"op": "message_state", "handle": self._handle})
        return understood(read_message_state, answer)

    @property
    def was_ended(self) -> bool:
        """The end of the current message was asked for: its members may have all of it."""
        return self._end_request is not None

    def give_up(self) -> bool:
        """Closes the sender; true if the agent had taken the end of its message before, which
        goes on its way then; else it is cancelled."""
        self.close()
        late = None if self._end_request is None else self._connection.late_answer(self._end_request)
        return late is not None and "result" in late

    def send(self, data: bytes | bytearray | memoryview, timeout_s: float | None = None) -> StableMessage:
        """One whole message; waits until it is stable."""
        size = memoryview(data).nbytes
        if size > ANNOUNCED_LEAST:
            self.announce(size)
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
        elif item["event"] == "member_slow":
            if self._on_slow is not None:
                self._on_slow(understood(lambda event: int(event["host"]), item))
        elif item["event"] == "answer":
            host, text = understood(lambda event: (int(event["host"]), str(event["text"])), item)
            if host in self.group.members:
                self.answers[host] = text
        elif item["event"] == "handle_closed":
            self._closed = str(item.get("reason"))
            self._connection.detach(self._handle)
