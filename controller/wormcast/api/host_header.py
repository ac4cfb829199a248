"""Which names REST answers to. A page of somebody's site may have its name lead to this machine (DNS rebinding): the
browser then takes this for that site, and says its name in the Host header."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, MutableMapping
from typing import Any

from wormcast.api.body_limit import Application, Receive, Send
from wormcast.api.failures import describe, refuse


class HostCheck:
    """ASGI middleware that refuses requests to names that are not known to be of this machine."""

    def __init__(self, app: Application, names: Iterable[str] = ()) -> None:
        """`names`: further ones, of the operator."""
        self._app = app
        self._names = {name.lower().rstrip(".") for name in (socket.gethostname(), *names)}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        host = dict(scope["headers"]).get(b"host") if scope["type"] == "http" else None
        if host is None or self.knows(name := host.decode("latin-1")):
            await self._app(scope, receive, send)
            return
        bound = "an address, a name without a dot, the name of this machine, or one given with --allow-host"
        body = describe(f"REST does not answer to the name {name!r}", name, bound, code="forbidden")
        await refuse(403, body)(scope, receive, send)

    def knows(self, host: str) -> bool:
        """Whether that is no name of a site: an address, or a name that only this machine or its network has."""
        name, colon, port = host.rpartition(":")
        name = (name if colon and port.isdigit() else host).lower().rstrip(".")
        if name in self._names or ("." not in name and ":" not in name) or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True
