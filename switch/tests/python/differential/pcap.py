"""Captures (libpcap's classic format)."""

import struct
from pathlib import Path

MAGIC = 0xA1B2C3D4
HEADER = struct.pack("<IHHiIII", MAGIC, 2, 4, 0, 0, 65535, 1)
RECORD = "<IIII"


def record(stamp: int, frame: bytes) -> bytes:
    """A frame, `stamp` microseconds after the epoch."""
    return struct.pack(RECORD, stamp // 1_000_000, stamp % 1_000_000, len(frame), len(frame)) + frame


def write(path: Path, frames: list[tuple[int, bytes]]) -> None:
    """Writes stamps and frames."""
    path.write_bytes(HEADER + b"".join(record(stamp, frame) for stamp, frame in frames))


def read(path: Path) -> list[bytes]:
    """The frames of a capture; a last one that is not whole yet is left out."""
    data = path.read_bytes() if path.exists() else b""
    if len(data) < len(HEADER):
        return []
    order = "<" if data[:4] == struct.pack("<I", MAGIC) or data[:4] == struct.pack("<I", 0xA1B23C4D) else ">"
    frames, at = [], len(HEADER)
    size = struct.calcsize(RECORD)
    while at + size <= len(data):
        (length,) = struct.unpack_from(order + "I", data, at + 8)
        if at + size + length > len(data):
            break
        frames.append(data[at + size : at + size + length])
        at += size + length
    return frames
