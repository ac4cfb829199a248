"""Frames of the local API (hostagent/API.md §2): a length, a type, a body."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from wormcast.client.errors import AgentProtocolError

API_VERSION = 1
CONTROL_BYTES_MAX = 1 << 20
DATA_BYTES_MAX = 256 << 10

_CONTROL = 1
_DATA = 2
_WINDOW = 3
_HEADER = struct.Struct(">IB")
_HANDLE = struct.Struct(">I")
_WINDOW_BODY = struct.Struct(">II")


@dataclass(frozen=True)
class ControlFrame:
    """A JSON object, undecoded."""

    json: bytes


@dataclass(frozen=True)
class DataFrame:
    """Bytes of the message ``handle``."""

    handle: int
    data: bytes


@dataclass(frozen=True)
class WindowFrame:
    """So many bytes more may be sent on ``handle``."""

    handle: int
    size: int


Frame = ControlFrame | DataFrame | WindowFrame


def encode_control(json: bytes) -> bytes:
    """A control frame; ``json`` has at most CONTROL_BYTES_MAX bytes."""
    if len(json) > CONTROL_BYTES_MAX:
        raise ValueError(f"a request of {len(json)} bytes; at most {CONTROL_BYTES_MAX}")
    return _HEADER.pack(len(json) + 1, _CONTROL) + json


def encode_data_header(handle: int, size: int) -> bytes:
    """What goes before ``size`` bytes (1 to DATA_BYTES_MAX) of the message ``handle``."""
    if not 1 <= size <= DATA_BYTES_MAX:
        raise ValueError(f"a data frame of {size} bytes; it must have 1 to {DATA_BYTES_MAX}")
    return _HEADER.pack(size + 5, _DATA) + _HANDLE.pack(handle)


def encode_window(handle: int, size: int) -> bytes:
    """A window update of ``size`` bytes (at least 1)."""
    return _HEADER.pack(9, _WINDOW) + _WINDOW_BODY.pack(handle, size)


class FrameDecoder:
    """Cuts a stream of bytes, in whatever pieces it comes, into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> None:
        """Takes the next bytes of the stream."""
        self._buffer += data

    def next_frame(self) -> Frame | None:
        """The next whole frame; None if it is not all there. AgentProtocolError if it cannot be one."""
        buffer = self._buffer
        if len(buffer) < _HEADER.size:
            return None
        length, kind = _HEADER.unpack_from(buffer)
        least, most = _BODY_BYTES.get(kind, (0, -1))
        if not least <= length - 1 <= most:
            raise AgentProtocolError(f"a frame of type {kind} and length {length} from the agent")
        end = length + 4
        if len(buffer) < end:
            return None
        body = bytes(memoryview(buffer)[5:end])
        del buffer[:end]
        if kind == _CONTROL:
            return ControlFrame(body)
        if kind == _DATA:
            return DataFrame(_HANDLE.unpack_from(body)[0], body[4:])
        handle, size = _WINDOW_BODY.unpack(body)
        return WindowFrame(handle, size)


_BODY_BYTES = {_CONTROL: (2, CONTROL_BYTES_MAX), _DATA: (5, DATA_BYTES_MAX + 4), _WINDOW: (8, 8)}
