"""Ids. Their bounds are in `wormcast_planner`, which has them from `wire/src/ids.rs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NewType

from wormcast import wire

Epoch = NewType("Epoch", int)
"""Number of an agent plan; grows with every change, 0 means none."""

if TYPE_CHECKING:
    # Those of the planner, which hands them out; at run time it has integers.
    from wormcast_planner import GroupId as GroupId
    from wormcast_planner import HostId as HostId
    from wormcast_planner import Mgid as Mgid
    from wormcast_planner import PortId as PortId
    from wormcast_planner import SwitchId as SwitchId
else:
    SwitchId = NewType("SwitchId", int)
    PortId = NewType("PortId", int)
    HostId = NewType("HostId", int)
    GroupId = NewType("GroupId", int)
    Mgid = NewType("Mgid", int)

CPU_PORT = PortId(wire.CPU_PORT)
"""A packet-out to it comes back as a packet-in."""

LLDP_ETHERTYPE = wire.ETHERTYPE_LLDP
IPV4_ETHERTYPE = wire.ETHERTYPE_IPV4
