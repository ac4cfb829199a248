"""States of a switch, as a controller writes them after p4src/CONTRACT.md.

A state is `ports` (those with a link), `tables`, `defaults` and `multicast_groups`, in the
names of the P4Info, ready for P4Runtime.
"""

from collections.abc import Iterable
from copy import deepcopy
from itertools import combinations
from typing import Any

from wormcast.wire import (
    INSTANCE_BRANCH,
    INSTANCE_NEIGHBOUR,
    INSTANCE_PLAIN,
    MGID_BROADCAST,
    MGID_GROUP_FIRST,
    MGID_PORT,
    MGID_TREE_ALL,
    MGID_TREE_SET,
    NEIGHBOUR_NONE,
    WORMHOLE_INTERRUPT,
    WORMHOLE_INTERRUPT_ROOT,
    WORMHOLE_PLAIN,
    Role,
)

Json = dict[str, Any]


def _entry(table: str, key: Json, action: str, **parameters: int) -> Json:
    return {"table": table, "key": key, "action": action, "parameters": parameters}


def _multicast_group(mgid: int, ports: Iterable[int]) -> Json:
    return {"id": mgid, "replicas": [{"port": port, "instance": INSTANCE_PLAIN} for port in ports]}


def _state(
    hosts: list[int],
    links: list[int],
    tree_links: list[int],
    groups: dict[int, list[int]],
    class_d: list[tuple[int, int, int, int]],
    exact_trees: bool,
) -> Json:
    ports = sorted(hosts + links)
    tables = [_entry("ingress.ports", {"port": port}, "ingress.port_known") for port in ports]
    tables += [
        _entry(
            "ingress.port_roles",
            {"standard_metadata.ingress_port": port},
            "ingress.role",
            role=int(Role.HOST if port in hosts else Role.SWITCH),
            neighbour=NEIGHBOUR_NONE,
        )
        for port in ports
    ]
    tables += [
        _entry("egress.edge_ports", {"standard_metadata.egress_port": port}, "egress.to_host")
        for port in hosts
    ]
    multicast = [
        _multicast_group(MGID_BROADCAST, sorted(hosts + tree_links)),
        _multicast_group(MGID_TREE_ALL, ports),
    ]
    if exact_trees:
        for size in range(1, len(ports) + 1):
            for chosen in combinations(ports, size):
                bitmap = sum(1 << port for port in chosen)
                multicast.append(_multicast_group(MGID_TREE_SET + bitmap, chosen))
                tables.append(
                    _entry(
                        "ingress.tree_sets",
                        {"port_set": bitmap},
                        "ingress.replicate",
                        mgid=MGID_TREE_SET + bitmap,
                    )
                )
    for offset, (group, members) in enumerate(sorted(groups.items())):
        multicast.append(_multicast_group(MGID_GROUP_FIRST + offset, members))
        tables.append(
            _entry("ingress.groups", {"group": group}, "ingress.replicate", mgid=MGID_GROUP_FIRST + offset)
        )
    for value, mask, priority, group in class_d:
        entry = _entry(
            "ingress.class_d",
            {"hdr.ipv4.dst": {"value": value, "mask": mask}},
            "ingress.enter_group",
            group=group,
        )
        tables.append({**entry, "priority": priority})
    bitmap = sum(1 << port for port in ports)
    default = {
        "table": "ingress.tree_sets",
        "action": "ingress.replicate_filtered",
        # 128 bits do not fit the numbers of every JSON reader, so these are hexadecimal.
        "parameters": {"low": f"{bitmap & (1 << 128) - 1:#x}", "high": f"{bitmap >> 128:#x}"},
    }
    return {"ports": ports, "defaults": [default], "multicast_groups": multicast, "tables": tables}


# Ports 0-3 lead to hosts, 4-6 to switches, 7 to nothing. The root of the spanning tree is
# behind port 4.
SMALL = _state(
    hosts=[0, 1, 2, 3],
    links=[4, 5, 6],
    tree_links=[5, 6],
    groups={0: [0, 4], 7: [0, 1, 4, 5], 9: [2], 255: [0, 1, 2, 3, 4, 5, 6], 300: [1, 2, 6], 0xFFFE: [3, 6]},
    class_d=[
        (0xEF010107, 0xFFFFFFFF, 20, 7),  # 239.1.1.7
        (0xEF000000, 0xFF000000, 10, 300),  # 239.0.0.0/8
        (0xE1000009, 0xFF0000FF, 10, 9),  # 225.*.*.9
        (0xE2000000, 0xFF000000, 10, 999),  # 226.0.0.0/8 to a group that is not there
    ],
    exact_trees=True,
)

# More ports than tree_sets can hold: the fallback. 0-7 lead to hosts, the others to switches.
WIDE = _state(
    hosts=list(range(8)),
    links=[*range(8, 16), 130, 253],
    tree_links=[9, 130],
    groups={7: [0, 9, 130, 253]},
    class_d=[],
    exact_trees=False,
)


def _paired() -> Json:
    """Ports 4 and 6 lead to one neighbour. Port 4 is down: what should leave by it leaves by port 6, as
    where a target has taken a backup replica."""
    state = deepcopy(SMALL)
    neighbour = INSTANCE_NEIGHBOUR + 11
    for entry in state["tables"]:
        port = entry["key"].get("standard_metadata.ingress_port")
        if entry["table"] == "ingress.port_roles" and port in (4, 6):
            entry["parameters"]["neighbour"] = neighbour
        port = entry["key"].get("port")
        if entry["table"] == "ingress.ports" and port in (4, 6):
            entry |= {"action": "ingress.port_backed", "parameters": {"mgid": MGID_PORT + port}}
            branch = {"port": 6, "instance": INSTANCE_BRANCH + port}
            state["multicast_groups"].append({"id": MGID_PORT + port, "replicas": [branch]})
    for group in state["multicast_groups"]:
        tree = group["id"] == MGID_TREE_ALL or group["id"] & 0xFF00 == MGID_TREE_SET
        for replica in group["replicas"]:
            if replica["port"] in (4, 6):
                replica["instance"] = INSTANCE_BRANCH + replica["port"] if tree else neighbour
                replica["port"] = 6
    for group in state["multicast_groups"]:
        # Both ports of one neighbour are never in one group of a tree of switches.
        if group["id"] >= MGID_GROUP_FIRST:
            group["replicas"] = [dict(r) for r in dict.fromkeys(tuple(r.items()) for r in group["replicas"])]
    return state


PAIRED = _paired()


def _guarded() -> Json:
    """`small` with its guard on; `guard_vectors` says who is where."""
    state = deepcopy(SMALL)
    ingress = "standard_metadata.ingress_port"

    def admit(port: int, host: int, kinds: int, transit: int, route_max: int, tree_max: int) -> Json:
        parameters = {"host": host, "kinds": kinds, "transit": transit}
        parameters |= {"route_max": route_max, "tree_max": tree_max}
        return _entry("ingress.guard", {ingress: port}, "ingress.admit_host", **parameters)

    state["tables"] += [
        admit(0, 5, kinds=0b01111, transit=1, route_max=8, tree_max=23),
        admit(1, 6, kinds=0b00011, transit=0, route_max=4, tree_max=5),
        admit(2, 7, kinds=0, transit=0, route_max=0, tree_max=0),
        admit(3, 8, kinds=0b00001, transit=0, route_max=4, tree_max=0),
    ]
    # Both lead to one neighbour; what comes by port 5 may turn.
    for port, low in ((4, 0x30), (5, 0)):
        state["tables"].append(_entry("ingress.guard", {ingress: port}, "ingress.link_port", low=low, high=0))
    # As every port is while the guard is being turned on.
    state["tables"].append(_entry("ingress.guard", {ingress: 9}, "ingress.trust_port"))
    for value, mask in ((0, 0xFFF8), (64, 0xFFFF)):
        entry = _entry("ingress.sources", {"source": {"value": value, "mask": mask}}, "ingress.source_known")
        state["tables"].append({**entry, "priority": 1})
    for group in (0, 255, 300, 4000, 0xFFFE):
        state["tables"].append(_entry("ingress.open_groups", {"group": group}, "ingress.group_open"))
    for group, port in ((7, 0), (9, 2)):
        key = {ingress: port, "group": group}
        state["tables"].append(_entry("ingress.group_senders", key, "ingress.sender_known"))
    state["defaults"].append({"table": "ingress.guard", "action": "ingress.refuse_port", "parameters": {}})
    # Less than any frame has, so that each is too much, whenever it comes.
    state["meters"] = [{"meter": "rates", "index": 3, "rate_bytes": 1, "burst_bytes": 1}]
    return state


GUARDED = _guarded()

# Of the state `gathering`; `gather_vectors` says which branches there are.
GATHER_GROUP = 7
GATHER_EPOCH = 9
GATHER_ORIGINS = range(100, 140)
GATHER_LONE_ORIGIN = 200
GATHER_AS = 0x8001


def _gathering() -> Json:
    """`small`, and it gathers ACKs of group 7 to many origins behind port 4."""
    state = deepcopy(SMALL)

    def branch(origin: int, slot: int, port: int, number: int, last: int) -> Json:
        key = {"group": GATHER_GROUP, "origin": origin, "port": port}
        parameters = {"slot": slot, "branch": number, "last": last, "epoch": GATHER_EPOCH, "up": 4}
        parameters |= {"from": 5, "as": GATHER_AS}
        return _entry("ingress.gather", key, "ingress.gather_branch", **parameters)

    for slot, origin in enumerate(GATHER_ORIGINS):
        for port, number in ((0, 0), (1, 1), (5, 2), (6, 2)):
            state["tables"].append(branch(origin, slot, port, number, last=2))
    state["tables"].append(branch(GATHER_LONE_ORIGIN, 1023, 0, 0, last=0))
    # All that a register of 0 could be taken for.
    zero = branch(0, 1022, 0, 0, last=0)
    zero["key"]["group"] = zero["parameters"]["epoch"] = 0
    state["tables"].append(zero)
    return state


# The number of a switch that writes records of hops.
TRACED_SWITCH = 0x1234


def _traced() -> Json:
    """SMALL, and the switch knows its number."""
    entry = {
        "table": "egress.trace",
        "action": "egress.trace_as",
        "parameters": {"switch": f"{TRACED_SWITCH:#x}"},
    }
    return {**SMALL, "defaults": [*SMALL["defaults"], entry]}


def _wormhole(held_max: int, base: Json = SMALL, scheme: int = WORMHOLE_PLAIN) -> Json:
    """Worms hold their channels; a silence of a microsecond ends a reservation."""
    state = deepcopy(base)
    mode = {"scheme": scheme, "stop_frames": 8, "go_frames": 5, "held_max": held_max}
    mode |= {"gap_us": 0, "stop_us": 10_000, "idle_us": 1_000, "silent_us": 1}
    state["defaults"].append(
        {"table": "ingress.wormhole", "action": "ingress.wormhole_mode", "parameters": mode}
    )
    return state


WORMHOLE = _wormhole(16)
FULL = _wormhole(0)

# A switch nobody has configured yet.
EMPTY: Json = {"ports": [0, 1, 4], "defaults": [], "multicast_groups": [], "tables": []}

STATES: dict[str, Json] = {
    "small": SMALL,
    "wide": WIDE,
    "paired": PAIRED,
    "traced": _traced(),
    "wormhole": WORMHOLE,
    "full": FULL,
    "interrupt": _wormhole(16, scheme=WORMHOLE_INTERRUPT),
    "interrupt_root": _wormhole(16, scheme=WORMHOLE_INTERRUPT_ROOT),
    "guarded": GUARDED,
    "gathering": _gathering(),
    "guarded_wormhole": _wormhole(16, GUARDED),
    "empty": EMPTY,
}
