"""Class D addresses and the fabric (SPEC.md §4; WORM §8.1)."""

from ipaddress import IPv4Address

from wormcast.wire import CLASS_D_MAC_PREFIX


def class_d_mac(address: IPv4Address) -> bytes:
    """Ethernet address of an IP multicast address (RFC 1112 §6.4). Raises ValueError."""
    if not address.is_multicast:
        raise ValueError(f"{address} is not a class D address; those are 224.0.0.0 to 239.255.255.255")
    return (CLASS_D_MAC_PREFIX << 24 | int(address) & 0x7FFFFF).to_bytes(6, "big")


def group_of_class_d(address: IPv4Address) -> int:
    """Group number in narrow mode: the low 8 bits of the address, 0..255. Raises ValueError."""
    if not address.is_multicast:
        raise ValueError(f"{address} is not a class D address; those are 224.0.0.0 to 239.255.255.255")
    return int(address) & 0xFF


def is_link_local(address: IPv4Address) -> bool:
    """Whether the address never leaves its link: 224.0.0.0/24."""
    return int(address) >> 8 == 0xE00000
