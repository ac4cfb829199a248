"""A connection to the agent: requests and answers, and sorting what comes in between."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from wormcast.client.errors import (
    AgentGoneError,
    AgentInterruptedError,
    AgentProtocolError,
    AgentTimeoutError,
    AgentUnavailableError,
    RefusedError,
)
from wormcast.client.frames import (
    API_VERSION,
    ControlFrame,
    DataFrame,
    FrameDecoder,
    WindowFrame,
    encode_control,
    encode_data_header,
    encode_window,
)

SOCKET_DEFAULT = "/run/wormcast/agent.sock"
SOCKET_VARIABLE = "WORMCAST_SOCKET"

_READ_BYTES = 256 << 10
_RETRY_S = 0.05
_GRACE_S = 1.0
"""What is on its way when the program is to end may still come."""

Json = dict[str, Any]
Result = TypeVar("Result")
Handler = Callable[[Json | DataFrame | WindowFrame], None]


def socket_path(path: str | Path | None) -> Path:
    """``path``, or what WORMCAST_SOCKET says, or the default."""
    return Path(path or os.environ.get(SOCKET_VARIABLE) or SOCKET_DEFAULT)


class Connection:
    """Frames out and in; one thread at a time may use it.

    What the agent sends unasked goes to the handler of its handle.
    """

    def __init__(
        self, path: Path, *, timeout_s: float | None, deadline: float | None, interrupt: int | None = None
    ) -> None:
        self._timeout_s = timeout_s
        self._interrupt = interrupt
        self.deadline = deadline
        """No wait goes beyond it (time.monotonic(); None: no limit): AgentTimeoutError."""
        self.groups_changed = False
        """The agent has said so, since it was asked last."""
        self._abandoned: set[int] = set()
        self._late: dict[int, Json] = {}
        self._answered: dict[int, Callable[[], None]] = {}
        self._broken = False
        self._decoder = FrameDecoder()
        self._handlers: dict[int, Handler] = {}
        self._next_id = 1
        self._socket = _connect(path, _sooner(deadline, _after(timeout_s)), interrupt)
        try:
            self.hello = self.ask({"op": "hello", "version": API_VERSION, "client": "wormcast-python"})
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        """Everything open on this connection is closed by the agent."""
        self._socket.close()

    def hang_up(self) -> None:
        """For another thread: whoever waits here finds the connection at its end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def fileno(self) -> int:
        return self._socket.fileno()

    def attach(self, handle: int, handler: Handler) -> None:
        """From now on ``handler`` gets what comes for ``handle``."""
        self._handlers[handle] = handler

    def detach(self, handle: int) -> None:
        """What still comes for ``handle`` is dropped."""
        self._handlers.pop(handle, None)

    def ask(self, request: Json, timeout_s: float | None = None, *, descriptor: int | None = None) -> Json:
        """The answer to a request; RefusedError if the agent refuses it.

        ``timeout_s``: longest wait beyond the connection's own for an agent that is alive.
        ``descriptor``: goes with the request.
        """
        number = self._request(request, descriptor)
        if self._timeout_s is None:
            limit = None
        else:
            limit = self._timeout_s if timeout_s is None else timeout_s + self._timeout_s
        deadline = _after(limit)
        while True:
            try:
                frame = self._next_frame(deadline)
            except AgentTimeoutError:
                self._abandoned.add(number)
                raise
            if frame is None:
                self._abandoned.add(number)
                raise AgentTimeoutError(f"no answer from the agent to '{request['op']}' within {limit:g} s")
            message = self._dispatch(frame)
            if message is not None and message.get("id") == number:
                return _result(message)

    def begin(self, request: Json, *, descriptor: int, answered: Callable[[], None]) -> int:
        """Makes a request whose answer may take long; the number to ask ``late_result`` with. ``answered`` is called
        when the answer comes."""
        number = self._request(request, descriptor)
        self._abandoned.add(number)
        self._answered[number] = answered
        return number

    def late_result(self, number: int) -> Json | None:
        """The answer to a request that was begun; None until it has come. RefusedError as of ``ask``."""
        answer = self._late.pop(number, None)
        return None if answer is None else _result(answer)

    def _request(self, request: Json, descriptor: int | None) -> int:
        number = self._next_id
        self._next_id += 1
        self._send(encode_control(json.dumps({**request, "id": number}).encode()), descriptor=descriptor)
        return number

    @property
    def last_request(self) -> int:
        """Number of the request made last."""
        return self._next_id - 1

    def late_answer(self, number: int) -> Json | None:
        """The answer to a request that was not waited for to its end, if it has come since."""
        return self._late.get(number)

    def pump(self, deadline: float | None) -> bool:
        """Handles one frame; False if none comes until ``deadline`` (time.monotonic(); None: no limit)."""
        frame = self._next_frame(deadline)
        if frame is None:
            return False
        self._dispatch(frame)
        return True

    def send_data(self, handle: int, data: memoryview) -> None:
        """Sends message bytes; the caller keeps to the window."""
        header = encode_data_header(handle, len(data))
        self._send(header, data)

    def send_window(self, handle: int, size: int) -> None:
        """Lets the agent send so many bytes more of a message."""
        self._send(encode_window(handle, size))

    def _dispatch(self, frame: ControlFrame | DataFrame | WindowFrame) -> Json | None:
        """Gives the frame to whom it concerns; an answer is returned."""
        if isinstance(frame, ControlFrame):
            try:
                message = json.loads(frame.json)
            except (ValueError, RecursionError) as error:
                raise AgentProtocolError(f"a control frame that is not JSON: {error}") from None
            if not isinstance(message, dict):
                raise AgentProtocolError("a control frame that is not a JSON object")
            if "event" not in message:
                number = message.get("id")
                if isinstance(number, int) and number in self._abandoned:
                    self._abandoned.discard(number)
                    self._late[number] = message
                    self._answered.pop(number, lambda: None)()
                return message
            if message["event"] == "goodbye":
                raise AgentGoneError(f"the agent ended the connection: {message.get('reason')}")
            if message["event"] == "groups_changed":
                self.groups_changed = True
                return None
            # A message begins under its receiver's handle; the rest goes by its own.
            name = "receiver" if message["event"] == "message_begin" else "handle"
            self._hand_over(understood(lambda event: int(event[name]), message), message)
        else:
            self._hand_over(frame.handle, frame)
        return None

    def _hand_over(self, handle: int, item: Json | DataFrame | WindowFrame) -> None:
        handler = self._handlers.get(handle)
        if handler is not None:
            handler(item)

    def _next_frame(self, deadline: float | None) -> ControlFrame | DataFrame | WindowFrame | None:
        while True:
            frame = self._decoder.next_frame()
            if frame is not None:
                return frame
            if not self._wait(deadline, self._socket, None):
                return None
            try:
                data = self._socket.recv(_READ_BYTES)
            except OSError as error:
                raise AgentGoneError(f"the agent is gone: {error}") from error
            if not data:
                raise AgentGoneError("the agent is gone")
            self._decoder.feed(data)

    def _wait(
        self, deadline: float | None, readable: socket.socket | None, writable: socket.socket | None
    ) -> bool:
        """False if it is not ready by `deadline`; AgentTimeoutError if not by the connection's own,
        AgentInterruptedError if the program is to end before."""
        soonest = _sooner(deadline, self.deadline)
        left = None if soonest is None else max(soonest - time.monotonic(), 0.0)
        inputs, outputs = ([readable] if readable else []), ([writable] if writable else [])
        awaited: list[socket.socket | int] = [*inputs]
        if self._interrupt is not None:
            awaited.append(self._interrupt)
        ready = select.select(awaited, outputs, [], left)
        if readable in ready[0] or ready[1]:
            return True
        if ready[0]:
            least = _GRACE_S if left is None else min(left, _GRACE_S)
            if any(select.select(inputs, outputs, [], least)[:2]):
                return True
            if left is None or left > least:
                raise AgentInterruptedError("the program was stopped before the agent answered")
        if soonest is not None and soonest == self.deadline and soonest != deadline:
            raise AgentTimeoutError("no answer from the agent within the time limit")
        return False

    def _send(self, *parts: bytes | memoryview, descriptor: int | None = None) -> None:
        # The agent reads requests and data within the window whatever else happens, so
        # this waits only for an agent that is stuck.
        if self._broken:
            raise AgentTimeoutError("the agent has not taken what was sent before")
        try:
            for part in parts:
                rest = memoryview(part)
                while len(rest):
                    try:
                        if descriptor is None:
                            sent = self._socket.send(rest, socket.MSG_DONTWAIT)
                        else:
                            sent = socket.send_fds(self._socket, [rest], [descriptor], socket.MSG_DONTWAIT)
                            descriptor = None
                        rest = rest[sent:]
                    except BlockingIOError:
                        self._wait(None, None, self._socket)
        except (AgentTimeoutError, AgentInterruptedError):
            # Half a frame may be out: nothing can follow it.
            self._broken = True
            raise
        except OSError as error:
            raise self._explain_break(error) from error

    def _explain_break(self, error: OSError) -> AgentGoneError:
        """The agent says why it ends a connection; that is worth more than 'broken pipe'."""
        try:
            while self.pump(time.monotonic() + 0.2):
                pass
        except AgentGoneError as gone:
            return gone
        return AgentGoneError(f"the agent is gone: {error}")


def understood(read: Callable[[Json], Result], message: Json) -> Result:
    """What is read from a message of the agent; AgentProtocolError if it lacks a field or has one of another kind."""
    try:
        return read(message)
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        text = f"{message!r:.200}"
        raise AgentProtocolError(f"a malformed message of the agent: {error!r} in {text}") from error


def _result(answer: Json) -> Json:
    if "error" in answer:
        raise understood(_refusal, answer["error"])
    result = answer.get("result")
    if not isinstance(result, dict):
        raise AgentProtocolError(f"an answer without result: {answer}")
    return result


def _refusal(error: Json) -> RefusedError:
    return RefusedError(str(error["code"]), str(error["message"]), error.get("choices"))


def _connect(path: Path, deadline: float | None, interrupt: int | None) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        while True:
            try:
                # A Unix socket takes a connection at once or not at all.
                connection.setblocking(False)
                connection.connect(str(path))
                connection.setblocking(True)
                return connection
            except BlockingIOError:
                # An agent that does not get to run has its queue of connections full.
                if deadline is not None and deadline <= time.monotonic():
                    text = f"the agent at {path} did not accept a connection within the time limit"
                    raise AgentTimeoutError(text) from None
                if interrupt is not None and select.select([interrupt], [], [], 0)[0]:
                    raise AgentInterruptedError("the program was stopped before the agent answered") from None
                time.sleep(_RETRY_S)
    except (OSError, ValueError) as error:
        connection.close()
        raise AgentUnavailableError(_explain_unavailable(path, error)) from error
    except BaseException:
        connection.close()
        raise


def _after(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds


def _sooner(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else min(one, other)


def _explain_unavailable(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        what = "there is no such socket; is wormcast-agent running?"
    elif isinstance(error, ConnectionRefusedError):
        what = "its agent is gone; start wormcast-agent"
    elif isinstance(error, PermissionError):
        what = "only the user that runs the agent may use it"
    else:
        what = getattr(error, "strerror", None) or str(error)
    return f"no agent at {path}: {what} (--socket or {SOCKET_VARIABLE} names another)"
