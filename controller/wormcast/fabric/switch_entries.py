"""Table entries of one switch, named as in p4src/CONTRACT.md."""

from __future__ import annotations

from collections.abc import Iterable

from wormcast.fabric.class_d import ClassDNumbers
from wormcast.fabric.groups import Group
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


def class_d_entries(groups: Iterable[Group], numbers: ClassDNumbers) -> list[TableEntry]:
    """Class D addresses to group numbers; addresses that share low 8 bits may share an entry."""
    addresses = [group.class_d for group in groups if group.class_d is not None]
    return [
        TableEntry(
            TABLE_CLASS_D,
            (("hdr.ipv4.dst", (match.value, match.mask)),),
            "ingress.enter_group",
            (("group", match.number),),
            match.priority,
        )
        for match in numbers.matches(addresses)
    ]
