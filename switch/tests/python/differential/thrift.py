"""The part of Thrift that BMv2's interface needs: binary protocol, buffered, multiplexed.

simple_switch_CLI speaks the same, but starts anew for each list of commands and prints what
it thinks of them; here each call has a result or a code.
"""

import socket
import struct
from dataclasses import dataclass
from typing import Any, Self

CALL, REPLY = 1, 2
VERSION = 0x80010000
STOP, BOOL, DOUBLE, I16, I32, I64, STRING, STRUCT, LIST = 0, 2, 4, 6, 8, 10, 11, 12, 15
FIXED = {BOOL: ">b", 3: ">b", DOUBLE: ">d", I16: ">h", I32: ">i", I64: ">q"}
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Value:
    """A value and its type on the wire."""

    kind: int
    value: Any


class Refused(Exception):
    """The exception that a method declares: its code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"refused with code {code}")
        self.code = code


def i16(value: int) -> Value:
    """A 16 bit number."""
    return Value(I16, value)


def i32(value: int) -> Value:
    """A 32 bit number."""
    return Value(I32, value)


def i64(value: int) -> Value:
    """A 64 bit number."""
    return Value(I64, value)


def boolean(value: bool) -> Value:
    return Value(BOOL, int(value))


def double(value: float) -> Value:
    """A floating point number."""
    return Value(DOUBLE, value)


def text(value: str | bytes) -> Value:
    """A string or binary."""
    return Value(STRING, value.encode() if isinstance(value, str) else value)


def struct_of(*fields: Value | None) -> Value:
    """A struct whose fields are numbered from 1; None leaves one out."""
    return Value(STRUCT, fields)


def list_of(kind: int, values: list[Value]) -> Value:
    """A list of values of one type."""
    return Value(LIST, (kind, values))


def encode(value: Value) -> bytes:
    """A value as it is on the wire, without its type."""
    if value.kind == STRING:
        return struct.pack(">i", len(value.value)) + bytes(value.value)
    if value.kind == STRUCT:
        parts = []
        for number, field in enumerate(value.value, 1):
            if field is not None:
                parts.append(struct.pack(">bh", field.kind, number) + encode(field))
        return b"".join(parts) + b"\x00"
    if value.kind == LIST:
        kind, values = value.value
        return struct.pack(">bi", kind, len(values)) + b"".join(encode(one) for one in values)
    return struct.pack(FIXED[value.kind], value.value)


class Connection:
    """One connection to a switch. Raises OSError where it cannot be had or breaks."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.stream = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.stream.close()
        self.socket.close()

    def call(self, service: str, method: str, *arguments: Value) -> Any:
        """The result of a call; structs are dictionaries by field number.

        Raises Refused with the code of a declared exception, OSError for everything else.
        """
        name = f"{service}:{method}".encode()
        message = struct.pack(">Ii", VERSION | CALL, len(name)) + name + struct.pack(">i", 0)
        self.socket.sendall(message + encode(struct_of(*arguments)))
        (version,) = struct.unpack(">I", self._take(4))
        self._read(STRING)
        self._take(4)
        answer = self._read(STRUCT)
        if version & 0xFF != REPLY:
            raise OSError(f"{method} was answered with an exception: {answer}")
        for number, field in answer.items():
            if number:
                raise Refused(field.get(1, -1))
        return answer.get(0)

    def _take(self, length: int) -> bytes:
        taken = self.stream.read(length)
        if len(taken) < length:
            raise ConnectionResetError("the switch has closed the connection")
        return taken

    def _read(self, kind: int) -> Any:
        if kind in FIXED:
            form = FIXED[kind]
            return struct.unpack(form, self._take(struct.calcsize(form)))[0]
        if kind == STRING:
            return self._take(self._read(I32))
        if kind == STRUCT:
            fields = {}
            while (field := self._take(1)[0]) != STOP:
                (number,) = struct.unpack(">h", self._take(2))
                fields[number] = self._read(field)
            return fields
        if kind == LIST:
            element = self._take(1)[0]
            return [self._read(element) for _ in range(self._read(I32))]
        raise OSError(f"type {kind} of Thrift is not one that BMv2's interface has")
