"""What the switches of a network must hold, for a controller that programs them itself."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from wormcast_planner import (
    CLASS_D_MODES,
    ClassDNumbers,
    MulticastGroup,
    Planner,
    SwitchState,
    TableDefault,
    TableEntry,
    assign_class_d,
    difference,
)

from wormcast import routing
from wormcast.network.groups import Group, GroupError, Parameters, check_group_id, parse_class_d
from wormcast.network.ids import GroupId, HostId, PortId, SwitchId
from wormcast.network.topology import Host, Link, Switch, Topology

SCHEME = "switch"
"""Switches copy every scheme's groups alike."""

Json = dict[str, Any]


def switch_plan(topology: Mapping[str, Any], groups: list[Any], mode: str, routes: Mapping[str, Any]) -> Json:
    """The plan file: entries, replication groups and default actions of each switch, with the names of the P4Info.

    Raises `RoutingError` for the topology and `GroupError` for the groups.
    """
    if mode not in CLASS_D_MODES:
        raise GroupError(f"class D mode {mode!r}", value=mode, choices=CLASS_D_MODES)
    network = read_network(routing.check(topology, allow_split=True)) if topology["switches"] else Topology()
    wanted, addresses = _groups(groups, {host.id for host in network.hosts})
    numbers = assign_class_d(mode, wanted, ClassDNumbers(mode))
    state = Planner(**routes).plan(network, network, wanted, frozenset(), frozenset(), {}, numbers)
    return {
        "switches": [{"id": switch, **_show(held)} for switch, held in sorted(state.switches.items())],
        "groups": [
            {
                "id": group.id,
                "class_d": str(address),
                "number": numbers.number(address),
                "members": list(group.members),
            }
            for group, address in zip(wanted, addresses, strict=True)
        ],
        "failures": list(state.failures),
    }


def read_network(file: Json) -> Topology:
    """A topology file as the planner takes it."""
    return Topology(
        tuple(Switch(SwitchId(s["id"]), s["ports"]) for s in file["switches"]),
        tuple(
            Host(HostId(h["id"]), SwitchId(h["switch"]), PortId(h["port"]), h.get("transit", True))
            for h in file["hosts"]
        ),
        tuple(
            Link.between(
                (SwitchId(link["a"]), PortId(link["a_port"])), (SwitchId(link["b"]), PortId(link["b_port"]))
            )
            for link in file["links"]
        ),
    )


def _groups(given: list[Any], hosts: set[HostId]) -> tuple[list[Group], list[ipaddress.IPv4Address]]:
    """Groups and their addresses; groups without an id take the lowest free ones, in the order given."""
    if not all(isinstance(group, dict) for group in given):
        raise GroupError("groups are objects with members and class_d", value=given)
    taken = {check_group_id(_integer("id", g["id"])) for g in given if g.get("id") is not None}
    free = (number for number in range(len(given) + len(taken) + 2) if number not in taken)
    groups: dict[GroupId, Group] = {}
    addresses: list[ipaddress.IPv4Address] = []
    for group in given:
        if unknown := set(group) - {"id", "members", "class_d"}:
            raise GroupError(f"unknown field {min(unknown)[:40]!r}", choices=["id", "members", "class_d"])
        found = group.get("id")
        number = check_group_id(next(n for n in free if n != 255) if found is None else found)
        if number in groups:
            raise GroupError(f"group {number} is given twice", value=number)
        groups[number] = Group(
            number,
            f"group-{number}",
            SCHEME,
            _members(group.get("members"), hosts),
            Parameters(),
            address := parse_class_d(str(group.get("class_d"))),
        )
        addresses.append(address)
    return list(groups.values()), addresses


def _members(given: Any, hosts: set[HostId]) -> tuple[HostId, ...]:
    if not isinstance(given, list):
        raise GroupError("members are a list of hosts", value=given)
    members = {HostId(_integer("member", member)) for member in given}
    if missing := members - hosts:
        raise GroupError(f"there is no host {min(missing)}", value=min(missing), choices=sorted(hosts)[:64])
    return tuple(sorted(members))


def _integer(what: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise GroupError(f"{what} is {value!r}", value=value, bound="an integer")
    return value


def _show(state: SwitchState) -> Json:
    """All that leads from an empty switch to this state."""
    shown: Json = {"entries": [], "multicast": [], "defaults": []}
    for update in difference(state, SwitchState()):
        entity = update.entity
        if isinstance(entity, MulticastGroup):
            shown["multicast"].append(
                {"mgid": entity.mgid, "ports": sorted(entity.ports), "replicas": _replicas(entity)}
            )
        elif isinstance(entity, TableDefault):
            parameters = dict(entity.parameters)
            shown["defaults"].append(
                {"table": entity.table, "action": entity.action, "parameters": parameters}
            )
        elif isinstance(entity, TableEntry):
            shown["entries"].append(_entry(entity))
    return shown


def _replicas(group: MulticastGroup) -> list[Json]:
    fields = ("port", "instance", "backups")
    return [dict(zip(fields, replica, strict=True)) for replica in group.replicas]


def _entry(entry: TableEntry) -> Json:
    matches = {
        field: {"value": found[0], "mask": found[1]} if isinstance(found, tuple) else found
        for field, found in entry.match
    }
    return {
        "table": entry.table,
        "match": matches,
        "priority": entry.priority,
        "action": entry.action,
        "parameters": dict(entry.parameters),
    }
