"""Table entries of one switch, named as in p4src/CONTRACT.md."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from wormcast.fabric.groups import Group, fabric_number
from wormcast.fabric.ids import (
    MGID_TREE_SET,
    ROLE_HOST,
    ROLE_LINK,
    TREE_SET_PORTS,
    GroupId,
    Mgid,
    PortId,
)
from wormcast.fabric.state import TableDefault, TableEntry

TABLE_PORTS = "ingress.ports"
TABLE_PORT_ROLES = "ingress.port_roles"
TABLE_TREE_SETS = "ingress.tree_sets"
TABLE_GROUPS = "ingress.groups"
TABLE_CLASS_D = "ingress.class_d"
TABLE_EDGE_PORTS = "egress.edge_ports"

TABLES_WITH_DEFAULT = (TABLE_TREE_SETS,)

CLASS_D_MASK = 0xF00000FF
"""8-bit mode: the class D prefix and the low 8 bits of the address (WORM §8.1)."""
CLASS_D_PREFIX = 0xE0000000
CLASS_D_PRIORITY = 10


def port_entries(ports: int, link_ports: Iterable[PortId], host_ports: Iterable[PortId]) -> list[TableEntry]:
    """What a switch knows of its ports: which exist, which lead to a switch, which to a host."""
    entries = [TableEntry(TABLE_PORTS, (("port", port),), "ingress.port_known") for port in range(ports)]
    for role, members in ((ROLE_LINK, link_ports), (ROLE_HOST, host_ports)):
        entries += [
            TableEntry(
                TABLE_PORT_ROLES,
                (("standard_metadata.ingress_port", port),),
                "ingress.role",
                (("role", role),),
            )
            for port in sorted(members)
        ]
    entries += [
        TableEntry(TABLE_EDGE_PORTS, (("standard_metadata.egress_port", port),), "egress.to_host")
        for port in sorted(host_ports)
    ]
    return entries


def tree_set_entries(ports: int) -> list[TableEntry]:
    """Maps each set of branch ports to its replication group, where the switch has few enough ports."""
    if ports > TREE_SET_PORTS:
        return []
    return [
        TableEntry(
            TABLE_TREE_SETS, (("port_set", bits),), "ingress.replicate", (("mgid", MGID_TREE_SET + bits),)
        )
        for bits in range(1, 1 << ports)
    ]


def tree_set_default(ports: int) -> TableDefault:
    """Sets of ports without a replication group go to every port and are filtered at egress by those there are."""
    mask = (1 << ports) - 1
    low = mask & (1 << 128) - 1
    return TableDefault(TABLE_TREE_SETS, "ingress.replicate_filtered", (("high", mask >> 128), ("low", low)))


def group_entry(number: GroupId, mgid: Mgid) -> TableEntry:
    """Group number to replication group."""
    return TableEntry(TABLE_GROUPS, (("group", number),), "ingress.replicate", (("mgid", mgid),))


def class_d_entries(groups: Iterable[Group]) -> list[TableEntry]:
    """Class D addresses to group numbers in 8-bit mode; addresses that share low 8 bits share an entry."""
    numbers = sorted({fabric_number(g.class_d) for g in groups if g.class_d is not None})
    return [
        TableEntry(
            TABLE_CLASS_D,
            (("hdr.ipv4.dst", (CLASS_D_PREFIX | number, CLASS_D_MASK)),),
            "ingress.enter_group",
            (("group", number),),
            CLASS_D_PRIORITY,
        )
        for number in numbers
    ]


def class_d_group(address: ipaddress.IPv4Address, entries: Iterable[TableEntry]) -> GroupId | None:
    """The group number a packet to this address gets: the oracle of the tests and of `/v1/groups`."""
    for entry in entries:
        if entry.table != TABLE_CLASS_D:
            continue
        (_, value) = entry.match[0]
        assert isinstance(value, tuple)
        if int(address) & value[1] == value[0]:
            return GroupId(entry.parameters[0][1])
    return None
