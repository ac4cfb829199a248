"""The one thing BMv2 does only over Thrift: limiting its egress queues."""

import socket
import struct

ADDRESS = ("127.0.0.1", 9090)  # where simple_switch_grpc listens unless told otherwise
CALL = 0x80010001  # strict binary protocol, version 1, call
I64 = 10


def _string(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode()


def set_queue_rates(frames_per_s: int) -> None:
    """Limits every egress queue of the switch. Raises OSError."""
    # The service name in front is how Thrift's TMultiplexedProcessor finds it.
    call = (
        struct.pack(">I", CALL) + _string("simple_switch:set_all_egress_queue_rates") + struct.pack(">i", 0)
    )
    call += struct.pack(">bhq", I64, 1, frames_per_s) + b"\x00"
    with socket.create_connection(ADDRESS, timeout=600) as connection:
        connection.sendall(call)
        reply = connection.recv(4096)
    if len(reply) < 4 or struct.unpack(">I", reply[:4])[0] & 0xFF != 2:
        raise OSError(f"set_all_egress_queue_rates({frames_per_s}) was answered with {reply.hex()}")
