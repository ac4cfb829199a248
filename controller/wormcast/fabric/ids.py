"""Ids of the controller, and the data plane's constants as it uses them (p4src/CONTRACT.md)."""

from __future__ import annotations

from typing import NewType

from wormcast import wire

SwitchId = NewType("SwitchId", int)
"""Identifies a switch; non-negative."""

PortId = NewType("PortId", int)
"""A port of a switch, 0..253."""

HostId = NewType("HostId", int)
"""Identifies a host in the fabric, 0..65534 (0xFFFF is the source of class D worms)."""

GroupId = NewType("GroupId", int)
"""Identifies a group, 0..65535 without 255."""

Epoch = NewType("Epoch", int)
"""Number of an agent plan; grows with every change, 0 means none."""

Mgid = NewType("Mgid", int)
"""Multicast group id of a switch's replication engine."""

PORT_MAX = wire.PORT_MAX
HOST_ID_MAX = wire.CLASS_D_SOURCE - 1
GROUP_ID_MAX = 0xFFFF
GROUP_BROADCAST = GroupId(wire.GROUP_BROADCAST)

MGID_BROADCAST = Mgid(wire.MGID_BROADCAST)
MGID_TREE_ALL = Mgid(wire.MGID_TREE_ALL)
MGID_TREE_SET = wire.MGID_TREE_SET
MGID_GROUP_FIRST = wire.MGID_GROUP_FIRST
MGID_GROUP_LAST = wire.MGID_GROUP_LAST
TREE_SET_PORTS = 8
"""Switches with at most this many ports get one replication group for each set of ports."""

ROLE_LINK = int(wire.Role.SWITCH)
ROLE_HOST = int(wire.Role.HOST)

CPU_PORT = PortId(wire.CPU_PORT)
"""A packet-out to it comes back as a packet-in."""

LLDP_ETHERTYPE = wire.ETHERTYPE_LLDP
