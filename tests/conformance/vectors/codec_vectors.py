"""worm.json: what a codec has to read, write and refuse. Schema in wire/vectors/README.md."""

from ipaddress import IPv4Address
from typing import Any

from oracle.class_d import class_d_mac, group_of_class_d
from oracle.codec import Worm
from oracle.tree import Branch, encode_tree
from wormcast.wire import ETHERTYPE_IPV4, Flag, Kind

SRC = bytes.fromhex("020000000001")
HEAD_TAIL = int(Flag.HEAD | Flag.TAIL)


def branches_json(branches: tuple[Branch, ...]) -> list[dict[str, Any]]:
    """A tree as nested JSON: `branches` is left out where a host ends the branch."""
    return [
        {"port": b.port, "branches": branches_json(b.branches)} if b.branches else {"port": b.port}
        for b in branches
    ]


def _frame(name: str, worm: Worm) -> dict[str, Any]:
    return {
        "name": name,
        "dst": worm.dst.hex(),
        "src": worm.src.hex(),
        "version": 1,
        "kind": int(worm.kind),
        "flags": worm.flags,
        "route_len": len(worm.route),
        "hops": worm.hops,
        "source": worm.source,
        "sequence": worm.sequence,
        "next": worm.next,
        "checksum": worm.checksum(),
        "route": worm.route.hex(),
        "payload": worm.payload.hex(),
        "frame": worm.to_frame().hex(),
    }


def _chain(depth: int) -> tuple[Branch, ...]:
    """A tree of one branch a switch, `depth` switches deep."""
    branches: tuple[Branch, ...] = (Branch(0),)
    for port in range(1, depth):
        branches = (Branch(port % 254, branches),)
    return branches


TREES: list[tuple[str, tuple[Branch, ...]]] = [
    ("one host", (Branch(3),)),
    ("two hosts", (Branch(1), Branch(3))),
    ("host and switch", (Branch(2), Branch(5, (Branch(0), Branch(1))))),
    (
        "Fig. 2 of WORM in shape: two switches deep on two branches",
        (
            Branch(1, (Branch(2), Branch(4, (Branch(1), Branch(6))))),
            Branch(3, (Branch(0), Branch(7))),
            Branch(6),
        ),
    ),
    ("lowest and highest port", (Branch(0), Branch(253))),
    ("sixteen hosts", tuple(Branch(port) for port in range(16))),
    (
        "sixteen branches with sub-routes",
        tuple(Branch(port, (Branch(255 - 2 - port),)) for port in range(16)),
    ),
    ("chain of forty switches", _chain(40)),
    (
        "three switches deep, all sixteen ports at the last",
        (Branch(7, (Branch(7, tuple(Branch(port) for port in range(100, 116))),)),),
    ),
]

BAD_TREES: list[tuple[str, str]] = [
    ("empty route", ""),
    ("empty list", "ff"),
    ("no marker", "0100"),
    ("no marker after a sub-route", "01020300"),
    ("port without length", "01"),
    ("port without length behind a branch", "010002"),
    ("length past the end", "0105ff"),
    ("length past the end by one", "01040300ff"),
    ("bytes after the marker", "0100ff00"),
    ("second marker", "0100ffff"),
    ("port twice", "01000100ff"),
    ("ports descend", "02000100ff"),
    ("ports descend behind a sub-route", "020205000100ff"),
    ("port 254", "fe00ff"),
    ("port 254 behind a branch", "0100fe00ff"),
    ("seventeen branches", "".join(f"{port:02x}00" for port in range(17)) + "ff"),
]

# Refused by the codec of a host, which reads a route to its leaves, though the first
# switch takes it: the sub-route is wrong.
BAD_SUB_TREES: list[tuple[str, str]] = [
    ("sub-route: length past its end", "01020305ff"),
    ("sub-route: marker inside", "0101ffff"),
    ("sub-route: ports descend", "010403000200ff"),
]


def _frames() -> list[dict[str, Any]]:
    def worm(kind: Kind, route: str | bytes, **fields: Any) -> Worm:
        raw = bytes.fromhex(route) if isinstance(route, str) else route
        fields.setdefault("payload", b"wormcast")
        return Worm(kind=kind, route=raw, src=SRC, **fields)

    frames = [
        _frame("UNICAST: one hop", worm(Kind.UNICAST, "03", source=1, sequence=2)),
        _frame("UNICAST: three hops", worm(Kind.UNICAST, "040601", source=1, sequence=3)),
        _frame(
            "UNICAST: empty route, as a host receives it",
            worm(Kind.UNICAST, "", hops=3, source=9, sequence=4),
        ),
        _frame(
            "UNICAST: in-transit remainder, as a host receives it",
            worm(Kind.UNICAST, "0502", hops=2, source=9),
        ),
        _frame("UNICAST: recirculation byte", worm(Kind.UNICAST, "04fe02", source=7)),
        _frame("UNICAST: ports 0 and 253", worm(Kind.UNICAST, "00fd", source=0xFFFE, sequence=0xFFFF)),
        _frame("UNICAST: route of 254 bytes", worm(Kind.UNICAST, bytes(i % 254 for i in range(254)))),
        _frame("UNICAST: route of 255 bytes", worm(Kind.UNICAST, bytes(i % 254 for i in range(255)))),
        _frame("UNICAST: no payload", worm(Kind.UNICAST, "01", payload=b"")),
        _frame("UNICAST: route longer than the payload, odd", worm(Kind.UNICAST, "0102030405", payload=b"x")),
        _frame("UNICAST: class 2", worm(Kind.UNICAST, "01", flags=HEAD_TAIL | Flag.CLASS2)),
        _frame(
            "UNICAST: resumed, congestion experienced",
            worm(Kind.UNICAST, "01", flags=int(Flag.RESUMED | Flag.CE)),
        ),
        _frame("UNICAST: ABORT", worm(Kind.UNICAST, "01", flags=HEAD_TAIL | Flag.ABORT)),
        _frame("UNICAST: hops 63", worm(Kind.UNICAST, "01", hops=63)),
        _frame("UNICAST: hops 255", worm(Kind.UNICAST, "01", hops=255)),
        _frame(
            "UNICAST: sum carries twice",
            worm(Kind.UNICAST, "fdfdfdfd", source=0xFFFF, sequence=0xFFFF, flags=0x9F),
        ),
        _frame("UNICAST: IPv4 payload", worm(Kind.UNICAST, "02", next=ETHERTYPE_IPV4, payload=bytes(20))),
        _frame(
            "UNICAST: IPv4 payload is not traced",
            worm(Kind.UNICAST, "02", next=ETHERTYPE_IPV4, flags=HEAD_TAIL | Flag.TRACE, payload=bytes(20)),
        ),
        _frame(
            "UNICAST: payload of 1400 bytes",
            worm(Kind.UNICAST, "02", payload=bytes(i & 0xFF for i in range(1400))),
        ),
        _frame("UNICAST: checksum 0", _with_checksum_zero()),
        _frame("BROADCAST: on its way to the root", worm(Kind.BROADCAST, "0405", source=3)),
        _frame("BROADCAST: at the root and below", worm(Kind.BROADCAST, "", source=3, hops=2)),
        _frame("GROUP: 0", worm(Kind.GROUP, "0000", source=3)),
        _frame("GROUP: 7", worm(Kind.GROUP, "0007", source=3)),
        _frame("GROUP: broadcast", worm(Kind.GROUP, "00ff", source=3)),
        _frame("GROUP: 16-bit number", worm(Kind.GROUP, "fffe", source=3)),
        _frame("GROUP: class D packet", worm(Kind.GROUP, "0007", source=0xFFFF, hops=1, next=ETHERTYPE_IPV4)),
        _frame("CONTROL: two hops", worm(Kind.CONTROL, "0501", source=3)),
    ]
    for name, branches in TREES:
        entry = _frame(f"TREE: {name}", worm(Kind.TREE, encode_tree(branches), source=2, sequence=7))
        entry["branches"] = branches_json(branches)
        frames.append(entry)
    # Without "branches": nested so deep that JSON readers with a depth limit refuse it.
    deep = worm(Kind.TREE, encode_tree(_chain(127)), source=2)
    frames.append(_frame("TREE: chain of 127 switches, route of 255 bytes", deep))
    frames.append(_frame("TREE: empty route, as a host receives it", worm(Kind.TREE, "", hops=4, source=2)))
    return frames


def _with_checksum_zero() -> Worm:
    """A worm whose sum is 0xFFFF: the sequence number makes up for the rest."""
    worm = Worm(kind=Kind.UNICAST, route=b"\x01", payload=b"wormcast", src=SRC)
    return Worm(kind=Kind.UNICAST, route=b"\x01", payload=b"wormcast", src=SRC, sequence=worm.checksum())


def _invalid() -> list[dict[str, Any]]:
    good = Worm(kind=Kind.UNICAST, route=b"\x04\x06\x01", payload=b"wormcast", src=SRC, source=1).to_frame()

    def case(name: str, frame: bytes, reason: str) -> dict[str, Any]:
        return {"name": name, "frame": frame.hex(), "reason": reason}

    def changed(at: int, value: int) -> bytes:
        return good[:at] + bytes([value]) + good[at + 1 :]

    return [
        case("EtherType of IPv6", good[:12] + b"\x86\xdd" + good[14:], "NOT_A_WORM"),
        case("nothing behind the EtherType", good[:14], "TRUNCATED"),
        case("header ends a byte early", good[:25], "TRUNCATED"),
        case("route ends a byte early", good[:28], "TRUNCATED"),
        case("route missing", good[:26], "TRUNCATED"),
        case("version 0", changed(14, 0x00), "VERSION_UNKNOWN"),
        case("version 2", changed(14, 0x20), "VERSION_UNKNOWN"),
        case("version 15 with a short route", changed(14, 0xF0)[:27], "VERSION_UNKNOWN"),
        case("kind changed", changed(14, 0x11), "CHECKSUM"),
        case("flags changed", changed(15, 0x07), "CHECKSUM"),
        case("route_len changed", changed(16, 0x02), "CHECKSUM"),
        case("hops changed", changed(17, 0x01), "CHECKSUM"),
        case("source changed", changed(19, 0x02), "CHECKSUM"),
        case("sequence changed", changed(21, 0x01), "CHECKSUM"),
        case("next changed", changed(23, 0xB7), "CHECKSUM"),
        case("checksum changed", changed(25, good[25] ^ 1), "CHECKSUM"),
        case("first route byte changed", changed(26, 0x05), "CHECKSUM"),
        case("last route byte changed", changed(28, 0x02), "CHECKSUM"),
        case("checksum 0xffff in place of 0", _with_checksum_zero().to_frame(checksum=0xFFFF), "CHECKSUM"),
    ]


def build() -> dict[str, Any]:
    addresses = ["224.0.1.1", "239.1.1.7", "239.128.1.7", "232.255.255.255", "239.255.255.254", "225.0.0.0"]
    return {
        "format": "wormcast worm vectors",
        "format_version": 1,
        "frames": _frames(),
        "invalid": _invalid(),
        "trees": [
            {"name": name, "branches": branches_json(branches), "route": encode_tree(branches).hex()}
            for name, branches in TREES
        ],
        "bad_trees": [{"name": name, "route": route} for name, route in BAD_TREES],
        "bad_sub_trees": [{"name": name, "route": route} for name, route in BAD_SUB_TREES],
        "class_d": [
            {
                "address": text,
                "mac": class_d_mac(IPv4Address(text)).hex(),
                "group": group_of_class_d(IPv4Address(text)),
            }
            for text in addresses
        ],
    }
