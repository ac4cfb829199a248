"""A switch process that stands still, as on a busy machine: its controller keeps the session, whatever it sends meanwhile."""

import queue
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc
from rig.targets import targets

OURS = next(target for target in targets() if target.name == "wormcast-switch")
PACKETS_OUT = 12_000
"""What a controller of 320 switches of one process sends in fifteen seconds, most of it probes of links."""
PATIENCE_S = 600.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def arbitration(election_id: int) -> p4r.StreamMessageRequest:
    request = p4r.StreamMessageRequest()
    request.arbitration.device_id = 1
    request.arbitration.election_id.low = election_id
    return request


def packet_out() -> p4r.StreamMessageRequest:
    """As long as a probe."""
    request = p4r.StreamMessageRequest()
    request.packet.payload = bytes(60)
    return request


def test_a_session_outlives_a_switch_that_stood_still(tmp_path: Path) -> None:
    if OURS.binary is None:
        pytest.skip("wormcast-switch is not built")
    address = f"127.0.0.1:{free_port()}"
    command = [str(OURS.binary), "--no-p4", "--device-id", "1", "--", "--grpc-server-addr", address]
    outbox: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()

    def requests() -> Iterator[p4r.StreamMessageRequest]:
        while (request := outbox.get()) is not None:
            yield request

    with (tmp_path / "switch.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(PATIENCE_S)
            messages = p4r_grpc.P4RuntimeStub(channel).StreamChannel(requests(), timeout=PATIENCE_S)
            outbox.put(arbitration(1))
            assert next(messages).WhichOneof("update") == "arbitration"
            process.send_signal(signal.SIGSTOP)
            for _ in range(PACKETS_OUT):
                outbox.put(packet_out())
            left, before = outbox.qsize(), PACKETS_OUT + 1
            while left < before:
                time.sleep(0.5)
                left, before = outbox.qsize(), left
            assert left < PACKETS_OUT / 2, "they were not sent"
            process.send_signal(signal.SIGCONT)
            outbox.put(arbitration(2))
            # There is no program: each packet-out has an error for an answer.
            assert any(message.WhichOneof("update") == "arbitration" for message in messages)
            outbox.put(None)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(PATIENCE_S)
