"""The RFC 1071 checksum of SPEC.md §2."""


def internet_checksum(data: bytes) -> int:
    """Ones' complement of the ones' complement sum of 16-bit words, 0..0xFFFF.

    An odd number of bytes is padded with one zero byte for the sum alone.
    """
    if len(data) % 2:
        data += b"\x00"
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
