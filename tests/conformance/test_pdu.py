"""The Scapy layers of the host protocol, by themselves and against pdu.json."""

import re
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.layers import Worm
from oracle.pdu import (
    PDU_LENGTH_MIN,
    FailedMember,
    FailedSet,
    Pdu,
    PduAck,
    PduAckInSets,
    PduData,
    PduNack,
    PduProbe,
    PduRepair,
    PduStatus,
    SeqRange,
    pdu_crc,
    pdu_fault,
)
from rig.targets import REPOSITORY
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from vector_files import load_vectors

Json = dict[str, Any]
REASONS = ("truncated", "pdu_checksum", "pdu_version", "pdu_type", "pdu_malformed")
DOCUMENT = load_vectors("pdu.json")
BODIES = [
    pytest.param(PduData(seq=1), 0, id="DATA without bytes"),
    pytest.param(PduData(seq=1) / Raw(b"hello"), 0, id="DATA that is padded"),
    pytest.param(PduData(seq=2**32 - 1, stable_offset=65535, tx_time=7) / Raw(bytes(300)), 0, id="DATA"),
    pytest.param(
        PduAck(
            epoch=1,
            cumulative=5,
            ranges=[SeqRange(start=7, end=9), SeqRange(start=11, end=12)],
            failed=[FailedMember(host=3, reason="no-space", at=4)],
        ),
        1,
        id="ACK with lists",
    ),
    pytest.param(PduAck(), 1, id="ACK"),
    pytest.param(PduNack(seq=4), 2, id="NACK"),
    pytest.param(PduRepair(child=1, start=2, end=3), 3, id="REPAIR"),
    pytest.param(PduStatus(stable=4), 4, id="STATUS"),
    pytest.param(PduProbe(way=2, attempt=1), 5, id="PROBE"),
]


@pytest.mark.parametrize(("body", "number"), BODIES)
@pytest.mark.parametrize("origin", [None, 5])
def test_pdu_survives_the_trip(body: Packet, number: int, origin: int | None) -> None:
    """Built, dissected and built again: same fields, same bytes, right type, CRC and padding."""
    fields: dict[str, Any] = {} if origin is None else {"flags": "origin", "origin": origin}
    built = bytes(Ether() / Worm(source=3, route_bytes=b"\x01") / Pdu(group=7, stream=9, **fields) / body)
    again = Ether(built)
    pdu = again[Pdu]
    assert bytes(again) == built
    assert (pdu.type, pdu.group, pdu.stream) == (number, 7, 9)
    assert (pdu.origin if origin is not None else None) == origin
    assert pdu.crc_ok()
    assert len(pdu) >= PDU_LENGTH_MIN
    assert type(pdu.payload) is type(body)
    assert bytes(pdu.payload) == bytes(body), "padding is taken off"


def test_crc_covers_the_source_of_the_worm() -> None:
    """Switches compute the worm checksum anew, so the source is protected by the CRC of the PDU."""
    frame = Ether(bytes(Ether() / Worm(source=3) / Pdu(group=7) / PduNack(seq=1)))
    frame[Worm].source = 4
    frame[Worm].checksum = None
    again = Ether(bytes(frame))
    assert again[Worm].checksum_ok()
    assert not again[Pdu].crc_ok()


def test_crc_covers_every_byte() -> None:
    """Any byte of the PDU changed, and the CRC no longer fits."""
    good = bytes(Ether() / Worm(source=3) / Pdu(group=7) / PduData(seq=1) / Raw(b"some bytes of a message"))
    for at in range(14 + 12, len(good)):
        bad = good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1 :]
        assert not Ether(bad)[Pdu].crc_ok(), at


def _named(member: str) -> list[Any]:
    return [pytest.param(entry, id=entry["name"]) for entry in DOCUMENT[member]]


def _flags(entry: Json) -> str:
    """The flags of an entry, but for padding, which is not asked for."""
    bits = {
        "first_echo_order_wanted": entry.get("first")
        or entry.get("echo") is not None
        or entry.get("order_wanted"),
        "last_sets_order_next": entry.get("last") or entry.get("sets") or entry.get("order_next"),
        "class2_slow": entry.get("class") == 2 or entry.get("slow"),
        "ack_now": entry.get("ack_now"),
        "cancel_choice": entry.get("cancel") or (entry["type"] == "STATUS" and entry["choice"]),
        "unclaimed_choice": entry.get("unclaimed") or (entry["type"] == "DATA" and entry["choice"]),
        "origin": entry["type"] != "DATA" or entry["origin"] != entry["source"],
    }
    return "+".join(name for name, is_set in bits.items() if is_set)


def _body(entry: Json) -> Packet:
    """The body layer of an entry."""
    match entry["type"]:
        case "DATA":
            fields = {name: entry[name] for name in ("seq", "stable_offset", "tx_time")}
            payload = bytes.fromhex(entry["payload"])
            return PduData(**fields) / Raw(payload) if payload else PduData(**fields)
        case "ACK":
            names = ["epoch", "receiver", "cumulative", "stable"]
            names += ["packets", "duplicates", "congestion", "retransmissions"]
            fields = {name: entry[name] for name in names} | (entry["echo"] or {})
            ranges = [SeqRange(start=start, end=end) for start, end in entry["ranges"]]
            if entry["sets"]:
                sets = [FailedSet(**it | {"members": bytes.fromhex(it["members"])}) for it in entry["sets"]]
                return PduAckInSets(**fields, ranges=ranges, failed=sets)
            failed = [FailedMember(**member) for member in entry["failed"]]
            return PduAck(**fields, ranges=ranges, failed=failed)
        case "NACK":
            return PduNack(seq=entry["seq"])
        case "REPAIR":
            return PduRepair(child=entry["child"], start=entry["from"], end=entry["to"])
        case "PROBE":
            return PduProbe(way=entry["way"], attempt=entry["attempt"])
    return PduStatus(stable=entry["stable"])


def test_each_flag_is_set_in_one_vector_and_not_in_another() -> None:
    """Else a codec that forgot it would pass."""
    seen = defaultdict(set)
    for entry in DOCUMENT["pdus"]:
        for field, value in entry.items():
            if type(value) is bool:
                seen[entry["type"], field].add(value)
    assert seen
    assert not {field: values for field, values in seen.items() if len(values) < 2}


def test_the_flags_of_the_specification_are_those_of_the_codec() -> None:
    """By name and bit; the text below the table names those that all types have."""
    text = (REPOSITORY / "wire" / "SPEC.md").read_text().split("### 5.1 Flags")[1].split("###")[0]
    said = {
        (name, int(bit))
        for bit, cells in re.findall(r"(?m)^\| (\d) \|(.*)$", text)
        for name in re.findall(r"\| ([A-Z][A-Z_0-9]+)", f"|{cells}")
    }
    said |= {(name, int(bit)) for bit, name in re.findall(r"bit (\d) (?:is )?([A-Z]+)", text)}
    code = (REPOSITORY / "wire" / "src" / "pdu_flags.rs").read_text()
    constants = re.findall(r"const (?:DATA_|STATUS_)?(\w+): u8 = 1 << (\d);", code)
    assert len(constants) == code.count("pub const")
    assert said == {(name, int(bit)) for name, bit in constants}


@pytest.mark.parametrize("entry", _named("pdus"))
def test_scapy_writes_the_vectors(entry: Json) -> None:
    """The fields give the bytes, CRC, type and padding left to the layer."""
    common = {"group": entry["group"], "stream": entry["stream"], "flags": _flags(entry)}
    common["choice"] = entry.get("choice", 0)
    worm = Worm(source=entry["source"]) / Pdu(origin=entry["origin"], **common) / _body(entry)
    assert bytes(worm[Pdu]).hex() == entry["pdu"]
    assert pdu_fault(entry["source"], bytes(worm[Pdu])) is None


@pytest.mark.parametrize("entry", _named("pdus"))
def test_scapy_reads_the_vectors(entry: Json) -> None:
    """The bytes give the fields."""
    worm = bytes(Worm(source=entry["source"]) / Raw(bytes.fromhex(entry["pdu"])))
    pdu = Worm(worm)[Pdu]
    assert pdu.crc_ok()
    assert (pdu.group, pdu.stream) == (entry["group"], entry["stream"])
    assert (entry["source"] if pdu.origin is None else pdu.origin) == entry["origin"]
    assert (pdu.choice or 0) == entry.get("choice", 0)
    assert set(str(pdu.flags).split("+")) - {"padded", ""} == set(_flags(entry).split("+")) - {""}
    expected = _body(entry)
    assert type(pdu.payload) is type(expected)
    assert bytes(pdu.payload) == bytes(expected)
    for name in expected.fields:
        if name not in ("ranges", "failed"):
            assert pdu.payload.getfieldval(name) == expected.getfieldval(name), name
    for name in ("ranges", "failed"):
        if name in expected.fields:
            ours, theirs = expected.getfieldval(name), pdu.payload.getfieldval(name)
            assert [bytes(item) for item in theirs] == [bytes(item) for item in ours]
    assert bytes(Worm(worm)) == worm


@pytest.mark.parametrize("entry", _named("invalid"))
def test_faults_are_found(entry: Json) -> None:
    """For the reason the vector gives; and Scapy shows such a PDU without failing."""
    assert pdu_fault(entry["source"], bytes.fromhex(entry["pdu"])) == entry["reason"]
    Worm(bytes(Worm(source=entry["source"]) / Raw(bytes.fromhex(entry["pdu"])))).show(dump=True)


@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_are_a_pdu_or_a_fault(data: bytes, with_crc: bool) -> None:
    """Neither the check nor the dissector fails on anything."""
    if with_crc and len(data) >= 8:
        data = data[:4] + pdu_crc(7, data).to_bytes(4, "big") + data[8:]
    assert pdu_fault(7, data) in {None, *REASONS}
    Worm(bytes(Worm(source=7) / Raw(data))).show(dump=True)
