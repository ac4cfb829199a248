"""Announcements as agents send them: LLDP, written down here a second time."""

from __future__ import annotations

from wormcast.discovery.lldp import Announcement


def _tlv(kind: int, value: bytes) -> bytes:
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def encode_announcement(announcement: Announcement) -> bytes:
    tlvs = [
        _tlv(1, b"\7host:" + announcement.name.encode()),
        _tlv(2, b"\3" + announcement.mac),
        _tlv(3, announcement.ttl_s.to_bytes(2, "big")),
    ]
    if (proof := announcement.proof) is not None:
        tlvs.append(_tlv(127, b"\0\x57\x43\2" + proof.number.to_bytes(8, "big") + proof.check))
    head = bytes.fromhex("0180c200000e") + announcement.mac + b"\x88\xcc"
    return (head + b"".join(tlvs) + _tlv(0, b"")).ljust(60, b"\0")
