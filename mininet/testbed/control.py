"""From another terminal: start and stop what a running fabric is made of, cut and mend its links.

Inside the fabric a thread serves a Unix socket; from outside its path leads through the first process's root. A
request is one JSON object, as is the answer; each has a connection of its own.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wormcast.mininet.links import Link
from wormcast.mininet.parts import PartError, Parts
from wormcast.mininet.sandbox import Running

if TYPE_CHECKING:
    from wormcast.mininet.fabric import Fabric

REQUEST_BYTES_MAX = 1 << 20


# --- inside -------------------------------------------------------------------------------


def serve(fabric: Fabric) -> None:
    """Serve requests from now on, one after the other, on a thread."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(fabric.describe()["control"])
    listener.listen()
    threading.Thread(target=_serve, args=(listener, fabric), name="control", daemon=True).start()


def _serve(listener: socket.socket, fabric: Fabric) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                connection.settimeout(10.0)  # only against one that says nothing
                answer = carry_out(fabric, json.loads(_read(connection)))
                connection.sendall(json.dumps(answer).encode())
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                print(f"wormcast: a request from outside: {error}", file=sys.stderr, flush=True)


def carry_out(fabric: Fabric, request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked for, and notify whoever looks at the fabric; the answer names what it was done to, or
    says why not."""
    from wormcast.mininet.fabric import FabricError

    parts = Parts(fabric)
    does: dict[str, Callable[[Sequence[str]], Sequence[str | Link]]] = {
        "start": parts.start,
        "stop": parts.stop,
        "cut": parts.cut,
        "mend": parts.mend,
    }
    name, given = request["do"], request["names"]
    try:
        with fabric.changing:
            done = does[name](given)
    except PartError as error:
        return {"error": {"message": str(error), **error.fields}}
    except (FabricError, OSError) as error:
        return {"error": {"message": str(error), "code": "refused"}}
    said = ", ".join(one if isinstance(one, str) else one.name for one in done)
    print(f"wormcast: {DONE[name]} from another terminal: {said}", file=sys.stderr, flush=True)
    return {DONE[name]: [one if isinstance(one, str) else _link(one) for one in done]}


DONE = {"start": "started", "stop": "stopped", "cut": "cut", "mend": "mended"}
"""What was done, as messages and answers call it."""


def _link(link: Link) -> dict[str, Any]:
    far: dict[str, Any]
    if link.host is None:
        far = {"b": f"s{link.far_switch}", "b_port": link.far_port}
    else:
        far = {"b": f"h{link.host}"}
    return {"a": f"s{link.switch}", "a_port": link.port, **far}


# --- from outside -------------------------------------------------------------------------


def ask(fabric: Running, state: dict[str, Any], do: str, names: Sequence[str]) -> dict[str, Any]:
    """Have a fabric do it; the answer of `carry_out`. `state`: what it wrote of itself. Raises OSError."""
    path = Path(f"/proc/{fabric.first_pid}/root") / state["control"].lstrip("/")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(json.dumps({"do": do, "names": list(names)}).encode())
        connection.shutdown(socket.SHUT_WR)
        answer = _read(connection)
    if not answer:
        raise ConnectionResetError(os.strerror(104), str(path))
    found: dict[str, Any] = json.loads(answer)
    return found


def _read(connection: socket.socket) -> bytes:
    text = b""
    while len(text) <= REQUEST_BYTES_MAX and (more := connection.recv(65536)):
        text += more
    return text
