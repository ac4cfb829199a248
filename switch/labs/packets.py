"""Packets of the queue lab: what the P4 program writes into them, and what the sender did.

The header is that of switch/tests/programs/queues.p4. The sender fills in the priority; egress fills in what
standard_metadata says of the queue. Behind it are a word to know the packet by, its number and when it was sent.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEADER = struct.Struct("!BBIIIH")
"""priority, queue, depth_before (enq_qdepth), depth_after (deq_qdepth), waited (deq_timedelta, us), length."""
TRAILER = struct.Struct("!4sIQ")
"""The word, number, time in ns."""
WORD = b"lab!"
TYPE_AT = 12
"""Where Ethernet has its type. Here the lower half of `waited` is there."""
VLAN_TAG_BYTES = 4


@dataclass(frozen=True)
class Packet:
    """A packet that has passed the switch. Times in seconds since the start of the run."""

    priority: int
    number: int
    sent_s: float
    received_s: float
    depth_before: int
    depth_after: int
    waited_s: float


def build(priority: int, number: int, time_ns: int, frame_bytes: int) -> bytes:
    """A packet as its sender makes it."""
    head = HEADER.pack(priority, 0, 0, 0, 0, 0) + TRAILER.pack(WORD, number, time_ns)
    return head + bytes(frame_bytes - len(head))


def parse(frame: bytes, received_ns: int, start_ns: int = 0) -> Packet | None:
    """A packet as it came out; None for a frame that is none of ours."""
    if frame[TYPE_AT : TYPE_AT + len(WORD)] == WORD:
        # The wait looked like a VLAN tag, and the kernel has taken it out of the frame.
        length = len(frame) + VLAN_TAG_BYTES
        frame = frame[:TYPE_AT] + b"\x81\x00" + length.to_bytes(2, "big") + frame[TYPE_AT:]
    if len(frame) < HEADER.size + TRAILER.size:
        return None
    priority, _, before, after, waited_us, _ = HEADER.unpack_from(frame)
    word, number, time_ns = TRAILER.unpack_from(frame, HEADER.size)
    if word != WORD:
        return None
    return Packet(
        priority,
        number,
        (time_ns - start_ns) * 1e-9,
        (received_ns - start_ns) * 1e-9,
        before,
        after,
        waited_us * 1e-6,
    )
