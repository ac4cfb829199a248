"""What is measured: programs, what they are told, and the frames that go through them."""

import ipaddress
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import finsy as fy

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
COMPILED = ROOT / "p4src/compiled"

DESTINATION = bytes.fromhex("03574f524d00")
SOURCE = bytes.fromhex("020000000001")
ROUTER = bytes.fromhex("020000000002")
ETHERTYPE_WORM = bytes.fromhex("88b5")
ETHERTYPE_IPV4 = bytes.fromhex("0800")
CPU_PORT, DROP_PORT = 510, 511
UNICAST, TREE, BROADCAST, GROUP = range(4)
GATHER = 5
HEAD_AND_TAIL, TRACE = 0x06, 0x20
MGID_BROADCAST = 1
GROUP_NUMBER, MGID_GROUP_FIRST = 7, 0x4000
HOST, EPOCH = 1, 3

PREFIXES = 10_000
ACCESS_LIST_ENTRIES = 500
FLOWS = 256
SEED = 1

Entities = list[fy.P4TableEntry | fy.P4MulticastGroupEntry]


@dataclass(frozen=True)
class Case:
    """A program, what it is told, and the frames that go in by a port."""

    name: str
    title: str
    json: Path
    p4info: Path
    entities: Callable[[], Entities]
    heads: tuple[bytes, ...]
    """The frames but for their filling; sent in turn."""
    ports_out: tuple[int, ...] = (1,)
    """Ports by which a copy of each leaves."""
    port_in: int = 0

    def frames(self, size: int) -> list[bytes]:
        """The frames, filled up to a size in bytes."""
        return [head + bytes(max(0, size - len(head))) for head in self.heads]


def internet_checksum(data: bytes) -> bytes:
    """RFC 1071."""
    padded = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return (total ^ 0xFFFF).to_bytes(2, "big")


def worm_header(kind: int, route: bytes, flags: int = 0, covered: bytes = b"") -> bytes:
    """Header and route of a worm of one frame, and what else its checksum covers (wire/SPEC.md §2)."""
    header = (
        bytearray([0x10 | kind, HEAD_AND_TAIL | flags, len(route), 0, 0, 1, 0, 1, 0x88, 0xB6, 0, 0])
        + route
        + covered
    )
    header[10:12] = internet_checksum(header)
    return bytes(header)


def gathered_ack() -> bytes:
    """What a member says to its switch, to be said further up each time (wire/SPEC.md §3.2)."""
    acknowledges, again = 1, 1
    numbers = (number.to_bytes(4, "big") for number in (EPOCH, 1, 9, 9))
    pair = GROUP_NUMBER.to_bytes(2, "big") + HOST.to_bytes(2, "big")
    return bytes([acknowledges, again]) + pair + bytes(2) + b"".join(numbers)


def ipv4_header(source: int, destination: int, ports: tuple[int, int], length: int) -> bytes:
    """IPv4 and the ports of UDP."""
    header = bytearray.fromhex("4500000000000000401100000000000000000000")
    header[2:4] = length.to_bytes(2, "big")
    header[12:16], header[16:20] = source.to_bytes(4, "big"), destination.to_bytes(4, "big")
    header[10:12] = internet_checksum(header)
    return bytes(header) + b"".join(port.to_bytes(2, "big") for port in ports)


def _l2() -> Entities:
    match = fy.Match(dst=int.from_bytes(DESTINATION, "big"))
    return [fy.P4TableEntry("addresses", match=match, action=fy.Action("forward", port=1))]


def _worm_ports() -> Entities:
    return [
        fy.P4TableEntry("ports", match=fy.Match(port=port), action=fy.Action("port_known"))
        for port in range(8)
    ]


def _worm_copies(group: int) -> Entities:
    copies = [(port, 1) for port in range(1, 8)]
    return [*_worm_ports(), fy.P4MulticastGroupEntry(group, replicas=copies)]


def _worm_broadcast() -> Entities:
    return _worm_copies(MGID_BROADCAST)


def _worm_group() -> Entities:
    action = fy.Action("replicate", mgid=MGID_GROUP_FIRST)
    entry = fy.P4TableEntry("groups", match=fy.Match(group=GROUP_NUMBER), action=action)
    return [*_worm_copies(MGID_GROUP_FIRST), entry]


def _traced() -> Entities:
    action = fy.Action("trace_as", switch=1)
    return [*_worm_ports(), fy.P4TableEntry("trace", action=action, is_default_action=True)]


def _guarded() -> Entities:
    action = fy.Action("admit_host", host=HOST, kinds=1 << UNICAST, transit=0, route_max=64, tree_max=0)
    entry = fy.P4TableEntry("guard", match=fy.Match({"standard_metadata.ingress_port": 0}), action=action)
    return [*_worm_ports(), entry]


def _gathered() -> Entities:
    # One branch: each ACK goes on. Where a tree has several, most end here.
    branch = fy.Action(
        "gather_branch", slot=0, branch=0, last=0, epoch=EPOCH, up=1, **{"from": HOST, "as": HOST + 1}
    )
    match = fy.Match(group=GROUP_NUMBER, origin=HOST, port=0)
    return [*_worm_ports(), fy.P4TableEntry("gather", match=match, action=branch)]


def _wormhole() -> Entities:
    action = fy.Action(
        "wormhole_mode",
        scheme=1,
        stop_frames=8,
        go_frames=5,
        held_max=16,
        gap_us=0,
        stop_us=10_000,
        idle_us=1_000,
        silent_us=1_000_000,
    )
    return [*_worm_ports(), fy.P4TableEntry("wormhole", action=action, is_default_action=True)]


def _worm_tree() -> Entities:
    ports = tuple(range(1, 8))
    bitmap = sum(1 << port for port in ports)
    group = 0x100 + bitmap
    return [
        *_worm_ports(),
        fy.P4MulticastGroupEntry(group, replicas=[(port, 1) for port in ports]),
        fy.P4TableEntry(
            "tree_sets", match=fy.Match(port_set=bitmap), action=fy.Action("replicate", mgid=group)
        ),
    ]


def prefixes() -> list[tuple[int, int]]:
    """IPv4 prefixes as in a table of routes: most /24, the rest /8 to /23 and some /32."""
    draw = random.Random(SEED)
    lengths = [24] * 60 + [23, 22, 22, 21, 20, 20, 19, 18, 17, 16, 16, 16, 15, 14, 12, 10, 9, 8] + [32] * 5
    found: set[tuple[int, int]] = set()
    while len(found) < PREFIXES:
        length = draw.choice(lengths)
        address = draw.randrange(1 << 24, 224 << 24) >> (32 - length) << (32 - length)
        found.add((address, length))
    return sorted(found)


def _router() -> Entities:
    draw = random.Random(SEED + 1)
    entities: Entities = [
        fy.P4TableEntry(
            "vlan_to_rif",
            match=fy.Match({"standard_metadata.ingress_port": 0, "meta.vlan": 0}),
            action=fy.Action("set_rif", rif=1, vrf=1),
        ),
        fy.P4TableEntry(
            "l3_admit",
            match=fy.Match({"hdr.ethernet.dst": int.from_bytes(ROUTER, "big")}),
            action=fy.Action("admit"),
            priority=1,
        ),
        fy.P4TableEntry(
            "nexthops",
            match=fy.Match({"meta.nexthop": 7}),
            action=fy.Action("resolve", rif_out=2, neighbor=3),
        ),
        fy.P4TableEntry(
            "neighbors",
            match=fy.Match({"meta.rif_out": 2, "meta.neighbor": 3}),
            action=fy.Action("rewrite_destination", dst=int.from_bytes(DESTINATION, "big")),
        ),
        fy.P4TableEntry(
            "router_interfaces",
            match=fy.Match({"meta.rif_out": 2}),
            action=fy.Action("leave", port=1, src=int.from_bytes(ROUTER, "big")),
        ),
    ]
    for address, length in prefixes():
        prefix = f"{ipaddress.IPv4Address(address)}/{length}"
        entities.append(
            fy.P4TableEntry(
                "routes4",
                match=fy.Match({"meta.vrf": 1, "hdr.ipv4.dst": prefix}),
                action=fy.Action("set_nexthop", nexthop=7),
            )
        )
    for number in range(ACCESS_LIST_ENTRIES):
        # None of them holds for the traffic (its source is 10.0.0.1), so that all are considered.
        source = draw.randrange(11 << 24, 224 << 24)
        mask = 0xFFFFFFFF << draw.randrange(0, 16) & 0xFFFFFFFF
        match: dict[str, int | tuple[int, int]] = {"src4": (source & mask, mask)}
        if number % 2:
            match["port_dst"] = draw.randrange(1 << 16)
        if number % 3 == 0:
            match["protocol"] = draw.choice([6, 17])
        if number % 5 == 0:
            match["dst4"] = (draw.randrange(1 << 8) << 24, 0xFF000000)
        entities.append(
            fy.P4TableEntry(
                "access_list", match=fy.Match(match), action=fy.Action("deny"), priority=number + 1
            )
        )
    return entities


def _router_heads() -> tuple[bytes, ...]:
    draw = random.Random(SEED + 2)
    chosen = draw.sample(prefixes(), FLOWS)
    return tuple(
        ROUTER
        + SOURCE
        + ETHERTYPE_IPV4
        + ipv4_header(
            0x0A000001,
            address + draw.randrange(1 << (32 - length)),
            (draw.randrange(1024, 65536), draw.randrange(1024, 65536)),
            46,
        )
        for address, length in chosen
    )


def cases() -> dict[str, Case]:
    """Everything that can be measured, by name."""
    ethernet = DESTINATION + SOURCE + ETHERTYPE_WORM
    worm = (COMPILED / "wormcast.json", COMPILED / "wormcast.p4info.txtpb")
    tree = b"".join(bytes([port, 0]) for port in range(1, 8)) + b"\xff"
    known = [
        Case("l2", "L2 exact match", *_beside("l2"), _l2, (ethernet,)),
        Case(
            "unicast",
            "worm UNICAST",
            *worm,
            _worm_ports,
            (ethernet + worm_header(UNICAST, bytes([1, 7])),),
        ),
        Case(
            "tree",
            "worm TREE, 1 in, 7 out",
            *worm,
            _worm_tree,
            (ethernet + worm_header(TREE, tree),),
            tuple(range(1, 8)),
        ),
        Case(
            "group",
            "worm GROUP, 1 in, 7 out",
            *worm,
            _worm_group,
            (ethernet + worm_header(GROUP, GROUP_NUMBER.to_bytes(2, "big")),),
            tuple(range(1, 8)),
        ),
        Case(
            "broadcast",
            "worm BROADCAST at the root, 1 in, 7 out",
            *worm,
            _worm_broadcast,
            (ethernet + worm_header(BROADCAST, b""),),
            tuple(range(1, 8)),
        ),
        Case(
            "traced",
            "worm UNICAST with a record added",
            *worm,
            _traced,
            (ethernet + worm_header(UNICAST, bytes([1, 7]), TRACE) + bytes([0, 4]),),
        ),
        Case(
            "guarded",
            "worm UNICAST that the edge guard judges",
            *worm,
            _guarded,
            (ethernet + worm_header(UNICAST, bytes([1, 7])),),
        ),
        Case(
            "gathered",
            "gathered ACK that goes on",
            *worm,
            _gathered,
            (ethernet + worm_header(GATHER, b"", covered=gathered_ack()),),
        ),
        Case(
            "wormhole",
            "worm UNICAST of one frame in wormhole mode",
            *worm,
            _wormhole,
            (ethernet + worm_header(UNICAST, bytes([1, 7])),),
        ),
        Case(
            "router",
            f"router, {PREFIXES:,} prefixes, {ACCESS_LIST_ENTRIES} ternary entries, {FLOWS} flows",
            *_beside("router"),
            _router,
            _router_heads(),
        ),
    ]
    return {case.name: case for case in known}


def pairs(count: int) -> list[Case]:
    """UNICAST by several pairs of ports at once: 0 to 1, 2 to 3 and so on."""
    unicast = cases()["unicast"]
    ethernet = DESTINATION + SOURCE + ETHERTYPE_WORM
    return [
        replace(
            unicast,
            heads=(ethernet + worm_header(UNICAST, bytes([port + 1, 7])),),
            ports_out=(port + 1,),
            port_in=port,
        )
        for port in range(0, 2 * count, 2)
    ]


def _beside(name: str) -> tuple[Path, Path]:
    return PROGRAMS / f"{name}.json", PROGRAMS / f"{name}.p4info.txtpb"
