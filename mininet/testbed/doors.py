"""Doors into a sandbox: what listens on the machine's own network and leads to a server inside.

Whoever starts the fabric opens the listening sockets before there is a sandbox. A socket stays in the network
namespace it was made in, so what comes to it is from outside, while the connection that answers it is made inside.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DOORS = "WORMCAST_SANDBOX_DOORS"
CONNECTIONS_MAX = 256
"""Through one door at a time; those beyond it are closed at once."""
CHUNK_BYTES = 65536
PORT_MAX = 65535


class DoorError(ValueError):
    """A door cannot be opened; the text says where and why."""


@dataclass(frozen=True)
class Door:
    """A listening socket by its descriptor, and what it is for: "rest" or the name of a switch."""

    name: str
    descriptor: int


def parse_address(option: str, text: str) -> tuple[str, int]:
    """Host and port of "127.0.0.1:8080", ":8080" or "8080", which mean 127.0.0.1. Raises `DoorError`."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) <= PORT_MAX:
        raise DoorError(f"{option} {text!r} is not ADDRESS:PORT with a port from 1 to {PORT_MAX}")
    return host.strip("[]") or "127.0.0.1", int(port)


def show(host: str, port: int) -> str:
    """An address as a URL of it has it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def open_doors(rest: str | None, p4runtime: str | None, switches: Sequence[str]) -> list[Door]:
    """Listening sockets for REST at `rest`, and for each switch in turn at `p4runtime` and the ports above.

    Raises `DoorError`, also where a port is taken.
    """
    wanted = [] if rest is None else [("rest", *parse_address("--rest", rest))]
    if p4runtime is not None:
        host, first = parse_address("--p4runtime", p4runtime)
        if first + len(switches) - 1 > PORT_MAX:
            raise DoorError(
                f"--p4runtime {p4runtime!r}: {len(switches)} switches need ports up to {first + len(switches) - 1}"
            )
        wanted += [(name, host, first + n) for n, name in enumerate(switches)]
    doors = []
    for name, host, port in wanted:
        try:
            listener = socket.create_server(
                (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
            )
        except OSError as error:
            what = "REST" if name == "rest" else f"P4Runtime of {name}"
            raise DoorError(
                f"{what} cannot listen at {show(host, port)}: {str(error.strerror).partition(' (')[0]}"
            ) from None
        doors.append(Door(name, listener.detach()))
    return doors


def mark(doors: Sequence[Door]) -> dict[str, str]:
    """What tells the inside of its doors: a variable of its environment."""
    return {DOORS: json.dumps({door.name: door.descriptor for door in doors})}


def serve(targets: Mapping[str, str]) -> None:
    """Inside: connect what comes through each door with its target, "unix:/path" or "host:port", on a thread."""
    doors = json.loads(os.environ.pop(DOORS, "{}"))
    listeners = []
    for name, descriptor in doors.items():
        os.set_inheritable(descriptor, False)
        listeners.append((socket.socket(fileno=descriptor), targets[name]))
    if listeners:
        threading.Thread(target=lambda: asyncio.run(_serve(listeners)), name="doors", daemon=True).start()


async def _serve(listeners: Sequence[tuple[socket.socket, str]]) -> None:
    servers = [await _door(listener, target) for listener, target in listeners]
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def _door(listener: socket.socket, target: str) -> asyncio.Server:
    open_now = 0

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        if open_now >= CONNECTIONS_MAX:
            writer.close()
            return
        open_now += 1
        try:
            await _join(reader, writer, target)
        finally:
            open_now -= 1

    return await asyncio.start_server(accept, sock=listener)


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str) -> None:
    try:
        if target.startswith("unix:"):
            inner = await asyncio.open_unix_connection(target.removeprefix("unix:"))
        else:
            host, _, port = target.rpartition(":")
            inner = await asyncio.open_connection(host, int(port))
    except OSError:  # not there, or not yet: as if nobody listened
        writer.close()
        return
    await asyncio.gather(_pump(reader, inner[1]), _pump(inner[0], writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All that comes, to its end; an end of one direction leaves the other open."""
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
    except OSError:
        with contextlib.suppress(OSError):
            writer.close()
