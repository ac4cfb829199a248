"""Where a switch's ports are counted: the interfaces they are, and the switch's page of metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wormcast_planner import PORT_ID_MAX

from wormcast.reconcile.chip_ports import check_device_ports
from wormcast.reconcile.errors import RequestError
from wormcast.store.database import SwitchSpec

INTERFACE_NAME_BYTES_MAX = 15
PAGE_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253}):[0-9]{1,5}")


def check_port_sources(spec: SwitchSpec, has_device_ports: bool = False) -> None:
    """Raises `RequestError` unless the ports of a switch can be counted there, and are known by the numbers of its chip
    where its program wants them."""
    check_device_ports(spec, has_device_ports)
    for number, name in spec.interfaces:
        if not 0 <= number < spec.ports:
            raise RequestError(
                422, f"switch {spec.id} has no port {number}", value=number, bound=f"0 to {spec.ports - 1}"
            )
        if not 1 <= len(name.encode()) <= INTERFACE_NAME_BYTES_MAX or any(c in name for c in "/\0 \t\n"):
            raise RequestError(
                422,
                f"{name!r} is not the name of an interface",
                value=name,
                bound=f"1 to {INTERFACE_NAME_BYTES_MAX} bytes without / and spaces",
            )
    if spec.metrics is not None and not PAGE_ADDRESS.fullmatch(spec.metrics):
        raise RequestError(
            422, f"metrics address {spec.metrics!r} is not valid", value=spec.metrics, bound="host:port"
        )


def read_interfaces(named: Mapping[str, object]) -> tuple[tuple[int, str], ...]:
    """Interfaces by port, as a request or file has them; raises `RequestError`."""
    found = []
    for port, name in named.items():
        if not (port.isascii() and port.isdigit() and len(port) <= 3) or not isinstance(name, str):
            raise RequestError(
                422,
                f"interfaces map ports to names, not {port!r} to {name!r}",
                value=port,
                bound=f"0 to {PORT_ID_MAX}",
            )
        found.append((int(port), name))
    return tuple(sorted(found))
