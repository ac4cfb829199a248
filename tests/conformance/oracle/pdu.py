"""Scapy layers of the host protocol (SPEC.md §5): `Worm(source=3)/Pdu(group=7)/PduData(seq=1)/b"…"`.

CRC, origin flag and padding are filled in on the way out. The CRC covers the source of the
worm around the PDU, so a Pdu built without a Worm below it counts the source as 0.
"""

import zlib
from typing import Any

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    ConditionalField,
    FieldLenField,
    FlagsField,
    IntField,
    PacketListField,
    ShortField,
    StrLenField,
    XIntField,
)
from scapy.packet import Packet, bind_layers
from wormcast.wire import ETHERTYPE_HOST

from oracle.layers import Worm

PDU_VERSION = 1
PDU_LENGTH_MIN = 34  # with Ethernet and worm header 60 bytes, so that no link pads
PADDING_MAX = 22
COMMON_LENGTH = 12
ORIGIN_LENGTH = 2
ACK_LENGTH = 46  # without its lists
LIST_ENTRY_LENGTH = 8
RANGES_MAX = 32
FAILED_MAX = 16
SETS_MAX = 8
SET_BYTES_MAX = 128
CHOICE_LENGTH = 1
CHOICES_MAX = 16
FLAG_LAST = 0x02
FLAG_SETS = 0x02
FLAG_CANCEL = 0x10
FLAG_PADDED = 0x20
FLAG_ORIGIN = 0x80
FLAGS_CHOICE = {0: 0x40, 4: 0x10}
"""By type: the choice field is present."""
# A bit means one thing in DATA and another in ACK where two names are given.
FLAG_NAMES = [
    "first_echo_order_wanted",
    "last_sets_order_next",
    "class2_slow",
    "ack_now",
    "cancel_choice",
    "padded",
    "unclaimed_choice",
    "origin",
]
TYPES = {0: "DATA", 1: "ACK", 2: "NACK", 3: "REPAIR", 4: "STATUS", 5: "PROBE"}
FAIL_REASONS = {
    1: "silent",
    2: "removed",
    3: "late",
    4: "no-space",
    5: "storage",
    6: "cancelled",
    7: "no-route",
    8: "orphaned",
    9: "differs",
    10: "too-slow",
}


def pdu_crc(source: int, pdu: bytes) -> int:
    """CRC-32 (IEEE 802.3) over the worm's source and the PDU, its CRC field taken as 0."""
    return zlib.crc32(source.to_bytes(2, "big") + pdu[:4] + bytes(4) + pdu[8:])


def pdu_fault(source: int, pdu: bytes) -> str | None:
    """Why a host refuses a PDU of a worm from `source`, or None where it takes it.

    One of `truncated`, `pdu_checksum`, `pdu_version`, `pdu_type`, `pdu_malformed`: the first
    in this order of checks: length, CRC, version, padding, body.
    """
    if len(pdu) < PDU_LENGTH_MIN:
        return "truncated"
    if pdu_crc(source, pdu) != int.from_bytes(pdu[4:8], "big"):
        return "pdu_checksum"
    if pdu[0] >> 4 != PDU_VERSION:
        return "pdu_version"
    flags = pdu[1]
    end = len(pdu)
    if flags & FLAG_PADDED:
        if not 1 <= pdu[-1] <= PADDING_MAX:
            return "pdu_malformed"
        end -= pdu[-1]
    start = COMMON_LENGTH + (ORIGIN_LENGTH if flags & FLAG_ORIGIN else 0)
    if flags & FLAGS_CHOICE.get(pdu[0] & 0xF, 0):
        if not 1 <= pdu[start] < CHOICES_MAX:
            return "pdu_malformed"
        start += CHOICE_LENGTH
    if start > end:
        return "pdu_malformed"
    body = pdu[start:end]
    match TYPES.get(pdu[0] & 0xF):
        case "DATA":
            fits = len(body) >= 10 and not (flags & FLAG_CANCEL and not flags & FLAG_LAST)
        case "ACK":
            fits = len(body) >= ACK_LENGTH and _ack_lists_fit(body, bool(flags & FLAG_SETS))
        case "NACK" | "STATUS" | "PROBE":
            fits = len(body) == 4
        case "REPAIR":
            fits = len(body) == 10
        case _:
            return "pdu_type"
    return None if fits else "pdu_malformed"


def _ack_lists_fit(body: bytes, in_sets: bool) -> bool:
    ranges, failed = body[44], body[45]
    if ranges > RANGES_MAX or failed > (SETS_MAX if in_sets else FAILED_MAX):
        return False
    if not in_sets:
        return len(body) == ACK_LENGTH + LIST_ENTRY_LENGTH * (ranges + failed)
    at = ACK_LENGTH + LIST_ENTRY_LENGTH * ranges
    for _ in range(failed):
        members = int.from_bytes(body[at : at + 2], "big")
        if not 1 <= members <= SET_BYTES_MAX:
            return False
        at += LIST_ENTRY_LENGTH + members
    return failed > 0 and len(body) == at


class Pdu(Packet):  # type: ignore[misc]
    """The common header. `type` follows from the layer above it where it is left out."""

    name = "Pdu"
    fields_desc = [  # noqa: RUF012
        BitField("version", PDU_VERSION, 4),
        BitEnumField("type", None, 4, TYPES),
        FlagsField("flags", 0, 8, FLAG_NAMES),
        ShortField("group", 0),
        XIntField("crc", None),
        IntField("stream", 0),
        ConditionalField(ShortField("origin", 0), lambda pdu: bool(int(pdu.flags) & FLAG_ORIGIN)),
        ConditionalField(ByteField("choice", 0), lambda pdu: pdu.has_choice()),
    ]

    def has_choice(self) -> bool:
        """Whether the flags say so, which those of each type do in their own way."""
        number = _TYPE_OF_BODY.get(type(self.payload), 0) if self.type is None else self.type
        return bool(int(self.flags) & FLAGS_CHOICE.get(number, 0))

    def post_build(self, header: bytes, body: bytes) -> bytes:
        """Fills in type, padding and CRC."""
        pdu = bytearray(header + body)
        if self.type is None:
            pdu[0] = self.version << 4 | _TYPE_OF_BODY.get(type(self.payload), 0)
        pdu[1] &= ~FLAG_PADDED & 0xFF
        if len(pdu) < PDU_LENGTH_MIN:
            pdu[1] |= FLAG_PADDED
            missing = PDU_LENGTH_MIN - len(pdu)
            pdu += bytes(missing - 1) + bytes([missing])
        if self.crc is None:
            pdu[4:8] = pdu_crc(self._source(), bytes(pdu)).to_bytes(4, "big")
        return bytes(pdu)

    def do_dissect(self, data: bytes) -> bytes:
        """Keeps no copy of the bytes: Scapy would build from it and leave post_build out."""
        rest: bytes = super().do_dissect(data)
        self.raw_packet_cache = None
        return rest

    def extract_padding(self, remaining: bytes) -> tuple[bytes, None]:
        """Takes the padding off; building the PDU again puts it back."""
        if int(self.flags) & FLAG_PADDED and remaining and 0 < remaining[-1] <= len(remaining):
            return remaining[: -remaining[-1]], None
        return remaining, None

    def guess_payload_class(self, payload: bytes) -> Any:
        """The body layer of the type."""
        if self.type == _TYPE_OF_BODY[PduAck] and int(self.flags) & FLAG_SETS:
            return PduAckInSets
        return _BODIES.get(self.type) or super().guess_payload_class(payload)

    def crc_ok(self) -> bool:
        """Whether the CRC is that of this PDU inside its worm."""
        data = bytes(self)
        return pdu_crc(self._source(), data) == int.from_bytes(data[4:8], "big")

    def _source(self) -> int:
        return int(self.underlayer.source) if isinstance(self.underlayer, Worm) else 0


class PduData(Packet):  # type: ignore[misc]
    """DATA: a packet of a stream; its bytes are the payload."""

    name = "PduData"
    fields_desc = [IntField("seq", 0), ShortField("stable_offset", 0), IntField("tx_time", 0)]  # noqa: RUF012


class SeqRange(Packet):  # type: ignore[misc]
    """Packets start..end, the end not included."""

    name = "SeqRange"
    fields_desc = [IntField("start", 0), IntField("end", 0)]  # noqa: RUF012

    def extract_padding(self, remaining: bytes) -> tuple[bytes, bytes]:
        """An element of a list takes its own bytes only."""
        return b"", remaining


class FailedMember(Packet):  # type: ignore[misc]
    """A member that does not have a message, and why."""

    name = "FailedMember"
    fields_desc = [  # noqa: RUF012
        ShortField("host", 0),
        ByteEnumField("reason", 0, FAIL_REASONS),
        ByteField("reserved", 0),
        IntField("at", 0),
    ]

    def extract_padding(self, remaining: bytes) -> tuple[bytes, bytes]:
        """An element of a list takes its own bytes only."""
        return b"", remaining


class FailedSet(Packet):  # type: ignore[misc]
    """Members that do not have a message for one reason: bits by their place in the plan."""

    name = "FailedSet"
    fields_desc = [  # noqa: RUF012
        FieldLenField("length", None, length_of="members", fmt="H"),
        ByteEnumField("reason", 0, FAIL_REASONS),
        ByteField("reserved", 0),
        IntField("at", 0),
        StrLenField("members", b"", length_from=lambda failed: failed.length),
    ]

    def extract_padding(self, remaining: bytes) -> tuple[bytes, bytes]:
        """An element of a list takes its own bytes only."""
        return b"", remaining


_ACK_FIELDS = [
    IntField("epoch", 0),
    IntField("receiver", 0),
    IntField("cumulative", 0),
    IntField("stable", 0),
    IntField("tx_time", 0),
    IntField("delay", 0),
    IntField("forward_delay", 0),
    IntField("packets", 0),
    IntField("duplicates", 0),
    IntField("congestion", 0),
    IntField("retransmissions", 0),
    FieldLenField("range_count", None, count_of="ranges", fmt="B"),
    FieldLenField("failed_count", None, count_of="failed", fmt="B"),
    PacketListField("ranges", [], SeqRange, count_from=lambda ack: ack.range_count),
]


class PduAck(Packet):  # type: ignore[misc]
    """ACK: what a child and all below it hold."""

    name = "PduAck"
    fields_desc = [  # noqa: RUF012
        *_ACK_FIELDS,
        PacketListField("failed", [], FailedMember, count_from=lambda ack: ack.failed_count),
    ]


class PduAckInSets(Packet):  # type: ignore[misc]
    """ACK with flag SETS: failed members come in sets, of which `failed_count` is the number."""

    name = "PduAckInSets"
    fields_desc = [  # noqa: RUF012
        *_ACK_FIELDS,
        PacketListField("failed", [], FailedSet, count_from=lambda ack: ack.failed_count),
    ]


class PduNack(Packet):  # type: ignore[misc]
    """NACK: no buffer for a packet."""

    name = "PduNack"
    fields_desc = [IntField("seq", 0)]  # noqa: RUF012


class PduRepair(Packet):  # type: ignore[misc]
    """REPAIR: a parent asks the origin to serve a child."""

    name = "PduRepair"
    fields_desc = [ShortField("child", 0), IntField("start", 0), IntField("end", 0)]  # noqa: RUF012


class PduStatus(Packet):  # type: ignore[misc]
    """STATUS: what every member holds."""

    name = "PduStatus"
    fields_desc = [IntField("stable", 0)]  # noqa: RUF012


class PduProbe(Packet):  # type: ignore[misc]
    """PROBE: shows the way of a worm to whoever gets it."""

    name = "PduProbe"
    fields_desc = [ShortField("way", 0), ShortField("attempt", 0)]  # noqa: RUF012


_BODIES: dict[int, type[Packet]] = {
    0: PduData,
    1: PduAck,
    2: PduNack,
    3: PduRepair,
    4: PduStatus,
    5: PduProbe,
}
_TYPE_OF_BODY = {body: number for number, body in _BODIES.items()} | {PduAckInSets: 1}

bind_layers(Worm, Pdu, next=ETHERTYPE_HOST)
