"""Ids. Their bounds are in `wormcast_planner`, which has them from `wire/src/ids.rs`."""

from __future__ import annotations

from typing import NewType

from wormcast import wire

SwitchId = NewType("SwitchId", int)
"""Identifies a switch, 0 to SWITCH_ID_MAX."""

PortId = NewType("PortId", int)
"""A port of a switch, 0 to PORT_ID_MAX."""

HostId = NewType("HostId", int)
"""Identifies a host in the fabric, 0 to HOST_ID_MAX."""

GroupId = NewType("GroupId", int)
"""Identifies a group, 0 to GROUP_ID_MAX without GROUP_BROADCAST."""

Epoch = NewType("Epoch", int)
"""Number of an agent plan; grows with every change, 0 means none."""

Mgid = NewType("Mgid", int)
"""Multicast group id of a switch's replication engine."""

CPU_PORT = PortId(wire.CPU_PORT)
"""A packet-out to it comes back as a packet-in."""

LLDP_ETHERTYPE = wire.ETHERTYPE_LLDP
IPV4_ETHERTYPE = wire.ETHERTYPE_IPV4
