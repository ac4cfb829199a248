"""Addresses of P4Runtime servers: what can be one, and who may name which."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable
from pathlib import Path

from wormcast.reconcile.errors import RequestError
from wormcast.store.database import SwitchSpec

ADDRESS_BOUND = "host:port or unix:/path"
PATH_BYTES_MAX = 107
"""`sun_path` of a Unix socket's address, with its end."""

# No colon in a name: what gRPC takes for a scheme (unix:, dns:, vsock:) begins with one.
_HOST_AND_PORT = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\]):([0-9]{1,5})")


def check_address(address: str) -> None:
    """Raises `RequestError` unless a P4Runtime server can listen there."""
    if address.startswith("unix:/"):
        _check_path(address, address.removeprefix("unix:"))
        return
    match = _HOST_AND_PORT.fullmatch(address)
    if match is None or not 0 < int(match[1]) < 1 << 16:
        raise RequestError(
            422, f"switch address {address!r} is not valid", value=address, bound=ADDRESS_BOUND
        )


def refuse_paths(specs: Iterable[SwitchSpec]) -> None:
    """Raises `RequestError` if one is a path of this machine: a client elsewhere may not have us open those."""
    for spec in specs:
        if spec.address.startswith("unix:"):
            raise RequestError(
                403,
                "only clients on the controller's machine may name Unix sockets",
                value=spec.address,
                bound="host:port",
                code="forbidden",
            )


def _check_path(address: str, path: str) -> None:
    name = path.encode(errors="replace")
    if len(name) > PATH_BYTES_MAX or not path.isprintable():
        raise RequestError(
            422,
            f"switch address {address!r} is not the path of a Unix socket",
            value=address,
            bound=f"{PATH_BYTES_MAX} bytes without control characters",
        )
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return  # a switch that starts later makes it
    except OSError as error:
        raise RequestError(
            422,
            f"switch address {address!r} cannot be reached: {error.strerror}",
            value=address,
            bound=ADDRESS_BOUND,
        ) from None
    if not stat.S_ISSOCK(mode):
        raise RequestError(
            422,
            f"switch address {address!r} is not a socket",
            value=address,
            bound="the path of a Unix socket, or a path that does not exist yet",
        )
