"""wormcast.wire against worm.json: both the pure codec and the Scapy layers."""

import json
from ipaddress import IPv4Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.checksum import internet_checksum
from oracle.class_d import class_d_mac, group_of_class_d, is_link_local
from oracle.codec import Worm, WormError, decode_frame
from oracle.layers import Worm as WormLayer
from oracle.trace import Record, believed, decode_record, encode_trace, split_trace, without_times
from oracle.tree import Branch, RouteError, decode_tree, encode_tree, split_tree
from reference_gather import Gathered
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from vector_files import load_vectors
from vectors.files import render
from wormcast.wire import MAX_BRANCHES, PORT_MAX, DropReason

Json = dict[str, Any]
DOCUMENT = load_vectors("worm.json")


def _named(member: str) -> list[Any]:
    return [pytest.param(entry, id=entry.get("name", entry.get("address"))) for entry in DOCUMENT[member]]


def _branches(entries: list[Json]) -> tuple[Branch, ...]:
    return tuple(Branch(entry["port"], _branches(entry.get("branches", []))) for entry in entries)


def test_vector_files_are_those_the_sources_give() -> None:
    """python -m vectors would change nothing."""
    for path, text in render().items():
        assert path.read_text() == text, (
            f"{path.name} is out of date: run python -m vectors in tests/conformance"
        )
        json.loads(text)


@pytest.mark.parametrize("entry", _named("frames"))
def test_codec_reads_and_writes_frames(entry: Json) -> None:
    """Fields and bytes agree in both directions."""
    worm = decode_frame(bytes.fromhex(entry["frame"]))
    for name in ("kind", "flags", "hops", "source", "sequence", "next"):
        assert getattr(worm, name) == entry[name], name
    assert (worm.dst.hex(), worm.src.hex()) == (entry["dst"], entry["src"])
    assert (worm.route.hex(), worm.payload.hex()) == (entry["route"], entry["payload"])
    assert (len(worm.route), worm.checksum()) == (entry["route_len"], entry["checksum"])
    assert worm.to_frame().hex() == entry["frame"]
    if "branches" in entry:
        assert decode_tree(worm.route) == _branches(entry["branches"])


@pytest.mark.parametrize("entry", _named("frames"))
def test_scapy_reads_and_writes_frames(entry: Json) -> None:
    """The layer dissects to the fields and builds the same bytes, checksum and length left to it."""
    layer = Ether(bytes.fromhex(entry["frame"]))[WormLayer]
    for name in ("version", "kind", "route_len", "hops", "source", "sequence", "next", "checksum"):
        assert getattr(layer, name) == entry[name], name
    assert int(layer.flags) == entry["flags"]
    assert bytes(layer.route_bytes).hex() == entry["route"]
    assert bytes(layer.payload).hex() == entry["payload"]
    assert layer.checksum_ok()
    built = Ether(dst=bytes.fromhex(entry["dst"]), src=bytes.fromhex(entry["src"])) / WormLayer(
        kind=entry["kind"],
        flags=entry["flags"],
        hops=entry["hops"],
        source=entry["source"],
        sequence=entry["sequence"],
        next=entry["next"],
        route_bytes=bytes.fromhex(entry["route"]),
    )
    assert bytes(built / Raw(bytes.fromhex(entry["payload"]))).hex() == entry["frame"]


def test_scapy_composes_by_hand() -> None:
    """What a test author types: defaults give a correct worm, IP finds its EtherType."""
    frame = Ether() / WormLayer(kind="GROUP", route_bytes=b"\x00\x07") / IP(dst="239.1.1.7")
    worm = decode_frame(bytes(frame))
    assert (worm.kind, worm.route, worm.next, worm.dst.hex()) == (3, b"\x00\x07", 0x0800, "03574f524d00")
    assert Ether(bytes(frame))[IP].dst == "239.1.1.7"
    assert Ether(bytes(6) + bytes(frame)[6:])[WormLayer].hops == 0, "switches ignore the destination MAC"
    broken = Ether(bytes(frame))[WormLayer]
    broken.hops = 9
    assert not broken.checksum_ok()


@pytest.mark.parametrize("entry", _named("invalid"))
def test_codec_refuses(entry: Json) -> None:
    """For the reason a switch would count."""
    with pytest.raises(WormError) as refused:
        decode_frame(bytes.fromhex(entry["frame"]))
    assert refused.value.reason is DropReason[entry["reason"]]


def _records(entry: Json) -> list[Record]:
    return [
        Record(
            *(
                record[name]
                for name in ("switch", "hop", "ingress_port", "egress_port", "stay", "queue", "left")
            )
        )
        for record in entry["records"]
    ]


@pytest.mark.parametrize("entry", _named("traces"))
def test_traces_are_read(entry: Json) -> None:
    """Room, what is believed of the records, and the payload behind them."""
    worm = decode_frame(bytes.fromhex(entry["frame"]))
    room, records, payload = split_trace(worm)
    assert (room, len(records), payload.hex()) == (entry["room"], entry["count"], entry["payload"])
    assert believed(records, worm.hops) == _records(entry)
    if len(records) == len(entry["records"]):
        assert worm.payload == encode_trace(_records(entry), room) + payload


@pytest.mark.parametrize("entry", _named("bad_traces"))
def test_traces_that_are_cut_off_are_refused(entry: Json) -> None:
    """By the codec of a host, which reads all of them."""
    with pytest.raises(WormError) as refused:
        split_trace(decode_frame(bytes.fromhex(entry["frame"])))
    assert refused.value.reason is DropReason.TRUNCATED


@pytest.mark.parametrize("entry", _named("gathers"))
def test_what_gather_worms_say_is_read(entry: Json) -> None:
    """And their padding is nothing."""
    worm = decode_frame(bytes.fromhex(entry["frame"]))
    said = vars(Gathered.from_bytes(worm.gather))
    assert said == {name: entry.get(name, 0) for name in said}
    assert worm.payload == bytes(len(worm.payload))
    assert (worm.source, worm.sequence, worm.route.hex()) == (
        entry["source"],
        entry["sequence"],
        entry["route"],
    )


@pytest.mark.parametrize("entry", _named("trains"))
def test_frames_of_trains_are_read(entry: Json) -> None:
    """And say the same as the worm of one frame that they are made of, but where they stand in their train."""
    worm = decode_frame(bytes.fromhex(entry["frame"]))
    whole = decode_frame(bytes.fromhex(entry["whole"]))
    assert worm.train == entry["position"].to_bytes(2, "big") + bytes(18)
    assert (worm.flags, worm.sequence, worm.route.hex()) == (
        entry["flags"],
        entry["sequence"],
        entry["route"],
    )
    assert (worm.kind, worm.source, worm.payload) == (whole.kind, whole.source, whole.payload)
    assert worm.route == (whole.route if entry["position"] == 0 else b"")


@given(st.integers(0, 127))
def test_a_flipped_bit_of_a_record_is_noticed(bit: int) -> None:
    """Each of the 128."""
    data = bytearray(Record(0x1234, 7, 3, 5, 1000, 12, 99_000_000).to_bytes())
    assert decode_record(bytes(data)) is not None
    data[bit // 8] ^= 1 << bit % 8
    assert decode_record(bytes(data)) is None


def test_times_are_taken_out_of_what_a_switch_added_only() -> None:
    """What masks a switch's clock must not hide a wrong check, or a change of older records."""
    old, new = Record(1, 1, 2, 3, 50, 0, 77), Record(2, 2, 4, 5, 60, 6, 78)
    came = Worm(0, b"\x05", encode_trace([old]) + b"x", flags=0x26, hops=1)
    left = Worm(0, b"", encode_trace([old, new]) + b"x", flags=0x26, hops=2)
    zero = Worm(0, b"", encode_trace([old, Record(2, 2, 4, 5, 0, 6, 0)]) + b"x", flags=0x26, hops=2)
    assert without_times(came.to_frame(), left.to_frame()) == zero.to_frame()
    damaged = bytearray(left.to_frame())
    damaged[-1 - 16 - 8] ^= 1
    assert without_times(came.to_frame(), bytes(damaged)) == bytes(damaged)


@pytest.mark.parametrize("entry", _named("trees"))
def test_trees_both_ways(entry: Json) -> None:
    """Branches and routes agree."""
    route = bytes.fromhex(entry["route"])
    assert encode_tree(_branches(entry["branches"])) == route
    assert decode_tree(route) == _branches(entry["branches"])


@pytest.mark.parametrize("entry", _named("bad_trees"))
def test_bad_trees_are_refused(entry: Json) -> None:
    """At the first switch already."""
    with pytest.raises(RouteError):
        split_tree(bytes.fromhex(entry["route"]))


@pytest.mark.parametrize("entry", _named("bad_sub_trees"))
def test_bad_sub_trees_are_refused_when_read_to_the_leaves(entry: Json) -> None:
    """The first switch takes them, a reader of the whole route does not."""
    split_tree(bytes.fromhex(entry["route"]))
    with pytest.raises(RouteError):
        decode_tree(bytes.fromhex(entry["route"]))


@pytest.mark.parametrize("entry", _named("class_d"))
def test_class_d(entry: Json) -> None:
    """MAC address and group number."""
    address = IPv4Address(entry["address"])
    assert class_d_mac(address).hex() == entry["mac"]
    assert group_of_class_d(address) == entry["group"]


def test_class_d_refuses_other_addresses() -> None:
    """The error names the value and the range."""
    for map_address in (class_d_mac, group_of_class_d):
        with pytest.raises(ValueError, match=r"10\.0\.0\.1 .*224\.0\.0\.0 to 239\.255\.255\.255"):
            map_address(IPv4Address("10.0.0.1"))
    assert is_link_local(IPv4Address("224.0.0.251"))
    assert not is_link_local(IPv4Address("224.0.1.0"))


@pytest.mark.parametrize(
    ("branches", "text"),
    [
        ((), "no branch, a switch needs 1 to 16"),
        ((Branch(254),), "port 254 is outside 0..253"),
        ((Branch(-1),), "port -1 is outside 0..253"),
        ((Branch(3), Branch(3)), "port 3 is named twice"),
        (tuple(Branch(port) for port in range(17)), "17 branches at one switch, at most 16"),
        (
            tuple(Branch(port, tuple(Branch(leaf) for leaf in range(8))) for port in range(15)),
            "271 bytes, at most 255 fit; split the tree",
        ),
    ],
)
def test_encoder_errors_name_value_and_bound(branches: tuple[Branch, ...], text: str) -> None:
    with pytest.raises(RouteError, match=text):
        encode_tree(branches)


def test_worm_refuses_a_long_route() -> None:
    """256 bytes do not fit route_len."""
    with pytest.raises(ValueError, match="route has 256 bytes, at most 255 fit"):
        Worm(kind=0, route=bytes(256)).to_frame()


trees = st.recursive(
    st.just(()),
    lambda sub: st.dictionaries(st.integers(0, PORT_MAX), sub, min_size=1, max_size=MAX_BRANCHES).map(
        lambda chosen: tuple(Branch(port, chosen[port]) for port in sorted(chosen))
    ),
    max_leaves=40,
).filter(bool)


@given(trees)
def test_any_tree_survives_the_trip(branches: tuple[Branch, ...]) -> None:
    """decode is the inverse of encode, and every copy's route is a TREE route or empty."""
    try:
        route = encode_tree(branches)
    except RouteError as error:
        if "bytes" not in str(error):
            raise
        return
    assert decode_tree(route) == branches
    assert [(port, decode_tree(sub) if sub else ()) for port, sub in split_tree(route)] == [
        (branch.port, branch.branches) for branch in branches
    ]


@given(st.binary(max_size=300))
def test_split_tree_never_crashes(route: bytes) -> None:
    """Any bytes either split into copies within the rules or raise RouteError."""
    try:
        copies = split_tree(route)
    except RouteError:
        return
    ports = [port for port, _ in copies]
    assert ports == sorted(set(ports))
    assert 1 <= len(ports) <= MAX_BRANCHES
    assert ports[-1] <= PORT_MAX
    again = b"".join(bytes([port, max(0, len(sub) - 1)]) + sub[:-1] for port, sub in copies) + b"\xff"
    assert again == route


@given(st.binary(max_size=200))
def test_decode_frame_never_crashes(data: bytes) -> None:
    """Any bytes are a worm or a WormError."""
    try:
        worm = decode_frame(data)
    except WormError:
        return
    assert worm.to_frame() == data


@given(st.binary(max_size=64))
def test_checksum_makes_the_sum_ffff(data: bytes) -> None:
    """RFC 1071: data with its checksum appended sums to all ones, so its own checksum is 0."""
    padded = data + bytes(len(data) % 2)
    assert internet_checksum(padded + internet_checksum(data).to_bytes(2, "big")) == 0
