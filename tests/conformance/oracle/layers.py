"""Scapy layers: `Ether()/Worm(kind="TREE", route_bytes=encode_tree(...))/payload`.

The checksum and route_len are filled in where they are left out, and shown as they came
where a frame is dissected. `Worm.checksum_ok()` tells whether they agree. The route is the
field `route_bytes`, because every Scapy packet has a method `route`.
"""

from typing import Any

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteField,
    FieldLenField,
    FlagsField,
    ShortField,
    StrLenField,
    XShortEnumField,
    XShortField,
)
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_bottom_up, bind_layers, bind_top_down
from wormcast.wire import (
    ETHERTYPE_HOST,
    ETHERTYPE_IPV4,
    ETHERTYPE_WORM,
    WORM_MAC,
    WORM_VERSION,
    Flag,
    Kind,
)

from oracle.checksum import internet_checksum
from oracle.codec import HEADER_LEN
from oracle.tree import Branch, decode_tree

WORM_DST = ":".join(f"{byte:02x}" for byte in WORM_MAC.to_bytes(6, "big"))


class Worm(Packet):  # type: ignore[misc]
    """Worm header and route (SPEC.md §2–§3)."""

    name = "Worm"
    fields_desc = [  # noqa: RUF012
        BitField("version", WORM_VERSION, 4),
        BitEnumField("kind", int(Kind.UNICAST), 4, {int(k): k.name for k in Kind}),
        FlagsField("flags", int(Flag.HEAD | Flag.TAIL), 8, [f.name for f in Flag]),
        FieldLenField("route_len", None, length_of="route_bytes", fmt="B"),
        ByteField("hops", 0),
        ShortField("source", 0),
        ShortField("sequence", 0),
        XShortEnumField("next", ETHERTYPE_HOST, {ETHERTYPE_HOST: "host", ETHERTYPE_IPV4: "IPv4"}),
        XShortField("checksum", None),
        StrLenField("route_bytes", b"", length_from=lambda packet: packet.route_len),
    ]

    def post_build(self, header: bytes, payload: bytes) -> bytes:
        """Fills in the checksum where it was left out."""
        if self.checksum is None:
            zeroed = header[:10] + b"\x00\x00" + header[12:]
            header = header[:10] + internet_checksum(zeroed).to_bytes(2, "big") + header[12:]
        return header + payload

    def checksum_ok(self) -> bool:
        """Whether the checksum is that of this header and route."""
        data = bytes(self)[: HEADER_LEN + len(self.route_bytes)]
        zeroed = data[:10] + b"\x00\x00" + data[12:]
        return internet_checksum(zeroed) == int.from_bytes(data[10:12], "big")

    def tree(self) -> tuple[Branch, ...]:
        """The branches of a TREE route. Raises RouteError."""
        return decode_tree(bytes(self.route_bytes))

    def mysummary(self) -> Any:
        """One line for packet lists."""
        return self.sprintf("Worm %kind% %source%#%sequence% hops %hops% route ") + bytes(
            self.route_bytes
        ).hex(" ")


# Switches ignore the destination MAC, so dissection does too.
bind_bottom_up(Ether, Worm, type=ETHERTYPE_WORM)
bind_top_down(Ether, Worm, type=ETHERTYPE_WORM, dst=WORM_DST)
bind_layers(Worm, IP, next=ETHERTYPE_IPV4)
