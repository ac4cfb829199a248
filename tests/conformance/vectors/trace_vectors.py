"""Traced worms: what codecs read, and what switches write (SPEC.md §2.2)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oracle.codec import Worm
from oracle.trace import Record, encode_trace
from oracle.tree import Branch
from wormcast.wire import ETHERTYPE_IPV4, TRACE_QUEUE_MAX, TRACE_STAY_MAX, Flag, Kind

from vectors.cases import PAYLOAD, Json, copied, dropped, make_tree_worm, make_worm, one_step, vector
from vectors.codec_vectors import HEAD_TAIL, SRC
from vectors.edge_vectors import ip_packet
from vectors.states import TRACED_SWITCH

TRACE = HEAD_TAIL | Flag.TRACE
FIRST = Record(0x0102, hop=1, ingress_port=3, egress_port=253, stay_us=12, queue=4, left_us=1_000_000)
SECOND = Record(0xFFFE, hop=2, ingress_port=0, egress_port=0, stay_us=0, queue=0, left_us=2**32 - 1)
LARGEST = Record(0, 3, 253, 254, TRACE_STAY_MAX, TRACE_QUEUE_MAX, left_us=0)


def record_json(record: Record) -> Json:
    """A record as JSON, by the names of SPEC.md."""
    return {
        "switch": record.switch,
        "hop": record.hop,
        "ingress_port": record.ingress_port,
        "egress_port": record.egress_port,
        "stay": record.stay_us,
        "queue": record.queue,
        "left": record.left_us,
    }


def codec_traces() -> list[Json]:
    """What `traces` of worm.json holds."""

    def case(
        name: str, trace: bytes, expected: list[Record], hops: int = 3, payload: bytes = PAYLOAD
    ) -> Json:
        worm = Worm(Kind.UNICAST, b"", trace + payload, int(TRACE), hops, source=9, sequence=4, src=SRC)
        return {
            "name": name,
            "frame": worm.to_frame().hex(),
            "room": trace[1],
            "count": trace[0],
            "records": [record_json(record) for record in expected],
            "payload": payload.hex(),
        }

    whole = encode_trace([FIRST, SECOND, LARGEST])
    damaged = bytearray(whole)
    damaged[2 + 16 + 3] ^= 0x04  # a port of the second record
    return [
        case("no records yet", encode_trace([]), [], hops=0),
        case("no room", encode_trace([], room=0), []),
        case("one record", encode_trace([FIRST], room=1), [FIRST]),
        case("three records, newest first", whole, [FIRST, SECOND, LARGEST]),
        case("nothing behind the records", whole, [FIRST, SECOND, LARGEST], payload=b""),
        case("a switch that writes no records lies between", encode_trace([FIRST, LARGEST]), [FIRST, LARGEST]),
        case("a damaged record is left out", bytes(damaged), [FIRST, LARGEST]),
        case("a record of zeros is none", bytes([1, 64]) + bytes(16), []),
        case("a hop that the worm has not made", whole, [FIRST, SECOND], hops=2),
        case("hop 0", encode_trace([replace(FIRST, hop=0), SECOND]), [SECOND]),
        case("the same hop twice: the one that came later", encode_trace([FIRST, replace(SECOND, hop=1)]),
             [replace(SECOND, hop=1)]),
    ]  # fmt: skip


def codec_bad_traces() -> list[Json]:
    """Frames that end inside their trace."""
    whole = make_worm(Kind.UNICAST, "", flags=int(TRACE), payload=encode_trace([FIRST, SECOND])).to_frame()
    return [
        {"name": "the second record ends a byte early", "frame": whole[:-1].hex()},
        {"name": "no records behind the head", "frame": whole[: 26 + 2].hex()},
        {"name": "no room for the head", "frame": whole[: 26 + 1].hex()},
        {"name": "no head", "frame": whole[:26].hex()},
    ]


def _traced(kind: Kind, route: str | bytes, *before: Record, room: int = 64, **fields: Any) -> Worm:
    fields.setdefault("hops", len(before))
    fields.setdefault("flags", int(TRACE))
    return make_worm(kind, route, payload=encode_trace(before, room) + PAYLOAD, **fields)


def _left(worm: Worm, route: str, hops: int, *records: Record, room: int = 64, **fields: Any) -> bytes:
    """The frame with all its records, oldest first."""
    at = worm.at(bytes.fromhex(route), hops)
    return replace(at, payload=encode_trace(records, room) + PAYLOAD, **fields).to_frame()


def _here(hop: int, ingress_port: int, egress_port: int, queue: int = 0) -> Record:
    return Record(TRACED_SWITCH, hop, ingress_port, egress_port, queue=queue)


def _step(name: str, worm: Worm, came: int, out: Mapping[int, bytes], **more: Any) -> Json:
    kinds = {Kind(worm.kind).name: 1 + more.get("recirculated", 0)}
    return vector(name, worm.to_frame(), came, dict(out), "traced", kinds=kinds, **more)


def trace_vectors() -> list[Json]:
    """A switch that knows its number, and one that does not."""
    unicast = _traced(Kind.UNICAST, "0501")
    second = _traced(Kind.UNICAST, "02", FIRST)
    control = _traced(Kind.CONTROL, "06")
    transit = _traced(Kind.UNICAST, "0306", FIRST)
    full = _traced(Kind.UNICAST, "0501", FIRST, SECOND, room=2)
    over = _traced(Kind.UNICAST, "0501", FIRST, SECOND, room=1)
    last_room = _traced(Kind.UNICAST, "0501", FIRST, room=2)
    tree = replace(
        make_tree_worm(Branch(1), Branch(4, (Branch(2), Branch(3))), flags=int(TRACE)),
        payload=encode_trace([]) + PAYLOAD,
    )
    group = _traced(Kind.GROUP, "0007", FIRST)
    to_root = _traced(Kind.BROADCAST, "04")
    down = _traced(Kind.BROADCAST, "", FIRST, SECOND)
    absorbed = _traced(Kind.UNICAST, "fe05")
    absorbed_once_more = _traced(Kind.UNICAST, "fefe02", room=2)
    # What lies behind the records is not looked at: it may be cut off.
    cut = replace(_traced(Kind.UNICAST, "0501", FIRST), payload=bytes([1, 9]) + bytes(3))
    plain = make_worm(Kind.UNICAST, "0501", payload=encode_trace([]) + PAYLOAD)
    address = ip_packet("239.1.1.7")
    not_ours = _traced(Kind.UNICAST, "0501", next=ETHERTYPE_IPV4)
    class_d = make_worm(Kind.GROUP, "0009", flags=int(TRACE), next=ETHERTYPE_IPV4, payload=address)
    no_head = make_worm(Kind.UNICAST, "0501", flags=int(TRACE), payload=b"\x00")
    return [
        _step("TRACE: first record", unicast, 2, {5: _left(unicast, "01", 1, _here(1, 2, 5))}),
        _step("TRACE: records go newest first", second, 4, {2: _left(second, "", 1, FIRST, _here(2, 4, 2))}),
        _step("TRACE: CONTROL", control, 0, {6: _left(control, "", 1, _here(1, 0, 6))}),
        _step("TRACE: to an in-transit host", transit, 4, {3: _left(transit, "06", 1, FIRST, _here(2, 4, 3))}),
        _step("TRACE: no room left", full, 2, {5: _left(full, "01", 1, FIRST, SECOND, room=2)}),
        _step("TRACE: more records than room", over, 2, {5: _left(over, "01", 1, FIRST, SECOND, room=1)}),
        _step(
            "TRACE: the last record that has room",
            last_room,
            2,
            {5: _left(last_room, "01", 1, FIRST, _here(2, 2, 5), room=2)},
        ),
        _step(
            "TRACE: each copy of a TREE has a record of its own",
            tree,
            0,
            {1: _left(tree, "", 1, _here(1, 0, 1)), 4: _left(tree, "02000300ff", 1, _here(1, 0, 4))},
        ),
        _step(
            "TRACE: copies of a GROUP, hosts too",
            group,
            4,
            {port: _left(group, "0007", 1, FIRST, _here(2, 4, port)) for port in (0, 1, 5)},
            filtered={"GROUP": 1},
        ),
        _step("TRACE: BROADCAST to the root", to_root, 1, {4: _left(to_root, "", 1, _here(1, 1, 4))}),
        _step(
            "TRACE: BROADCAST down",
            down,
            4,
            {port: _left(down, "", 1, FIRST, SECOND, _here(3, 4, port)) for port in (0, 1, 2, 3, 5, 6)},
        ),
        _step(
            "TRACE: a record of each pass",
            absorbed,
            3,
            {5: _left(absorbed, "", 2, _here(1, 3, 254), _here(2, 3, 5))},
            recirculated=1,
        ),
        _step(
            "TRACE: room for two of three passes",
            absorbed_once_more,
            3,
            {2: _left(absorbed_once_more, "", 3, _here(1, 3, 254), _here(2, 3, 254), room=2)},
            recirculated=2,
        ),
        _step(
            "TRACE: a cut record of before does not matter here",
            cut,
            2,
            {5: replace(cut.at(b"\x01"), payload=bytes([2, 9]) + _here(2, 2, 5).to_bytes() + bytes(3)).to_frame()},
        ),
        _step("TRACE: worms without the flag pass", plain, 2, {5: plain.at(b"\x01").to_frame()}),
        _step("TRACE: IP is not traced", not_ours, 2, {5: not_ours.at(b"\x01").to_frame()}),
        vector(
            "TRACE: a class D packet leaves as it came",
            class_d.to_frame(),
            4,
            {2: bytes.fromhex("01005e010107") + SRC + bytes.fromhex("0800") + address},
            "traced",
            kinds={"GROUP": 1},
        ),
        _step(
            "TRACE: queue",
            unicast,
            2,
            {5: _left(unicast, "01", 1, _here(1, 2, 5, queue=31))},
            deq_qdepth=31,
        ),
        _step(
            "TRACE: longest queue, and CE",
            unicast,
            2,
            {5: _left(unicast, "01", 1, _here(1, 2, 5, queue=TRACE_QUEUE_MAX), flags=int(TRACE | Flag.CE))},
            deq_qdepth=500000,
        ),
        one_step("TRACE: a switch without a number passes it on", unicast, 5, "01", 2),
        copied("TRACE: copies of a switch without a number", tree, 0, {1: "", 4: "02000300ff"}),
        dropped("TRACE: ends inside its head", no_head, "TRUNCATED", 2, state="traced"),
        dropped("TRACE: ends inside its head, no number", no_head, "TRUNCATED", 2),
        dropped(
            "TRACE: damaged header",
            unicast.to_frame(checksum=unicast.checksum() ^ 1),
            "CHECKSUM",
            2,
            state="traced",
        ),
    ]  # fmt: skip
