"""IGMP reports: what hosts say is kept by address and port, and anything else is refused and counted."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import struct

import pytest
from controller_lab.running import rest, running
from hypothesis import given
from hypothesis import strategies as st
from wormcast.discovery import igmp
from wormcast.discovery.igmp import IgmpError, IgmpMembers, read_reports
from wormcast.network.ids import PortId, SwitchId

GROUP = ipaddress.IPv4Address("239.1.2.3")
OTHER = ipaddress.IPv4Address("232.7.7.7")
PLACE = (SwitchId(1), PortId(4))


def checksum(message: bytes) -> int:
    total = sum(struct.unpack(f"!{len(message) // 2}H", message))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(message: bytes, *, protocol: int = 2, options: bytes = b"\x94\x04\0\0", padding: int = 14) -> bytes:
    """An IGMP message as Linux sends it: with the router alert option, padded to the shortest frame."""
    message = message[:2] + struct.pack("!H", checksum(message[:2] + b"\0\0" + message[4:])) + message[4:]
    header = struct.pack(
        "!BBHHHBBH4s4s",
        0x40 | (20 + len(options)) // 4,
        0xC0,
        20 + len(options) + len(message),
        0,
        0,
        1,
        protocol,
        0,
        ipaddress.IPv4Address("10.0.0.1").packed,
        ipaddress.IPv4Address("224.0.0.22").packed,
    )
    return (
        b"\x01\0\x5e\0\0\x16" + b"\x02\0\0\0\0\x01" + b"\x08\0" + header + options + message + b"\0" * padding
    )


def v2(kind: int, group: ipaddress.IPv4Address) -> bytes:
    return frame(struct.pack("!BBH4s", kind, 0, 0, group.packed))


def v3(*records: tuple[int, ipaddress.IPv4Address, int]) -> bytes:
    """Records of kind, group and number of sources."""
    body = b"".join(
        struct.pack("!BBH4s", kind, 0, sources, group.packed) + b"\x0a\0\0\x09" * sources
        for kind, group, sources in records
    )
    return frame(struct.pack("!BBHHH", 0x22, 0, 0, 0, len(records)) + body)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (v2(0x12, GROUP), [(GROUP, True)]),
        (v2(0x16, GROUP), [(GROUP, True)]),
        (v2(0x17, GROUP), [(GROUP, False)]),
        (v2(0x11, GROUP), []),
        (v3((4, GROUP, 0), (3, OTHER, 0)), [(GROUP, True), (OTHER, False)]),
        (v3((2, GROUP, 2), (1, OTHER, 1)), [(GROUP, True), (OTHER, True)]),
        (v3((5, OTHER, 2), (6, GROUP, 1)), [(OTHER, True)]),
        (v3((4, ipaddress.IPv4Address("224.0.0.251"), 0)), []),
        (v3((4, ipaddress.IPv4Address("10.0.0.5"), 0)), []),
    ],
)
def test_reports_of_all_versions_are_read(
    sent: bytes, read: list[tuple[ipaddress.IPv4Address, bool]]
) -> None:
    assert list(read_reports(sent)) == read


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "not IPv4"),
        (v2(0x16, GROUP)[:30], "not IPv4"),
        (frame(b"\x16\0\0\0" + GROUP.packed, protocol=17), "not IGMP"),
        (frame(b"\x16\0\0\0"), "IGMP cut short"),
        (frame(struct.pack("!BBHHH", 0x22, 0, 0, 0, 9)), "IGMP cut short"),
        (v2(0x16, GROUP).replace(GROUP.packed, OTHER.packed), "IGMP checksum"),
    ],
)
def test_what_is_no_report_is_refused_with_the_reason(sent: bytes, reason: str) -> None:
    with pytest.raises(IgmpError, match=reason):
        list(read_reports(sent))


@given(st.binary(max_size=120))
def test_no_bytes_do_more_than_be_refused(noise: bytes) -> None:
    members = IgmpMembers()
    for sent in (
        noise,
        v2(0x16, GROUP)[:14] + noise,
        frame(b"\x22\0\0\0" + noise + b"\0" * (len(noise) % 2)),
    ):
        with contextlib.suppress(IgmpError):
            members.handle(sent, PLACE)


def test_members_come_go_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(igmp, "MEMBERSHIPS_MAX", 2)
    members = IgmpMembers()
    for port in (4, 4, 5):
        members.handle(v2(0x16, GROUP), (SwitchId(1), PortId(port)))
    assert members.members() == [(GROUP, (1, 4)), (GROUP, (1, 5))]
    members.handle(v2(0x16, OTHER), PLACE)
    assert members.overflows == 1
    members.handle(v2(0x17, GROUP), PLACE)
    members.handle(v2(0x16, OTHER), PLACE)
    assert members.members() == [(OTHER, (1, 4)), (GROUP, (1, 5))]


def test_packet_ins_are_shown_over_rest() -> None:
    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            controller.packet_received(SwitchId(1), PortId(4), v3((4, GROUP, 0)))
            controller.packet_received(SwitchId(1), PortId(4), v3((4, GROUP, 0))[:40])
            answer = (await client.get("igmp")).json()
            assert answer == {"members": [{"group": "239.1.2.3", "switch": 1, "port": 4}]}
            assert sum(controller.igmp_rejected.values()) == 1
            assert 'wormcast_igmp_rejected_total{reason="' in (await client.get("metrics")).text
            controller.packet_received(SwitchId(1), PortId(4), v2(0x17, GROUP))
            assert (await client.get("igmp")).json() == {"members": []}

    asyncio.run(main())
