"""gRPC channels to switches on Unix sockets.

gRPC's C core sends the percent-encoded path as `:authority`, which is no valid
authority (RFC 3986 §3.2) and servers other than its own refuse. The remedy is a
channel option, and finsy takes none; so the function it opens channels with is
replaced by one that adds it.
"""

from __future__ import annotations

from typing import Any

import finsy.p4client
import grpc

_open_channel = finsy.p4client.grpc_channel


def _open_with_authority(
    address: str, *, credentials: Any = None, options: Any = None, client_type: str = "GRPC"
) -> Any:
    if not address.startswith("unix:") or credentials is not None:
        return _open_channel(address, credentials=credentials, options=options, client_type=client_type)
    native = [*(options.to_native() if options is not None else []), ("grpc.default_authority", "localhost")]
    return grpc.aio.insecure_channel(address, options=native)


def allow_unix_sockets() -> None:
    """Makes finsy reach any server on a Unix socket."""
    finsy.p4client.grpc_channel = _open_with_authority
