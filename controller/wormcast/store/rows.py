"""Rows of the state file: what is in the network, as SQLite has it, and read back with care."""

from __future__ import annotations

import ipaddress
import json
import sqlite3
from dataclasses import dataclass, field

from wormcast_planner import GROUP_ID_MAX, HOST_ID_MAX, PORT_ID_MAX, SWITCH_ID_MAX, ClassDNumbers

from wormcast.discovery.hosts import HostRecord, check_name
from wormcast.guard.state import Guard
from wormcast.network.groups import Group, Parameters, parse_scheme
from wormcast.network.ids import GroupId, HostId, PortId, SwitchId
from wormcast.network.routing import Routing
from wormcast.network.topology import Grid, Link
from wormcast.wormhole.switching import Switching

SECRET_OF = "secret of host "
"""Before the name of a host, in the settings."""
DEVICE_MAX = (1 << 64) - 1
"""P4Runtime's device ids have 64 bits without a sign, SQLite's integers 64 with one."""
GATHER_EPOCHS_END = (1 << 32) - 1
"""Epochs of gathered ACKs are below: they have 32 bits."""


@dataclass(frozen=True, order=True)
class SwitchSpec:
    """How to reach a switch and what it has."""

    id: SwitchId
    address: str
    """`host:port` or `unix:/path` of its P4Runtime server."""
    device_id: int
    ports: int
    interfaces: tuple[tuple[int, str], ...] = field(default=(), compare=False)
    """Port and name of the interfaces its ports are, where they are in the controller's network namespace."""
    metrics: str | None = field(default=None, compare=False)
    """`host:port` of its page of metrics, if it is wormcast-switch and has one."""
    device_ports: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    """Port and device port, where it is a chip that has numbers of its own for its ports."""


def within(what: str, value: object, low: int, high: int) -> int:
    """An integer within bounds. Raises `ValueError`."""
    if not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{what} is {value!r}; possible: {low} to {high}")
    return value


def as_text(what: str, value: object) -> str:
    """A text. Raises `ValueError`."""
    if not isinstance(value, str):
        raise ValueError(f"{what} is {value!r}, not text")
    return value


def read_switch(number: object, address: object, device: object, ports: object) -> SwitchSpec:
    """A switch from its row. Raises `ValueError` for what cannot be."""
    return SwitchSpec(
        SwitchId(within("id", number, 0, SWITCH_ID_MAX)),
        as_text("address", address),
        within("device_id", device, -1 << 63, DEVICE_MAX) & DEVICE_MAX,
        within("ports", ports, 1, PORT_ID_MAX + 1),
    )


def read_link(a: object, a_port: object, b: object, b_port: object) -> Link:
    """A link from its row. Raises `ValueError` for what cannot be."""
    return Link(
        SwitchId(within("a", a, 0, SWITCH_ID_MAX)),
        PortId(within("a_port", a_port, 0, PORT_ID_MAX)),
        SwitchId(within("b", b, 0, SWITCH_ID_MAX)),
        PortId(within("b_port", b_port, 0, PORT_ID_MAX)),
    )


def port_sources_text(spec: SwitchSpec) -> str:
    """What is known of a switch's ports, as the file has it."""
    return json.dumps(
        {"interfaces": spec.interfaces, "metrics": spec.metrics, "device_ports": spec.device_ports}
    )


def read_port_sources(
    text: str,
) -> tuple[tuple[tuple[int, str], ...], str | None, tuple[tuple[int, int], ...]]:
    """The same read back: interfaces, metrics, device ports."""
    value = json.loads(text)
    metrics = None if value["metrics"] is None else str(value["metrics"])
    interfaces = tuple((int(port), str(name)) for port, name in value["interfaces"])
    # Files of versions before have none.
    devices = tuple((int(port), int(device)) for port, device in value.get("device_ports", ()))
    return interfaces, metrics, devices


def read_suspected(text: str) -> tuple[list[SwitchId], list[Link]]:
    value = json.loads(text)
    switches = [SwitchId(within("switch", switch, 0, SWITCH_ID_MAX)) for switch in value["switches"]]
    return switches, [read_link(*link) for link in value["links"]]


def read_gather_epochs(text: str) -> int:
    """Epochs below it may have been taken."""
    return within("gather_epochs", int(text), 0, GATHER_EPOCHS_END)


def read_grid(text: str) -> Grid:
    return Grid.from_json(json.loads(text))


def read_routing(text: str) -> Routing:
    return Routing.from_json(json.loads(text))


def read_switching(text: str) -> Switching:
    """How switches pass worms on."""
    return Switching.from_json(json.loads(text))


def read_guard(text: str) -> Guard:
    """What is asked of the guard."""
    return Guard.from_json(json.loads(text))


def read_secret(name: str, value: str) -> tuple[str, bytes]:
    """The secret of the agent of that name."""
    return name.removeprefix(SECRET_OF), bytes.fromhex(value)


def read_host_ids(text: str) -> frozenset[HostId]:
    return frozenset(HostId(within("host", host, 0, HOST_ID_MAX)) for host in json.loads(text))


def read_times(text: str) -> dict[HostId, float]:
    """Of hosts, in seconds since 1970; `datetime` takes four digits of years."""
    times = json.loads(text)
    return {
        HostId(int(host)): float(within("time", int(at), 0, 253_402_300_799)) for host, at in times.items()
    }


def read_host(
    number: object,
    name: object,
    mac: object,
    mtu: object,
    version: object,
    agent: object,
    declared: object,
    switch: object,
    port: object,
    silent: object,
) -> HostRecord:
    """A host from its row. Raises `ValueError` for what cannot be."""
    check_name(as_text("name", name))
    if not isinstance(mac, bytes) or len(mac) not in (0, 6):
        raise ValueError(f"mac is {mac!r}; possible: 6 bytes")
    place = None
    if switch is not None:
        place = (
            SwitchId(within("switch", switch, 0, SWITCH_ID_MAX)),
            PortId(within("port", port, 0, PORT_ID_MAX)),
        )
    return HostRecord(
        HostId(within("id", number, 0, HOST_ID_MAX)),
        as_text("name", name),
        mac,
        within("mtu_bytes", mtu, 0, (1 << 32) - 1),
        as_text("version", version),
        bool(agent),
        bool(declared),
        place,
        silent=as_text("silent", silent),
    )


def read_group(
    number: object,
    name: object,
    scheme: str,
    members: str,
    parameters: str,
    class_d: str | None,
    gather: object,
) -> Group:
    """A group from its row. Raises `ValueError` for what cannot be."""
    return Group(
        GroupId(within("id", number, 0, GROUP_ID_MAX)),
        as_text("name", name),
        parse_scheme(scheme),
        tuple(HostId(within("a member", m, 0, HOST_ID_MAX)) for m in json.loads(members)),
        Parameters.from_json(json.loads(parameters)),
        None if class_d is None else ipaddress.IPv4Address(class_d),
        gather=bool(within("gather", gather, 0, 1)),
    )


def read_class_d_number(address: str, number: object) -> tuple[ipaddress.IPv4Address, GroupId]:
    return ipaddress.IPv4Address(address), GroupId(within("number", number, 0, GROUP_ID_MAX))


def signed(device: int) -> int:
    """A device id as SQLite keeps it."""
    return device - (1 << 64) if device >= 1 << 63 else device


def put_class_d(sql: sqlite3.Connection, class_d: ClassDNumbers) -> None:
    """Replaces mode and numbers of class D addresses."""
    sql.execute("INSERT OR REPLACE INTO settings VALUES ('class_d', ?)", (class_d.mode,))
    kept: dict[str, int] = dict(sql.execute("SELECT address, number FROM class_d").fetchall())
    wanted = {str(address): int(number) for address, number in class_d.assigned}
    sql.executemany("DELETE FROM class_d WHERE address=?", [(a,) for a in kept.keys() - wanted.keys()])
    changed = [(a, n) for a, n in wanted.items() if kept.get(a) != n]
    sql.executemany("INSERT OR REPLACE INTO class_d VALUES (?, ?)", changed)


def group_row(group: Group) -> tuple[object, ...]:
    return (
        group.id,
        group.name,
        group.scheme,
        json.dumps(group.members),
        json.dumps(group.parameters.to_json()),
        None if group.class_d is None else str(group.class_d),
        group.gather,
    )


def host_row(host: HostRecord, present: bool) -> tuple[object, ...]:
    switch, port = (None, None) if host.place is None else host.place
    return (
        host.id,
        host.name,
        host.mac,
        host.mtu_bytes,
        host.version,
        host.agent,
        host.declared,
        switch,
        port,
        present,
        host.silent,
    )
