"""LLDP frames (IEEE 802.1AB): probes between switches, announcements of hosts."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace

from wormcast.network.ids import LLDP_ETHERTYPE, PortId, SwitchId

LLDP_DESTINATION = bytes.fromhex("0180c200000e")
"""Nearest bridge: no switch forwards it (IEEE 802.1AB §7.1)."""

PROBE_SOURCE = bytes.fromhex("02574f524d00")
_TLV_END, _TLV_CHASSIS, _TLV_PORT, _TLV_TTL, _TLV_ORGANISATION = 0, 1, 2, 3, 127
_CHASSIS_LOCAL, _PORT_MAC, _PORT_LOCAL = 7, 3, 7
_ORGANISATION = bytes.fromhex("005743")
_PROBE_SUBTYPE, _PROOF_SUBTYPE = b"\x01", b"\x02"
_NONCE_BYTES = 8
CHECK_BYTES = 16
"""Of an HMAC with SHA-256 so many bytes are sent."""
TTL_S = 2
FRAME_BYTES_MIN = 60
NAME_BYTES_MAX = 200
"""Longest host name, in UTF-8 bytes; a chassis id holds 255 with the prefix."""


class LldpError(ValueError):
    """A frame that is no probe and no announcement; the text is the reason to count."""


@dataclass(frozen=True)
class Probe:
    """Sent by the controller out of a switch port."""

    switch: SwitchId
    port: PortId
    nonce: int = 0
    """Another one in each probe."""


@dataclass(frozen=True)
class Proof:
    """Shows that an announcement was made by the agent that has a host's secret, after it registered last."""

    number: int
    """Grows with each announcement."""
    check: bytes


@dataclass(frozen=True)
class Announcement:
    """Sent by the agent of a host."""

    name: str
    mac: bytes
    ttl_s: int
    """0: the host is leaving."""
    proof: Proof | None = None


def encode_probe(probe: Probe, key: bytes) -> bytes:
    """A signed probe; only a controller with the same key takes it for one."""
    chassis = f"switch:{probe.switch}".encode()
    port = str(probe.port).encode()
    nonce = probe.nonce.to_bytes(_NONCE_BYTES, "big")
    return _frame(
        PROBE_SOURCE,
        _tlv(_TLV_CHASSIS, bytes([_CHASSIS_LOCAL]) + chassis),
        _tlv(_TLV_PORT, bytes([_PORT_LOCAL]) + port),
        _tlv(_TLV_TTL, TTL_S.to_bytes(2, "big")),
        _tlv(
            _TLV_ORGANISATION,
            _ORGANISATION + _PROBE_SUBTYPE + nonce + _check(key, chassis + b"/" + port + b"/" + nonce),
        ),
    )


def prove(announcement: Announcement, secret: bytes, challenge: bytes, number: int) -> Announcement:
    """The announcement with its proof. `challenge`: as the controller answered the last registration."""
    head = challenge + number.to_bytes(_NONCE_BYTES, "big") + announcement.ttl_s.to_bytes(2, "big")
    check = _check(secret, head + announcement.mac + announcement.name.encode())
    return replace(announcement, proof=Proof(number, check))


def decode(frame: bytes, key: bytes) -> Probe | Announcement:
    """What a frame says; raises `LldpError`."""
    if len(frame) < 14 or frame[12:14] != LLDP_ETHERTYPE.to_bytes(2, "big"):
        raise LldpError("not LLDP")
    fields = _parse_tlvs(frame[14:])
    if [kind for kind, _ in fields[:3]] != [_TLV_CHASSIS, _TLV_PORT, _TLV_TTL]:
        raise LldpError("mandatory TLV missing")
    chassis, port, ttl = (value for _, value in fields[:3])
    if chassis[:1] != bytes([_CHASSIS_LOCAL]) or len(ttl) != 2 or not port:
        raise LldpError("foreign chassis")
    if chassis[1:].startswith(b"switch:"):
        return _decode_probe(chassis[1:], port, fields[3:], key)
    if chassis[1:].startswith(b"host:"):
        return _decode_announcement(chassis[6:], port, int.from_bytes(ttl, "big"), fields[3:])
    raise LldpError("foreign chassis")


def _decode_probe(chassis: bytes, port: bytes, rest: list[tuple[int, bytes]], key: bytes) -> Probe:
    for nonce, check in _own_fields(rest, _PROBE_SUBTYPE):
        if hmac.compare_digest(check, _check(key, chassis + b"/" + port[1:] + b"/" + nonce)):
            number = int.from_bytes(nonce, "big")
            return Probe(SwitchId(int(chassis.removeprefix(b"switch:"))), PortId(int(port[1:])), number)
    raise LldpError("probe of another controller")


def _decode_announcement(name: bytes, port: bytes, ttl_s: int, rest: list[tuple[int, bytes]]) -> Announcement:
    if port[0] != _PORT_MAC or len(port) != 7:
        raise LldpError("host without MAC")
    if not 1 <= len(name) <= NAME_BYTES_MAX:
        raise LldpError("host name length")
    proofs = [Proof(int.from_bytes(n, "big"), check) for n, check in _own_fields(rest, _PROOF_SUBTYPE)]
    try:
        return Announcement(name.decode(), port[1:], ttl_s, proofs[0] if proofs else None)
    except UnicodeDecodeError:
        raise LldpError("host name not UTF-8") from None


def _own_fields(fields: list[tuple[int, bytes]], subtype: bytes) -> list[tuple[bytes, bytes]]:
    """Number and check of the TLVs of this subtype."""
    head = _ORGANISATION + subtype
    found = [
        value.removeprefix(head) for kind, value in fields if kind == _TLV_ORGANISATION and value[:4] == head
    ]
    return [
        (value[:_NONCE_BYTES], value[_NONCE_BYTES:])
        for value in found
        if len(value) == _NONCE_BYTES + CHECK_BYTES
    ]


def _frame(source: bytes, *tlvs: bytes) -> bytes:
    frame = (
        LLDP_DESTINATION + source + LLDP_ETHERTYPE.to_bytes(2, "big") + b"".join(tlvs) + _tlv(_TLV_END, b"")
    )
    return frame.ljust(FRAME_BYTES_MIN, b"\0")


def _tlv(kind: int, value: bytes) -> bytes:
    if len(value) > 0x1FF:
        raise LldpError(f"TLV of {len(value)} bytes; 511 is the most")
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def _parse_tlvs(data: bytes) -> list[tuple[int, bytes]]:
    fields: list[tuple[int, bytes]] = []
    at = 0
    while True:
        if at + 2 > len(data):
            raise LldpError("truncated")
        head = int.from_bytes(data[at : at + 2], "big")
        kind, length = head >> 9, head & 0x1FF
        at += 2
        if kind == _TLV_END:
            return fields
        if at + length > len(data):
            raise LldpError("truncated")
        fields.append((kind, data[at : at + length]))
        at += length


def _check(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, hashlib.sha256)[:CHECK_BYTES]
