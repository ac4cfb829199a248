"""Where plain hosts, the controller and queues come in."""

from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

from oracle.checksum import internet_checksum
from oracle.class_d import class_d_mac
from oracle.tree import Branch
from wormcast.wire import CPU_PORT, ETHERTYPE_IPV4, Flag, Kind

from vectors.cases import Json, dropped, make_tree_worm, make_worm, one_step, vector
from vectors.codec_vectors import SRC


def ip_packet(
    destination: str, protocol: int = 17, options: bytes = b"", body: bytes = b"multicast"
) -> bytes:
    """An IPv4 packet from 10.0.0.1."""
    header = bytes([0x45 + len(options) // 4, 0]) + (20 + len(options) + len(body)).to_bytes(2, "big")
    header += bytes.fromhex("12340000") + bytes([8, protocol, 0, 0]) + bytes([10, 0, 0, 1])
    header += IPv4Address(destination).packed + options
    return header[:10] + internet_checksum(header).to_bytes(2, "big") + header[12:] + body


def plain_frame(destination: str, packet: bytes, dst: bytes | None = None) -> bytes:
    """The plain frame of a host."""
    mac = class_d_mac(IPv4Address(destination)) if dst is None else dst
    return mac + SRC + ETHERTYPE_IPV4.to_bytes(2, "big") + packet


def class_d_vectors() -> list[Json]:
    def enters(
        name: str,
        address: str,
        ingress_port: int,
        group: int,
        hosts: list[int],
        links: list[int],
        **more: Any,
    ) -> Json:
        packet = more.pop("packet", None) or ip_packet(address)
        frame = plain_frame(address, packet, more.pop("dst", None))
        inside = make_worm(
            Kind.GROUP, group.to_bytes(2, "big"), source=0xFFFF, sequence=0, next=ETHERTYPE_IPV4
        )
        inside = replace(inside, payload=packet, hops=1)
        out = {port: plain_frame(address, packet) for port in hosts} | {
            port: inside.to_frame() for port in links
        }
        return vector(name, frame, ingress_port, out, **more)

    packet = ip_packet("239.1.1.7")
    crossing = make_worm(
        Kind.GROUP, "0007", source=0xFFFF, sequence=0, next=ETHERTYPE_IPV4, payload=packet, hops=1
    )
    to_hosts = {0: plain_frame("239.1.1.7", packet), 1: plain_frame("239.1.1.7", packet)}
    unicast_ip = plain_frame("239.1.1.7", ip_packet("10.0.0.2"), dst=bytes.fromhex("020000000002"))
    igmp = plain_frame(
        "239.1.1.7", ip_packet("239.1.1.7", protocol=2, body=bytes.fromhex("1600f8f7ef010107"))
    )
    igmp_v3 = plain_frame(
        "224.0.0.22", ip_packet("224.0.0.22", protocol=2, options=bytes.fromhex("94040000"), body=bytes(16))
    )
    to_cpu = {"packet_in": {"ingress_port": 0}}
    return [
        enters("class D: from a member host", "239.1.1.7", 0, 7, [1], [4, 5], filtered={"GROUP": 1}),
        enters("class D: from a host outside the group", "239.1.1.7", 2, 7, [0, 1], [4, 5]),
        enters("class D: the longer prefix has lower priority", "239.1.1.8", 0, 300, [1, 2], [6]),
        enters("class D: match in the middle of the mask", "225.77.88.9", 0, 9, [2], []),
        enters(
            "class D: IP options",
            "239.1.1.7",
            2,
            7,
            [0, 1],
            [4, 5],
            packet=ip_packet("239.1.1.7", options=bytes(8)),
        ),
        enters("class D: 23 of 28 bits reach the MAC", "239.129.1.7", 0, 300, [1, 2], [6]),
        enters("class D: sent to another MAC", "239.1.1.7", 2, 7, [0, 1], [4, 5], dst=bytes([255] * 6)),
        vector(
            "class D: crosses, leaves to hosts as it came",
            crossing.to_frame(),
            4,
            {**to_hosts, 5: crossing.at(crossing.route).to_frame()},
            filtered={"GROUP": 1},
            kinds={"GROUP": 1},
        ),
        dropped("class D: IPv4 header cut off in a worm", crossing.to_frame()[:47], "TRUNCATED"),
        dropped(
            "class D: IPv4 header cut off in a plain frame",
            plain_frame("239.1.1.7", packet)[:33],
            "TRUNCATED",
            0,
        ),
        dropped("class D: unknown", plain_frame("227.1.1.7", ip_packet("227.1.1.7")), "CLASS_D_UNKNOWN", 0),
        dropped(
            "class D: of a group that is not there",
            plain_frame("226.1.1.7", ip_packet("226.1.1.7")),
            "GROUP_UNKNOWN",
            0,
        ),
        dropped(
            "class D: 224.0.0.251 stays on its link",
            plain_frame("224.0.0.251", ip_packet("224.0.0.251")),
            "CLASS_D_LINK_LOCAL",
            0,
        ),
        dropped("class D: from a switch is no worm", plain_frame("239.1.1.7", packet), "NOT_A_WORM", 4),
        dropped(
            "class D: from a port without a role",
            plain_frame("239.1.1.7", packet),
            "NOT_A_WORM",
            0,
            state="empty",
        ),
        dropped("IPv4 to one host", unicast_ip, "NOT_A_WORM", 0),
        dropped("IPv4 to 240.0.0.1", plain_frame("239.1.1.7", ip_packet("240.0.0.1")), "NOT_A_WORM", 0),
        dropped("IP version 5", plain_frame("239.1.1.7", b"\x55" + packet[1:]), "NOT_A_WORM", 0),
        punted("IGMP report of a host", igmp, 0, to_cpu),
        punted("IGMPv3 report of a host", igmp_v3, 0, to_cpu),
        dropped("IGMP from a switch", igmp, "NOT_A_WORM", 4),
    ]


def punted(name: str, frame: bytes, ingress_port: int, metadata: Json, state: str = "small") -> Json:
    case = vector(name, frame, ingress_port, {CPU_PORT: frame}, state)
    case["out"][0].update(metadata)
    return case


def controller_vectors() -> list[Json]:
    lldp = (
        bytes.fromhex("0180c200000e")
        + SRC
        + bytes.fromhex("88cc")
        + b"\x02\x05\x07s0:4\x04\x02\x074\x06\x02\x00\x02\x00\x00"
    )
    worm = make_worm(Kind.UNICAST, "0501").to_frame()
    to_host = plain_frame("239.1.1.7", ip_packet("239.1.1.7"))

    def sent(name: str, frame: bytes, port: int, state: str = "small") -> Json:
        return vector(name, frame, CPU_PORT, {port: frame}, state, packet_out={"egress_port": port})

    return [
        punted("LLDP from a switch", lldp, 4, {"packet_in": {"ingress_port": 4}}),
        punted("LLDP from a host", lldp, 1, {"packet_in": {"ingress_port": 1}}),
        punted("LLDP before any configuration", lldp, 0, {"packet_in": {"ingress_port": 0}}, "empty"),
        punted("LLDP from port 253", lldp, 253, {"packet_in": {"ingress_port": 253}}, "wide"),
        sent("packet-out: LLDP", lldp, 5),
        sent("packet-out: LLDP before any configuration", lldp, 1, "empty"),
        sent("packet-out: a worm is left alone", worm, 0),
        sent("packet-out: class D to a host", to_host, 0),
        sent("packet-out: to port 253", lldp, 253, "wide"),
    ]


def congestion_vectors() -> list[Json]:
    worm = make_worm(Kind.UNICAST, "0501")
    marked = replace(worm, flags=worm.flags | Flag.CE).at(b"\x01").to_frame()
    tree = make_tree_worm(Branch(1), Branch(4))
    tree_marked = replace(tree, flags=tree.flags | Flag.CE).at(b"").to_frame()
    return [
        one_step("CE: 31 frames left in the queue", worm, 5, "01", deq_qdepth=31),
        vector(
            "CE: 32 frames left in the queue",
            worm.to_frame(),
            0,
            {5: marked},
            kinds={"UNICAST": 1},
            deq_qdepth=32,
        ),
        vector(
            "CE: 500000 frames left in the queue",
            worm.to_frame(),
            0,
            {5: marked},
            kinds={"UNICAST": 1},
            deq_qdepth=500000,
        ),
        vector(
            "CE: copies of a TREE",
            tree.to_frame(),
            0,
            {1: tree_marked, 4: tree_marked},
            kinds={"TREE": 1},
            deq_qdepth=32,
        ),
    ]
