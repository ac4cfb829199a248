"""Records of hops in traced worms (SPEC.md §2.2)."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

from wormcast.wire import TRACE_QUEUE_MAX, TRACE_STAY_MAX, DropReason

from oracle.checksum import internet_checksum
from oracle.codec import TRACE_HEADER_LEN, Worm, WormError, decode_frame

RECORD_LEN = 16
_RECORD = struct.Struct(">HBBIHI")  # the port out and 24 bits of time in one


@dataclass(frozen=True)
class Record:
    """What a switch says of a worm that leaves it; numbers too large for their field stand at its end."""

    switch: int
    hop: int
    ingress_port: int
    egress_port: int
    stay_us: int = 0
    queue: int = 0
    left_us: int = 0

    def to_bytes(self) -> bytes:
        """The sixteen bytes, check included."""
        last = self.egress_port << 24 | min(self.stay_us, TRACE_STAY_MAX)
        queue = min(self.queue, TRACE_QUEUE_MAX)
        head = _RECORD.pack(self.switch, self.hop, self.ingress_port, last, queue, self.left_us & 0xFFFFFFFF)
        return head + internet_checksum(head).to_bytes(2, "big")


def decode_record(data: bytes) -> Record | None:
    """The record, or None where its check is wrong."""
    if internet_checksum(data[:14]) != int.from_bytes(data[14:16], "big"):
        return None
    switch, hop, ingress_port, last, queue, left_us = _RECORD.unpack(data[:14])
    return Record(switch, hop, ingress_port, last >> 24, last & TRACE_STAY_MAX, queue, left_us)


def encode_trace(records: Iterable[Record], room: int = 64) -> bytes:
    """Head and records; these are given oldest first."""
    written = [record.to_bytes() for record in records]
    return bytes([len(written), room]) + b"".join(reversed(written))


def split_trace(worm: Worm) -> tuple[int, list[bytes], bytes]:
    """Room, records newest first, and what follows them. Raises WormError."""
    count, room = worm.payload[0], worm.payload[1]
    end = TRACE_HEADER_LEN + count * RECORD_LEN
    if len(worm.payload) < end:
        raise WormError(
            DropReason.TRUNCATED, f"{count} records take {end} bytes, {len(worm.payload)} follow the route"
        )
    starts = range(TRACE_HEADER_LEN, end, RECORD_LEN)
    return room, [worm.payload[at : at + RECORD_LEN] for at in starts], worm.payload[end:]


def believed(records: Iterable[bytes], hops: int) -> list[Record]:
    """Those that a host believes, oldest first; they are given newest first."""
    found: list[Record] = []
    for data in records:
        record = decode_record(data)
        below = found[-1].hop if found else hops + 1
        if record is not None and 1 <= record.hop < below:
            found.append(record)
    return found[::-1]


def add_record(worm: Worm, record: Record) -> Worm:
    """The worm with one record more, if it is traced and has room."""
    if not worm.is_traced() or worm.payload[0] >= worm.payload[1]:
        return worm
    head = bytes([worm.payload[0] + 1, worm.payload[1]])
    return replace(worm, payload=head + record.to_bytes() + worm.payload[TRACE_HEADER_LEN:])


def without_times(before: bytes, after: bytes) -> bytes:
    """The frame `after` a switch with the times of its records at 0.

    Their check must be right; else the frame stays as it is. `before` is what came in.
    """
    try:
        came, left = decode_frame(before), decode_frame(after)
    except WormError:
        return after
    if not came.is_traced() or not left.is_traced():
        return after
    added = left.payload[0] - came.payload[0]
    payload = left.payload[:TRACE_HEADER_LEN]
    for at in range(TRACE_HEADER_LEN, TRACE_HEADER_LEN + added * RECORD_LEN, RECORD_LEN):
        record = decode_record(left.payload[at : at + RECORD_LEN])
        if record is None:
            return after
        payload += replace(record, stay_us=0, left_us=0).to_bytes()
    return replace(left, payload=payload + left.payload[len(payload) :]).to_frame()
