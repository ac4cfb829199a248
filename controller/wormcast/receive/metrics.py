"""The page of metrics of the service, over HTTP."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn

from wormcast.api.connections import IDLE_SECONDS_MAX, Connection
from wormcast.decimal import read_decimal
from wormcast.metrics_page import MEDIA_TYPE
from wormcast.sockets import CannotListen, SocketAccess, check_address, listen_at

STOP_TIMEOUT_S = 1
_PATHS = ("/", "/metrics")

Message = dict[str, Any]


def listen(where: str) -> socket.socket:
    """A socket that listens at PORT of this machine alone, HOST:PORT or unix:PATH. Raises `CannotListen`."""
    if where.startswith("unix:"):
        return listen_at(Path(where.removeprefix("unix:")), SocketAccess())
    address = f"127.0.0.1:{where}" if read_decimal(where) is not None else where
    check_address(address)
    host, _, port = address.rpartition(":")
    family, _, _, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    try:
        return socket.create_server(place[:2], family=family)
    except OSError as error:
        raise CannotListen(error.strerror or str(error)) from error


@contextlib.contextmanager
def serving(listener: socket.socket, page: Callable[[], str]) -> Iterator[None]:
    """Serves the page meanwhile, from a thread of its own."""

    async def answer(
        scope: Message,
        _receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        found = scope["path"] in _PATHS and scope["method"] in ("GET", "HEAD")
        text = page() if found else "GET /metrics is all there is\n"
        headers = [(b"content-type", (MEDIA_TYPE if found else "text/plain").encode())]
        await send({"type": "http.response.start", "status": 200 if found else 404, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    config = uvicorn.Config(
        answer,
        log_level="error",
        access_log=False,
        lifespan="off",
        http=Connection,
        ws="none",
        timeout_keep_alive=IDLE_SECONDS_MAX,
        timeout_graceful_shutdown=STOP_TIMEOUT_S,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
