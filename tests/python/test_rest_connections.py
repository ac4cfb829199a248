"""Clients that are slow, many, or do not speak HTTP hold up nobody."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import jsonschema
import pytest
from controller_lab.running import running
from controller_lab.serving import RawClient, ask, serving
from wormcast.api import connections
from wormcast.reconcile.controller import Controller
from wormcast.routing import schemas

EVENTS = b"GET /v1/events?after=0&follow=false HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
HALF = b"GET /v1/status HTTP/1.1\r\nhost: x\r\n"


def with_server(tmp_path: Path, test: Callable[[Controller, Path], Awaitable[None]]) -> None:
    async def main() -> None:
        path = tmp_path / "rest.sock"
        async with running() as controller, serving(controller, path):
            await test(controller, path)

    asyncio.run(main())


def test_slow_connections_are_closed_and_hold_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS_MAX", 3.0)

    async def test(_: Controller, path: Path) -> None:
        slow = []
        for number in range(1000):
            slow.append(await RawClient.connect(path))
            slow[-1].send(HALF[: number % len(HALF)])
            if number % 100 == 0:
                assert await ask(path) == 200
        assert await ask(path) == 200
        ends = await asyncio.gather(*(client.read_all() for client in slow))
        assert len(ends) == 1000
        assert any(b"408" in end for end in ends)
        assert await ask(path) == 200

    with_server(tmp_path, test)


def test_when_all_connections_are_busy_a_further_one_is_told_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 4)

    async def test(_: Controller, path: Path) -> None:
        busy = [await RawClient.connect(path) for _ in range(4)]
        for client in busy:
            client.send(b"GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n")
            await client.reader.readuntil(b"\r\n\r\n")
        client = await RawClient.connect(path)
        status, headers, body = await client.answer()
        assert (status, headers["retry-after"]) == (503, "1")
        jsonschema.validate(body, schemas.load("refusal"))
        busy.pop().close()
        while (status := await ask(path)) == 503:  # until the controller has seen the end
            await asyncio.sleep(0.01)
        assert status == 200
        for client in busy:
            client.close()

    with_server(tmp_path, test)


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BODY_SECONDS_MAX", 0.3)

    async def test(_: Controller, path: Path) -> None:
        for target in ("groups", "verify"):
            client = await RawClient.connect(path)
            head = f"POST /v1/{target} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99"
            client.send(head.encode() + b"\r\n\r\n{")
            status, _, body = await client.answer()
            assert (status, body["error"]["code"]) == (408, "timeout")
            assert await client.read_all() == b""

    with_server(tmp_path, test)


def test_who_does_not_read_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNREAD_SECONDS_MAX", 0.3)

    async def test(controller: Controller, path: Path) -> None:
        before = connections.Connection.timed_out
        client = await RawClient.connect(path)
        client.send(b"GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n")
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        deadline = time.monotonic() + 600
        while connections.Connection.timed_out == before:
            assert time.monotonic() < deadline, "the connection stays"
            controller.events.add("noise", time.time(), text="x" * 65536)
            await asyncio.sleep(0.01)
        client.close()
        assert await ask(path) == 200

    with_server(tmp_path, test)


def test_who_reads_bit_by_bit_is_given_up_and_who_reads_on_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each bit was taken for a sign that the client reads."""
    monkeypatch.setattr(connections, "UNREAD_SECONDS_MAX", 1.0)
    monkeypatch.setattr(connections, "UNREAD_BYTES_MIN", 1 << 18)

    async def read(path: Path, bytes_at_once: int) -> int:
        got, loop = 0, asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            await loop.sock_connect(client, str(path))
            await loop.sock_sendall(client, EVENTS)
            while data := await loop.sock_recv(client, bytes_at_once):
                got += len(data)
                await asyncio.sleep(0.02)
        return got

    async def test(controller: Controller, path: Path) -> None:
        for number in range(100):
            controller.events.add("noise", time.time(), number=number, text="x" * 65536)
        before = connections.Connection.timed_out
        assert await read(path, 1 << 18) > 100 * 65536
        assert connections.Connection.timed_out == before
        with contextlib.suppress(ConnectionResetError):
            assert await read(path, 1 << 10) < 100 * 65536
        assert connections.Connection.timed_out == before + 1

    with_server(tmp_path, test)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("localhost:8080", 200),
        ("controller", 200),
        ("a.localhost", 200),
        (socket.gethostname(), 200),
        ("fabric.example.org.:8080", 200),
        ("rebound.example.com", 403),
        ("rebound.example.com:8080", 403),
        ("127.0.0.1.example.com", 403),
        ("::1.example.com", 403),
    ],
)
def test_a_name_that_may_be_anybodys_is_not_answered(tmp_path: Path, host: str, status: int) -> None:
    async def main() -> None:
        path = tmp_path / "rest.sock"
        async with running() as controller, serving(controller, path, allowed_hosts=["fabric.example.org"]):
            client = await RawClient.connect(path)
            client.send(f"GET /v1/status HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
            got, _, body = await client.answer()
            assert got == status
            if got == 403:
                jsonschema.validate(body, schemas.load("refusal"))
                assert body["error"]["value"] == host
            client.close()

    asyncio.run(main())


def test_a_client_gets_its_time_again_when_the_controller_stood_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS_MAX", 0.5)

    async def test(_: Controller, path: Path) -> None:
        client = await RawClient.connect(path)
        client.send(HALF)
        await asyncio.sleep(0.1)
        time.sleep(2)  # as by SIGSTOP
        await asyncio.sleep(0.1)
        client.send(b"\r\n")
        assert (await client.answer())[0] == 200
        client.close()

    with_server(tmp_path, test)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1/groups/\xc3\xa9 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 1_000_000 + b"\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_in_the_one_form(tmp_path: Path, request_bytes: bytes) -> None:
    async def test(_: Controller, path: Path) -> None:
        client = await RawClient.connect(path)
        client.send(request_bytes)
        if request_bytes.startswith(b"\x16"):
            client.writer.write_eof()
        try:
            status, _, body = await client.answer()
        except asyncio.IncompleteReadError:
            assert request_bytes.startswith(b"\x16"), "half a head and an end is no request"
            return
        assert status == 400
        jsonschema.validate(body, schemas.load("refusal"))
        assert await ask(path) == 200

    with_server(tmp_path, test)


def test_several_requests_go_over_one_connection(tmp_path: Path) -> None:
    async def test(_: Controller, path: Path) -> None:
        client = await RawClient.connect(path)
        client.send((HALF + b"\r\n") * 3)
        for _ in range(3):
            assert (await client.answer())[0] == 200
        await asyncio.sleep(0.1)
        client.send(HALF + b"\r\n")
        assert (await client.answer())[0] == 200
        client.close()

    with_server(tmp_path, test)
