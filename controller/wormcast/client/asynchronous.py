"""The client for asyncio: senders and receivers whose calls are awaited.

    async with AsyncSender("images") as sender:
        stable = await sender.send(data)

    async with AsyncReceiver("images") as receiver:
        async for origin, message in receiver.messages():
            ...

Each has a connection of its own, and a thread that alone uses it, so one that waits holds up no other; an agent has 32
connections. A call that is cancelled ends the connection: a message whose end was not taken is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from wormcast.client import (
    Agent,
    AgentError,
    Group,
    Progress,
    Receiver,
    ReceiverEvent,
    Sender,
)
from wormcast.client.outcomes import StableMessage

__all__ = ["AsyncReceiver", "AsyncSender"]

T = TypeVar("T")
Bytes = bytes | bytearray | memoryview


class _Connected:
    """A connection to the agent in a thread of its own."""

    def __init__(self, path: str | Path | None) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="wormcast")
        self._interrupted, self._interrupt = os.pipe()
        self._agent: Agent | None = None

    async def __aenter__(self) -> Self:
        try:
            await self._call(self._open)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _open(self) -> None:
        self._agent = Agent(self._path, timeout_s=None, interrupt=self._interrupted)

    async def _call(self, work: Callable[[], T]) -> T:
        """Does something in the thread. If this is cancelled, so is whatever waits there."""
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._stop()
            with contextlib.suppress(AgentError):
                await future
            raise

    def _stop(self) -> None:
        os.write(self._interrupt, b"\0")
        if self._agent is not None:
            self._agent.hang_up()

    async def close(self) -> None:
        """Ends the connection: a message that is being written is given up, one that is not confirmed too."""
        if self._interrupt < 0:
            return
        self._stop()
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        if self._agent is not None:
            self._agent.close()
        for descriptor in (self._interrupted, self._interrupt):
            os.close(descriptor)
        self._interrupt = -1


class AsyncSender(_Connected):
    """Sends messages to a group, by number or name. ``rate_bits``: most bits of messages a second."""

    def __init__(
        self, group: int | str, path: str | Path | None = None, *, rate_bits: int | None = None
    ) -> None:
        super().__init__(path)
        self._to = group
        self._rate_bits = rate_bits
        self._sender: Sender
        self._progress: Progress | None = None
        self._news = asyncio.Event()

    def _open(self) -> None:
        super()._open()
        assert self._agent is not None
        self._sender = self._agent.open_sender(
            self._to, on_progress=self._note_progress, rate_bits=self._rate_bits
        )

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        return await super().__aenter__()

    @property
    def group(self) -> Group:
        return self._sender.group

    async def send(self, data: Bytes) -> StableMessage:
        """One whole message; waits until it is stable. ``data``: bytes, or whatever has its bytes in one piece, as
        a numpy array; it is not copied, and must stay as it is until then."""
        return await self._call(lambda: self._sender.send(data))

    async def write(self, data: Bytes) -> None:
        """Appends to the current message; waits while the agent has no room."""
        await self._call(lambda: self._sender.write(data))

    async def end(self) -> int:
        """Ends the current message and returns its number."""
        return await self._call(self._sender.end)

    async def wait_stable(self, message: int) -> StableMessage:
        """Waits until every member that will ever have the message has confirmed it."""
        return await self._call(lambda: self._sender.wait_stable(message))

    async def wait_answers(self, hosts: Iterable[int], timeout_s: float) -> dict[int, str]:
        """What receivers have said of the message that ended last, once all of these have, or after so long."""
        await self._call(lambda: self._sender.wait_answers(hosts, timeout_s))
        return dict(self._sender.answers)

    async def cancel(self) -> None:
        """Gives up the message being written."""
        await self._call(self._sender.cancel)

    async def progress(self) -> AsyncIterator[Progress]:
        """How far it is, whenever that has changed: the latest alone, until the sender is closed."""
        while self._interrupt >= 0:
            await self._news.wait()
            self._news.clear()
            if self._progress is not None:
                yield self._progress

    async def close(self) -> None:
        await super().close()
        self._news.set()
        self._progress = None

    def _note_progress(self, progress: Progress) -> None:
        self._progress = progress
        self._loop.call_soon_threadsafe(self._news.set)


class AsyncReceiver(_Connected):
    """Receives a group's messages, of one origin or of all."""

    def __init__(
        self,
        group: int | str,
        path: str | Path | None = None,
        *,
        origin: int | None = None,
        files: bool = False,
    ) -> None:
        super().__init__(path)
        self._of = group
        self._origin = origin
        self._files = files
        self._receiver: Receiver

    def _open(self) -> None:
        super()._open()
        assert self._agent is not None
        self._receiver = self._agent.open_receiver(self._of, origin=self._origin, files=self._files)

    @property
    def group(self) -> Group:
        return self._receiver.group

    async def next_event(self, timeout_s: float | None = None) -> ReceiverEvent | None:
        """The next event; None if none comes in time. What is done with its message goes through
        ``settle``."""
        return await self._call(lambda: self._receiver.next_event(timeout_s))

    async def settle(self, work: Callable[[], T]) -> T:
        """Calls a method of a message, as ``message.confirm``, ``answer`` or ``abort``, where that may be done."""
        return await self._call(work)

    async def messages(self) -> AsyncIterator[tuple[int, bytes]]:
        """Whole messages as (origin, bytes), each confirmed when the next is asked for. For messages that fit in
        memory."""
        whole = self._receiver.messages()
        while True:
            found = await self._call(lambda: next(whole, None))
            if found is None:
                return
            yield found
