"""What BMv2's Thrift is asked for, and answers that are none."""

from __future__ import annotations

import asyncio
import struct

import pytest
from wormcast.p4rt.thrift import NotThere, ThriftError, set_queue

STRUCT, STRING, I32 = 12, 11, 8


def head(kind: int = 2) -> bytes:
    return struct.pack(">Ii", 0x80010000 | kind, 1) + b"x" + struct.pack(">i", 0)


def status(value: int) -> bytes:
    return head() + struct.pack(">bhi", I32, 0, value) + b"\0"


def refusal(text: bytes) -> bytes:
    return head(3) + struct.pack(">bhi", STRING, 1, len(text)) + text + struct.pack(">bhi", I32, 2, 1) + b"\0"


def asked(*replies: bytes) -> list[bytes]:
    """Calls of a switch that answers them so, and then ends the connection."""
    calls = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for reply in replies:
            calls.append(await reader.read(1000))
            writer.write(reply)
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            await set_queue("127.0.0.1", port, 254, 4096, 4000)

    asyncio.run(run())
    return calls


def test_a_queue_gets_room_and_a_rate() -> None:
    depth, rate = asked(status(0), status(0))
    to_port = b"\x08\0\x01" + struct.pack(">i", 254)
    assert depth.endswith(
        b"simple_switch:set_egress_queue_depth\0\0\0\0" + to_port + b"\x08\0\x02\0\0\x10\0\0"
    )
    assert rate.endswith(
        b"simple_switch:set_egress_queue_rate\0\0\0\0"
        + to_port
        + b"\x0a\0\x02"
        + struct.pack(">q", 4000)
        + b"\0"
    )


@pytest.mark.parametrize(
    ("replies", "says"),
    [
        ([b"HTTP/1.1 400 Bad Request\r\n"], "does not speak Thrift"),
        ([refusal(b"Invalid method name: 'set_egress_queue_depth'")], "does not know set_egress_queue_depth"),
        ([head(3) + b"\0"], "does not know set_egress_queue_depth"),
        ([head() + struct.pack(">bh", STRUCT, 1)], "refuses set_egress_queue_depth of port 254"),
        ([status(0), status(1)], "set_egress_queue_rate of port 254 ends with 1"),
        ([status(0)], "ended the connection"),
    ],
)
def test_answers_that_are_none_are_named(replies: list[bytes], says: str) -> None:
    with pytest.raises(ThriftError, match=says):
        asked(*replies)


def test_nobody_there_can_be_told_apart() -> None:
    async def run() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        await set_queue("127.0.0.1", port, 254, 4096, 4000)

    with pytest.raises(NotThere):
        asyncio.run(run())


def test_one_that_has_not_all_its_services_yet_is_not_there_yet() -> None:
    with pytest.raises(NotThere, match="no service simple_switch, or not yet"):
        asked(refusal(b"TMultiplexedProcessor: Unknown service: simple_switch."))
