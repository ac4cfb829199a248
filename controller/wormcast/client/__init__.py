"""Client of the host agent: send messages to a group, receive those of others.

    from wormcast.client import Agent

    with Agent() as agent, agent.open_sender("images") as sender:
        stable = sender.send(b"hello")
        assert not stable.failed

hostagent/API.md specifies the protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wormcast.client.connection import (
    SOCKET_DEFAULT,
    SOCKET_VARIABLE,
    Connection,
    Json,
    socket_path,
    understood,
)
from wormcast.client.errors import (
    AgentError,
    AgentGoneError,
    AgentInterruptedError,
    AgentProtocolError,
    AgentTimeoutError,
    AgentUnavailableError,
    HandleClosedError,
    RefusedError,
)
from wormcast.client.outcomes import (
    Group,
    MemberOutcome,
    MemberState,
    MessageState,
    Progress,
    StableMessage,
)
from wormcast.client.receiving import (
    AbortReason,
    Arrival,
    FileFailed,
    FileProgress,
    IncomingMessage,
    MessageBegin,
    MessageData,
    MessageEnd,
    MessageLost,
    Receiver,
    ReceiverEvent,
    WrittenFile,
)
from wormcast.client.sending import Sender

__all__ = [
    "SOCKET_DEFAULT",
    "SOCKET_VARIABLE",
    "AbortReason",
    "Agent",
    "AgentError",
    "AgentGoneError",
    "AgentInterruptedError",
    "AgentProtocolError",
    "AgentTimeoutError",
    "AgentUnavailableError",
    "Arrival",
    "FileFailed",
    "FileProgress",
    "Group",
    "HandleClosedError",
    "IncomingMessage",
    "MemberOutcome",
    "MemberState",
    "MessageBegin",
    "MessageData",
    "MessageEnd",
    "MessageLost",
    "MessageState",
    "Progress",
    "Receiver",
    "ReceiverEvent",
    "RefusedError",
    "Sender",
    "StableMessage",
    "Status",
    "WrittenFile",
]

Status = dict[str, Any]
"""Everything about an agent (API.md §4)."""


class Agent:
    """A connection to the agent of this host. What is opened through it is its own: no
    other connection can read or disturb it, and all of it is closed with the connection.

    ``path``: the agent's socket; by default WORMCAST_SOCKET, or /run/wormcast/agent.sock.
    ``timeout_s``: how long the agent may take to answer what it can answer at once; None:
    as long as it takes. ``deadline``: no call waits beyond this time.monotonic().
    ``interrupt``: a descriptor; once it is readable no call waits for long, but raises AgentInterruptedError.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        timeout_s: float | None = 15.0,
        deadline: float | None = None,
        interrupt: int | None = None,
    ) -> None:
        self.path = socket_path(path)
        self._connection = Connection(self.path, timeout_s=timeout_s, deadline=deadline, interrupt=interrupt)

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def deadline(self) -> float | None:
        """No call waits beyond this time.monotonic(), but raises AgentTimeoutError; None: no limit."""
        return self._connection.deadline

    @deadline.setter
    def deadline(self, deadline: float | None) -> None:
        self._connection.deadline = deadline

    @property
    def name(self) -> str:
        return str(self._connection.hello["name"])

    @property
    def host(self) -> int | None:
        """Number of this host; None as long as no controller has registered it."""
        host = self._connection.hello.get("host")
        return None if host is None else int(host)

    def status(self) -> Status:
        """Everything about the agent (API.md §4)."""
        return self._connection.ask({"op": "status"})

    @property
    def groups_changed(self) -> bool:
        """Since ``groups(watch=True)``: there are other groups or members, or a receiver is gone. It is read from
        what has come (``poll``)."""
        return self._connection.groups_changed

    def groups(self, *, watch: bool = False) -> list[Group]:
        """The groups this host is a member of. ``watch``: the agent tells when that changes (``groups_changed``),
        also where it has none to name yet."""
        if watch:
            self._connection.groups_changed = False
        groups: list[Group] = []
        first: Json = {"watch": True} if watch else {}
        left_out = True
        while left_out:
            after = {"after": groups[-1].number} if groups else first
            answer = self._connection.ask({"op": "groups", **after})
            groups += understood(lambda value: [Group.parse(group) for group in value["groups"]], answer)
            left_out = bool(answer.get("left_out"))
        return groups

    def open_sender(
        self,
        group: int | str,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        progress_interval_s: float = 0.1,
        on_unclaimed: Callable[[int], None] | None = None,
        on_slow: Callable[[int], None] | None = None,
        rate_bits: int | None = None,
    ) -> Sender:
        """Opens a sender to a group, by number or name. ``on_unclaimed`` gets hosts at which a
        message has arrived and nobody receives; ``on_slow`` those where it is taken slower than it comes, twice a
        second. ``rate_bits``: most bits of messages a second, 8,000 to 10^12."""
        request: Json = {"op": "open_sender", "group": group}
        if rate_bits is not None:
            request["rate_bits"] = rate_bits
        if on_progress is not None:
            request["progress_ms"] = round(progress_interval_s * 1000)
        opened = self._connection.ask(request)
        told = (on_progress, on_unclaimed, on_slow)
        return understood(lambda answer: Sender(self._connection, answer, *told), opened)

    def open_receiver(self, group: int | str, *, origin: int | None = None, files: bool = False) -> Receiver:
        """Opens a receiver of a group's messages, of one origin or of all. ``files``: where a message is a file, the
        agent writes its content (IncomingMessage.write_to)."""
        request: Json = {"op": "open_receiver", "group": group}
        if files:
            request["files"] = True
        if origin is not None:
            request["origin"] = origin
        opened = self._connection.ask(request)
        return understood(lambda answer: Receiver(self._connection, answer), opened)

    def poll(self) -> None:
        """Takes what has come from the agent, without a wait."""
        while self._connection.pump(time.monotonic()):
            pass

    def fileno(self) -> int:
        """For select: readable when something has come from the agent."""
        return self._connection.fileno()

    def hang_up(self) -> None:
        """Ends the connection for whoever uses it in another thread: what waits there raises AgentGoneError."""
        self._connection.hang_up()

    def close(self) -> None:
        """Closes the connection and everything opened through it."""
        self._connection.close()
