"""N × TCP: bytes from one host to many over a connection each, and a byte back when a receiver has written all.

`tcp.py send FILE|- ADDRESS …`, `tcp.py receive FILE|-`.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

PORT = 5_001
STEP = 1 << 20


def send(path: str, addresses: list[str]) -> None:
    """All at once. A file goes by sendfile, a pipe by one copy to each."""
    sockets = [socket.create_connection((address, PORT)) for address in addresses]
    if path == "-":
        queue = sys.stdin.buffer
        while data := queue.read(STEP):
            in_parallel([lambda one=one: one.sendall(data) for one in sockets])
        in_parallel([lambda one=one: end(one) for one in sockets])
        return

    def whole(one: socket.socket) -> None:
        with Path(path).open("rb") as file:
            one.sendfile(file)
        end(one)

    in_parallel([lambda one=one: whole(one) for one in sockets])


def end(one: socket.socket) -> None:
    one.shutdown(socket.SHUT_WR)
    if one.recv(1) != b"y":
        os._exit(1)


def in_parallel(calls: list) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def receive(path: str) -> None:
    """One connection."""
    with socket.create_server(("", PORT)) as server:
        one, _ = server.accept()
    out = sys.stdout.fileno() if path == "-" else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    buffer = memoryview(bytearray(STEP))
    while taken := one.recv_into(buffer):
        done = 0
        while done < taken:
            done += os.write(out, buffer[done:taken])
    os.close(out)
    one.sendall(b"y")


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], sys.argv[3:])
    else:
        receive(sys.argv[2])
