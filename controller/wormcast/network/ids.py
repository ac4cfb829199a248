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

CPU_PORT = PortId(wire.CPU_PORT)
"""A packet-out to it comes back as a packet-in."""

LLDP_ETHERTYPE = wire.ETHERTYPE_LLDP
