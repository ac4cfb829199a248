"""May the ports of a switch be those of a chip? (p4src/CONTRACT.md, Tofino)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from wormcast.directory.messages import REVISION_LIMITS
from wormcast.discovery.hosts import HostRefused
from wormcast.reconcile.errors import RequestError
from wormcast.store.database import SwitchSpec
from wormcast.wire import CPU_PORT, DEVICE_PORTS_SIZE, RECIRCULATE_PORT, TOFINO_MAX_ROUTE, TOFINO_TREE_PORTS

DEVICE_PORT_MAX = DEVICE_PORTS_SIZE - 1
"""They have nine bits, two of them the pipe."""
PIPE_PORTS = 128
"""Device ports of a pipe."""


def check_device_ports(spec: SwitchSpec, needed: bool) -> None:
    """Raises `RequestError` unless a switch has the map of ports that its program needs, and ports that its program
    serves: every port has a device port of its own, those of the CPU and of recirculation too."""
    if not needed:
        if spec.device_ports:
            raise RequestError(
                422,
                f"switch {spec.id} has device_ports, and its program has no table for them",
                value=spec.id,
                bound="none",
            )
        return
    if spec.ports > TOFINO_TREE_PORTS:
        raise RequestError(
            422,
            f"switch {spec.id} has {spec.ports} ports; TREE routes of its program name ports 0 to "
            f"{TOFINO_TREE_PORTS - 1}",
            value=spec.ports,
            bound=f"1 to {TOFINO_TREE_PORTS}",
        )
    wanted = {*range(spec.ports), RECIRCULATE_PORT, CPU_PORT}
    numbers = f"{', '.join(map(str, range(spec.ports)))}, {RECIRCULATE_PORT} and {CPU_PORT}"
    given = {port for port, _ in spec.device_ports}
    if missing := sorted(wanted - given):
        raise RequestError(
            422, f"port {missing[0]} of switch {spec.id} has no device port", value=missing[0], bound=numbers
        )
    if unknown := sorted(given - wanted):
        raise RequestError(
            422, f"switch {spec.id} has no port {unknown[0]} to map", value=unknown[0], bound=numbers
        )
    for port, device in spec.device_ports:
        if not 0 <= device <= DEVICE_PORT_MAX:
            raise RequestError(
                422,
                f"device port {device} of port {port} of switch {spec.id} is out of range",
                value=device,
                bound=f"0 to {DEVICE_PORT_MAX}",
            )
    device, times = Counter(device for _, device in spec.device_ports).most_common(1)[0]
    if times > 1:
        ports = sorted(port for port, mapped in spec.device_ports if mapped == device)
        raise RequestError(
            422,
            f"ports {ports[0]} and {ports[1]} of switch {spec.id} have one device port, {device}",
            value=device,
            bound="one for each port",
        )


def check_one_pipe(spec: SwitchSpec) -> None:
    """Raises `RequestError` unless all ports of a switch are in the pipe of port 254, as its wormhole mode needs it. The
    CPU's port may be in another: what comes from there is no worm that waits."""
    devices = dict(spec.device_ports)
    if (round_again := devices.get(RECIRCULATE_PORT)) is None:
        return  # as of a state file of before; such a map is refused elsewhere
    pipe = round_again // PIPE_PORTS
    for port, device in sorted(devices.items()):
        if port != CPU_PORT and device // PIPE_PORTS != pipe:
            raise RequestError(
                409,
                f"device port {device} of port {port} of switch {spec.id} is in pipe {device // PIPE_PORTS}, and "
                f"{round_again} of port {RECIRCULATE_PORT} is in pipe {pipe}; in wormhole mode all are in one, since each "
                "pipe knows its own channels alone",
                value=device,
                bound=f"{pipe * PIPE_PORTS} to {pipe * PIPE_PORTS + PIPE_PORTS - 1}, or packet mode",
            )


def check_agent(revision: int, on_chip: bool) -> None:
    """Raises `HostRefused` if the TREE routes of an agent of this revision of agent.proto may be longer than the
    switches take."""
    if on_chip and revision < REVISION_LIMITS:
        raise HostRefused(
            f"the agent does not keep to TREE routes of {TOFINO_MAX_ROUTE} bytes, the most that the switches take; it "
            f"knows revision {revision} of agent.proto",
            value=revision,
            bound=f"{REVISION_LIMITS} or more",
        )


def read_device_ports(mapped: Mapping[str, object]) -> tuple[tuple[int, int], ...]:
    """Device ports by port, as a request or file has them; raises `RequestError`."""
    found = []
    for port, device in mapped.items():
        is_port = port.isascii() and port.isdigit() and len(port) <= 3
        if not is_port or not isinstance(device, int) or isinstance(device, bool):
            raise RequestError(
                422,
                f"device_ports map ports to the chip's numbers, not {port!r} to {device!r}",
                value=port,
                bound=f"0 to {DEVICE_PORT_MAX}",
            )
        found.append((int(port), device))
    return tuple(sorted(found))
