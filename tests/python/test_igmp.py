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
from wormcast.discovery.igmp import (
    LAST_MEMBER_S,
    MEMBERSHIP_S,
    IgmpError,
    IgmpFull,
    IgmpMembers,
    read_reports,
)
from wormcast.network.ids import PortId, SwitchId
from wormcast.network.topology import PortRef

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
            members.handle(sent, PLACE, 0.0)


def test_reports_are_bounded_for_a_port_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(igmp, "MEMBERSHIPS_MAX", 3)
    monkeypatch.setattr(igmp, "PORT_MEMBERSHIPS_MAX", 2)
    members, other = IgmpMembers(), (SwitchId(1), PortId(5))
    many = [ipaddress.IPv4Address(f"239.0.0.{n}") for n in range(5)]
    with pytest.raises(IgmpFull, match="port 4 of switch 1 has 2 addresses") as full:
        members.handle(v3(*((4, address, 0) for address in many)), PLACE, 0.0)
    assert (full.value.bound, members.overflows) == (2, 3)
    members.handle(v2(0x16, many[0]), PLACE, 1.0)  # again: not one more
    members.handle(v2(0x16, many[0]), other, 1.0)
    with pytest.raises(IgmpFull, match="the fabric has 3 addresses"):
        members.handle(v2(0x16, many[1]), other, 1.0)
    assert members.members(1.0) == [(many[0], PLACE), (many[0], other), (many[1], PLACE)]
    assert members.members(MEMBERSHIP_S) == [(many[0], PLACE), (many[0], other)], "repeated later"
    assert members.members(1.0 + MEMBERSHIP_S) == []
    members.handle(v2(0x16, many[4]), PLACE, 1.0 + MEMBERSHIP_S)
    assert members.overflows == 4, "what expired makes room"


def asked(due: list[tuple[PortRef, bytes]]) -> list[tuple[PortRef, ipaddress.IPv4Address]]:
    """Port and address of queries; 0.0.0.0 asks for all."""
    found = []
    for place, query in due:
        assert len(query) == 60
        ip, message = query[14:38], query[38:50]
        assert checksum(ip) == checksum(message) == 0
        assert (ip[0], ip[8], ip[9], message[0]) == (0x46, 1, 2, 0x11)
        group = ipaddress.IPv4Address(message[4:8])
        to = ipaddress.IPv4Address("224.0.0.1") if int(group) == 0 else group
        assert ip[16:20] == to.packed
        assert query[:6] == b"\x01\0\x5e" + bytes([to.packed[1] & 0x7F]) + to.packed[2:]
        assert list(read_reports(query)) == [], "our own queries say nothing"
        found.append((place, group))
    return found


def test_ports_where_something_is_wanted_are_asked_as_by_a_querier() -> None:
    members, times = IgmpMembers(), []
    assert members.poll_queries(0.0) == [], "nobody else is troubled"
    members.handle(v2(0x16, GROUP), PLACE, 10.0)
    for quarter in range(4 * 10, 4 * 700):
        now = quarter / 4
        for place, group in asked(members.poll_queries(now)):
            assert (place, group) == (PLACE, ipaddress.IPv4Address(0))
            times.append(now)
            if now < 400.0:
                members.handle(v3((2, GROUP, 0)), PLACE, now)  # the host answers
        members.expire(now)
    assert times == [41.25, 166.25, 291.25, 416.25, 541.25]
    assert members.members(700.0) == [], "it answers no more since 291.25"


@pytest.mark.parametrize("leave", [v2(0x17, GROUP), v3((3, GROUP, 0))], ids=["version 2", "version 3"])
def test_what_a_host_leaves_is_asked_for_until_nobody_wants_it(leave: bytes) -> None:
    members = IgmpMembers()
    members.handle(v2(0x16, GROUP), PLACE, 0.0)
    members.handle(leave, PLACE, 10.0)
    members.handle(leave, PLACE, 10.5)  # no longer for that
    assert members.members(11.9) == [(GROUP, PLACE)]
    assert [asked(members.poll_queries(at)) for at in (10.0, 10.5, 11.0, 11.5)] == [
        [(PLACE, GROUP)],
        [],
        [(PLACE, GROUP)],
        [],
    ]
    assert members.members(12.0) == []
    members.handle(v2(0x16, GROUP), PLACE, 20.0)
    members.handle(leave, PLACE, 30.0)
    members.handle(v3((2, GROUP, 0)), PLACE, 31.0)  # another host behind the port
    assert asked(members.poll_queries(31.0)) == []
    assert members.members(31.0 + MEMBERSHIP_S - 0.1) == [(GROUP, PLACE)]


def test_a_host_of_version_1_is_not_left_by_another_ones_leave() -> None:
    members = IgmpMembers()
    members.handle(v2(0x12, GROUP), PLACE, 0.0)
    members.handle(v2(0x16, GROUP), PLACE, 1.0)
    members.handle(v2(0x17, GROUP), PLACE, 2.0)
    assert members.members(5.0) == [(GROUP, PLACE)]
    members.handle(v2(0x16, GROUP), PLACE, MEMBERSHIP_S)
    members.handle(v2(0x17, GROUP), PLACE, MEMBERSHIP_S + 1.0)
    assert members.members(MEMBERSHIP_S + 1.0 + LAST_MEMBER_S) == []


def test_packet_ins_are_shown_over_rest() -> None:
    async def main() -> None:
        async with running() as controller, rest(controller) as client:
            controller.switch_events.packet_received(SwitchId(1), PortId(4), v3((4, GROUP, 0)))
            controller.switch_events.packet_received(SwitchId(1), PortId(4), v3((4, GROUP, 0))[:40])
            answer = (await client.get("igmp")).json()
            assert answer == {"members": [{"group": "239.1.2.3", "switch": 1, "port": 4}]}
            assert sum(controller.packets.igmp_rejected.values()) == 1
            assert 'wormcast_igmp_rejected_total{reason="' in (await client.get("metrics")).text
            controller.switch_events.packet_received(SwitchId(1), PortId(4), v2(0x17, GROUP))
            await asyncio.sleep(LAST_MEMBER_S + 0.1)
            assert (await client.get("igmp")).json() == {"members": []}

    asyncio.run(main())


def test_a_port_that_wants_too_much_is_one_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(igmp, "PORT_MEMBERSHIPS_MAX", 2)

    async def main() -> None:
        async with running() as controller:
            for n in range(9):
                controller.switch_events.packet_received(
                    SwitchId(1), PortId(4), v2(0x16, ipaddress.IPv4Address(f"239.0.0.{n}"))
                )
            told = [e.data for e in controller.events.history() if e.kind == "igmp_full"]
            assert told == [{"switch": 1, "port": 4, "addresses_max": 2}]

    asyncio.run(main())
