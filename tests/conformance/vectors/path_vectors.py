"""Worms that leave by one port, and frames that leave by none."""

from dataclasses import replace

from wormcast.wire import ETHERTYPE_IPV4, Flag, Kind

from vectors.cases import PAYLOAD, Json, dropped, make_worm, one_step, vector
from vectors.codec_vectors import HEAD_TAIL, SRC


def unicast_vectors() -> list[Json]:
    unicast = Kind.UNICAST
    long_route = bytes([5]) + bytes(i % 254 for i in range(254))
    return [
        one_step("UNICAST: strips the first byte", make_worm(unicast, "050301"), 5, "0301"),
        one_step("UNICAST: last byte, to a host", make_worm(unicast, "02"), 2, "", ingress_port=4),
        one_step(
            "UNICAST: ejection to an in-transit host keeps the rest",
            make_worm(unicast, "020601"),
            2,
            "0601",
            4,
        ),
        one_step(
            "UNICAST: back out of the port it came in by", make_worm(unicast, "0502"), 5, "02", ingress_port=5
        ),
        one_step("UNICAST: port 0", make_worm(unicast, "0007"), 0, "07", ingress_port=6),
        one_step("UNICAST: route of 255 bytes", make_worm(unicast, long_route), 5, long_route[1:]),
        one_step("UNICAST: route of 254 bytes", make_worm(unicast, long_route[:254]), 5, long_route[1:254]),
        one_step("UNICAST: no payload", make_worm(unicast, "0501", payload=b""), 5, "01"),
        one_step("UNICAST: payload of 1400 bytes", make_worm(unicast, "0501", payload=bytes(1400)), 5, "01"),
        one_step(
            "UNICAST: IPv4 payload stays a worm at a host",
            make_worm(unicast, "02", next=ETHERTYPE_IPV4),
            2,
            "",
        ),
        one_step("UNICAST: all flags but TRACE, TRAIN pass", make_worm(unicast, "0501", flags=0x9F), 5, "01"),
        one_step("UNICAST: no flags pass", make_worm(unicast, "0501", flags=0), 5, "01"),
        one_step(
            "UNICAST: class 2 passes", make_worm(unicast, "0501", flags=HEAD_TAIL | Flag.CLASS2), 5, "01"
        ),
        one_step(
            "UNICAST: largest source, sequence, next",
            make_worm(unicast, "05", source=65535, sequence=65535, next=65535),
            5,
            "",
        ),
        one_step("UNICAST: 63 hops behind it", make_worm(unicast, "0501", hops=63), 5, "01"),
        one_step("UNICAST: destination MAC is ignored", make_worm(unicast, "0501", dst=bytes(6)), 5, "01"),
        one_step(
            "UNICAST: ports above 127",
            make_worm(unicast, "fd8201"),
            253,
            "8201",
            ingress_port=130,
            state="wide",
        ),
        one_step("CONTROL: strips the first byte", make_worm(Kind.CONTROL, "0503"), 5, "03"),
        one_step("CONTROL: last byte, to a host", make_worm(Kind.CONTROL, "01"), 1, "", ingress_port=5),
        dropped("UNICAST: empty route", make_worm(unicast), "ROUTE_EMPTY", kinds={"UNICAST": 1}),
        dropped("CONTROL: empty route", make_worm(Kind.CONTROL), "ROUTE_EMPTY", kinds={"CONTROL": 1}),
        dropped(
            "UNICAST: port that is not there",
            make_worm(unicast, "0701"),
            "PORT_UNKNOWN",
            kinds={"UNICAST": 1},
        ),
        dropped(
            "UNICAST: byte 253, no such port", make_worm(unicast, "fd"), "PORT_UNKNOWN", kinds={"UNICAST": 1}
        ),
        dropped("UNICAST: byte 255", make_worm(unicast, "ff01"), "PORT_UNKNOWN", kinds={"UNICAST": 1}),
        dropped(
            "UNICAST: no configuration",
            make_worm(unicast, "01"),
            "PORT_UNKNOWN",
            state="empty",
            kinds={"UNICAST": 1},
        ),
    ]


def recirculation_vectors() -> list[Json]:
    unicast = Kind.UNICAST

    def passes(name: str, route: str, to: int, left: str, count: int, kind: Kind = unicast) -> Json:
        worm = make_worm(kind, route)
        out = {to: worm.at(bytes.fromhex(left), hops=count).to_frame()}
        return vector(name, worm.to_frame(), 4, out, kinds={kind.name: count}, recirculated=count - 1)

    return [
        passes("UNICAST: absorbed once", "fe0503", 5, "03", 2),
        passes("UNICAST: absorbed twice, then to a host", "fefe02", 2, "", 3),
        passes("CONTROL: absorbed once", "fe06", 6, "", 2, Kind.CONTROL),
        passes("BROADCAST: absorbed on the way to the root", "fe0405", 4, "05", 2, Kind.BROADCAST),
        dropped(
            "UNICAST: absorbed with nothing left",
            make_worm(unicast, "fe"),
            "ROUTE_EMPTY",
            kinds={"UNICAST": 2},
            recirculated=1,
        ),
        dropped(
            "UNICAST: absorbed up to the hop limit",
            make_worm(unicast, "fe01", hops=63),
            "HOPS_EXCEEDED",
            kinds={"UNICAST": 1},
            recirculated=1,
        ),
        dropped(
            "UNICAST: absorbed without end",
            make_worm(unicast, bytes([254]) * 255),
            "HOPS_EXCEEDED",
            kinds={"UNICAST": 64},
            recirculated=64,
        ),
    ]


def refused_vectors() -> list[Json]:
    good = make_worm(Kind.UNICAST, "050301", payload=b"x")
    frame = good.to_frame()

    def changed(at: int, value: int) -> bytes:
        return frame[:at] + bytes([value]) + frame[at + 1 :]

    zero_sum = replace(good, sequence=(good.sequence + good.checksum()) & 0xFFFF)
    if zero_sum.checksum() != 0:  # the carry came in: one less makes up for it
        zero_sum = replace(good, sequence=(good.sequence + good.checksum() - 0xFFFF) & 0xFFFF)
    assert zero_sum.checksum() == 0
    arp = bytes.fromhex("ffffffffffff") + SRC + bytes.fromhex("0806") + bytes(28)
    ipv6 = bytes.fromhex("333300000001") + SRC + bytes.fromhex("86dd") + bytes(40)
    tree = make_worm(Kind.TREE, "01000402000aff", payload=b"")
    return [
        one_step("checksum 0 is a checksum", zero_sum, 5, "0301"),
        dropped("ARP", arp, "NOT_A_WORM", ingress_port=0),
        dropped("IPv6", ipv6, "NOT_A_WORM", ingress_port=0),
        dropped(
            "host protocol without a worm", SRC + SRC + bytes.fromhex("88b6") + bytes(50), "NOT_A_WORM", 0
        ),
        dropped("nothing behind the EtherType", frame[:14], "TRUNCATED"),
        dropped("header ends a byte early", frame[:25], "TRUNCATED"),
        dropped("route missing", frame[:26], "TRUNCATED"),
        dropped("route ends a byte early", frame[:28], "TRUNCATED"),
        dropped("TREE: ends behind a branch", tree.to_frame()[:28], "TRUNCATED"),
        dropped("TREE: ends behind a port", tree.to_frame()[:29], "TRUNCATED"),
        dropped("TREE: ends inside a sub-route", tree.to_frame()[:31], "TRUNCATED"),
        dropped("TREE: marker cut off", tree.to_frame()[:32], "TRUNCATED"),
        dropped(
            "GROUP: number cut off", make_worm(Kind.GROUP, "0007", payload=b"").to_frame()[:27], "TRUNCATED"
        ),
        dropped("version 0", changed(14, 0x00), "VERSION_UNKNOWN"),
        dropped("version 2", changed(14, 0x20), "VERSION_UNKNOWN"),
        dropped("version 15", changed(14, 0xF0), "VERSION_UNKNOWN"),
        dropped("flags corrupted", changed(15, 0x07), "CHECKSUM"),
        dropped("hops corrupted", changed(17, 0x01), "CHECKSUM"),
        dropped("source corrupted", changed(19, 0x04), "CHECKSUM"),
        dropped("next corrupted", changed(23, 0x00), "CHECKSUM"),
        dropped("checksum corrupted", changed(24, frame[24] ^ 0x80), "CHECKSUM"),
        dropped("first port corrupted", changed(26, 0x06), "CHECKSUM"),
        dropped("last port corrupted", changed(28, 0x02), "CHECKSUM"),
        dropped("checksum 0xffff in place of 0", zero_sum.to_frame(checksum=0xFFFF), "CHECKSUM"),
        dropped("TREE: marker corrupted", tree.to_frame()[:-1] + b"\xfd", "CHECKSUM"),
        dropped("TREE: length corrupted", tree.to_frame()[:29] + b"\x09" + tree.to_frame()[30:], "CHECKSUM"),
        dropped(
            "GROUP: number corrupted",
            make_worm(Kind.GROUP, "0007").to_frame()[:27] + b"\x09" + PAYLOAD,
            "CHECKSUM",
        ),
        dropped("64 hops", make_worm(Kind.UNICAST, "05", hops=64), "HOPS_EXCEEDED"),
        dropped("255 hops", make_worm(Kind.GROUP, "0007", hops=255), "HOPS_EXCEEDED"),
        dropped(
            "64 hops and a wrong checksum",
            make_worm(Kind.UNICAST, "05", hops=64).to_frame(checksum=1),
            "CHECKSUM",
        ),
        dropped("kind 6", make_worm(6, "05"), "KIND_UNKNOWN", kinds={"6": 1}),
        dropped("kind 15, empty route", make_worm(15), "KIND_UNKNOWN", kinds={"15": 1}),
        dropped("kind 9, wrong checksum", make_worm(9, "0501").to_frame(checksum=7), "CHECKSUM"),
    ]
