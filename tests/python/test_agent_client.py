"""The Python client: its codec alone, and with real agents."""

from __future__ import annotations

import hashlib
import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_lab.lab import Lab, group
from wormcast.client import (
    Agent,
    AgentProtocolError,
    AgentUnavailableError,
    MessageBegin,
    MessageData,
    MessageEnd,
    Progress,
    RefusedError,
)
from wormcast.client.files import (
    FileDecoder,
    FileFormatError,
    encode_file_start,
    other_names,
    safe_file_name,
    safe_top_name,
)
from wormcast.client.frames import (
    ControlFrame,
    DataFrame,
    Frame,
    FrameDecoder,
    WindowFrame,
    encode_control,
    encode_data_header,
    encode_window,
)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Two hosts, one group."""
    lab = Lab(2, [group(1, "repeat", [0, 1])], "--receiver-wait", "2")
    yield lab
    lab.close()


def decode(wire: bytes, step: int) -> list[Frame]:
    decoder = FrameDecoder()
    frames = []
    for at in range(0, len(wire), step):
        decoder.feed(wire[at : at + step])
        while (frame := decoder.next_frame()) is not None:
            frames.append(frame)
    return frames


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (b"data", "data"),
        (b".env", "env"),
        (b"\xff\xfe", "\udcff\udcfe"),
        (b"a\x1b[2J\n\xc2\x9bb", "a_[2J__b"),
        (b" .. ", "unnamed"),
        ("ä".encode() * 150, "ä" * 100),
    ],
)
def test_names_in_bundles_keep_their_bytes_but_move_no_cursor(name: bytes, kept: str) -> None:
    assert safe_top_name(name) == kept


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_frames_survive_any_cut(step: int) -> None:
    wire = encode_control(b'{"a":1}') + encode_data_header(7, 3) + b"xyz" + encode_window(9, 1 << 20)
    frames = [ControlFrame(b'{"a":1}'), DataFrame(7, b"xyz"), WindowFrame(9, 1 << 20)]
    assert decode(wire * 3, step) == frames * 3


@pytest.mark.parametrize("wire", [b"\0\0\0\0\1", b"\0\0\0\2\4x", b"\xff\xff\xff\xff\1", b"\0\0\0\5\2abcd"])
def test_frames_that_cannot_be_are_an_error(wire: bytes) -> None:
    with pytest.raises(AgentProtocolError):
        decode(wire, 100)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 100_000])
@pytest.mark.parametrize("known", [True, False])
def test_files_survive_any_cut(size: int, known: bool) -> None:
    content = random.Random(size).randbytes(size)
    message = encode_file_start("f.bin", size if known else None) + content
    message += hashlib.sha256(content).digest()
    for step in (1, 13, 4096) if size < 1000 else (4096,):
        decoder = FileDecoder()
        out = b"".join(decoder.feed(message[at : at + step]) for at in range(0, len(message), step))
        assert decoder.finish() == hashlib.sha256(content).hexdigest()
        assert out == content
        assert decoder.header is not None
        assert decoder.header.name == "f.bin"


def test_noise_is_never_a_file() -> None:
    noise = random.Random(1)
    good = encode_file_start("f", 10) + b"0123456789" + hashlib.sha256(b"0123456789").digest()
    for _ in range(2000):
        damaged = bytearray(good)
        damaged[noise.randrange(len(good))] ^= 1 << noise.randrange(8)
        decoder = FileDecoder()
        try:
            content = decoder.feed(bytes(damaged))
            decoder.finish()
        except FileFormatError:
            continue
        # A name may be another one; content never is.
        assert content == b"0123456789"


def answers(agent: socket.socket, *messages: bytes) -> None:
    """An agent that greets, takes one request, and then says this."""
    for number, message in enumerate((b'{"id": 1, "result": {"host": 0}}', *messages)):
        if number < 2:
            agent.recv(4096)
        agent.sendall(encode_control(message))


@pytest.mark.parametrize(
    "messages",
    [
        [b"[" * 100_000],
        [b'{"event": "message_begin"}'],
        [b'{"event": "progress", "handle": []}'],
        [b'{"id": 2, "error": "no"}'],
        [b'{"id": 2, "error": {"code": 1}}'],
        [b'{"id": 2, "result": []}'],
        [b'{"id": 2, "result": {}}'],
        [b'{"id": 2, "result": {"groups": 7}}'],
        [b'{"id": 2, "result": {"groups": [{"group": "x"}]}}'],
        [b'{"id": 2, "result": {"groups": [{"group": 1e400, "name": "", "scheme": "", "members": []}]}}'],
        [b'{"id": ' + b"9" * 5000 + b"}"],
    ],
)
def test_what_no_agent_says_is_an_error_of_the_protocol(tmp_path: Path, messages: list[bytes]) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "a.sock"))
        listener.listen()

        def serve() -> None:
            with listener.accept()[0] as agent:
                answers(agent, *messages)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with Agent(tmp_path / "a.sock", timeout_s=10) as agent, pytest.raises(AgentProtocolError):
                agent.groups()
        finally:
            thread.join()


def test_a_message_that_was_lost_is_not_handed_out_as_whole(tmp_path: Path) -> None:
    """All of it comes, and that it is lost, while an answer is waited for: as where the program was slow."""
    begin = b'{"event": "message_begin", "receiver": 1, "handle": 3, "origin": 2, "window_bytes": 9}'
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "a.sock"))
        listener.listen()

        def serve() -> None:
            with listener.accept()[0] as agent:
                opened = b'{"handle": 1, "group": 1, "name": "", "scheme": "repeat", "members": [0, 2]}'
                answers(agent, b'{"id": 2, "result": ' + opened + b"}")
                agent.sendall(encode_control(begin))
                agent.sendall(encode_data_header(3, 4) + b"lost")
                agent.sendall(encode_control(b'{"event": "message_end", "handle": 3, "length": 4}'))
                agent.sendall(encode_control(b'{"event": "message_lost", "handle": 3, "reason": "too slow"}'))
                agent.recv(4096)
                agent.sendall(encode_control(b'{"id": 3, "result": {"groups": []}}'))
                assert agent.recv(4096) == b""

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with Agent(tmp_path / "a.sock", timeout_s=10) as agent:
                receiver = agent.open_receiver(1)
                agent.groups()
                assert next(receiver.messages(0), None) is None
        finally:
            thread.join()


def test_file_names_are_plain() -> None:
    for name in (
        "../a",
        "/a",
        "a/../../b",
        "..",
        ".",
        "",
        "\0",
        "a\0b",
        "x" * 999,
        "ü" * 300,
        "\\\\x\\y",
        " ",
    ):
        safe = safe_file_name(name)
        assert safe == safe_file_name(safe)
        assert safe not in ("", ".", "..")
        assert not set(safe) & set("/\\\0")
        assert len(safe.encode()) <= 200
    assert [name for name, _ in zip(other_names("a.b.txt"), range(3), strict=False)] == [
        "a.b.txt",
        "a.b.1.txt",
        "a.b.2.txt",
    ]


def test_no_agent_is_said_plainly(tmp_path: object) -> None:
    with pytest.raises(AgentUnavailableError, match="is wormcast-agent running"):
        Agent(f"{tmp_path}/none.sock")


@pytest.mark.network
def test_small_messages_both_ways(lab: Lab) -> None:
    with Agent(lab.socket(0)) as zero, Agent(lab.socket(1)) as one:
        assert (zero.name, zero.host, [g.label for g in one.groups()]) == ("h0", 0, ["1 (group1)"])
        to_one, to_zero = zero.open_sender("group1"), one.open_sender(1)
        at_zero, at_one = zero.open_receiver(1), one.open_receiver(1, origin=0).messages(10)
        for number in range(20):
            # Asking for the next message is what confirms the one before.
            to_one.write(f"ping {number}".encode())
            assert to_one.end() == number
            assert next(at_one) == (0, f"ping {number}".encode())
        to_zero.write(b"pong")
        to_zero.end()
        assert next(at_zero.messages(10)) == (1, b"pong")


@pytest.mark.network
def test_progress_and_outcomes(lab: Lab) -> None:
    seen: list[Progress] = []
    content = random.Random(2).randbytes(24_000_000)
    received: list[bytes] = []

    def receive() -> None:
        with Agent(lab.socket(1)) as agent:
            receiver = agent.open_receiver(1)
            ready.set()
            received.extend(data for _, data in receiver.messages(3))

    ready = threading.Event()
    thread = threading.Thread(target=receive)
    thread.start()
    ready.wait(10)
    with Agent(lab.socket(0)) as agent:
        sender = agent.open_sender(1, on_progress=seen.append, progress_interval_s=0.05)
        stable = sender.send(content, 60)
        assert [(o.host, o.delivered) for o in stable.outcomes] == [(1, True)]
        assert sender.wait_stable(stable.message).outcomes == stable.outcomes
        with pytest.raises(RefusedError) as refused:
            sender.wait_stable(stable.message + 1)
        assert refused.value.code == "out_of_range"
    thread.join(30)
    assert received == [content]
    assert seen
    assert seen == sorted(seen, key=lambda progress: progress.stable_bytes)
    assert all(progress.stable_bytes <= progress.accepted_bytes <= len(content) for progress in seen)


@pytest.mark.network
def test_an_aborted_message_and_the_next(lab: Lab) -> None:
    with Agent(lab.socket(0)) as zero, Agent(lab.socket(1)) as one:
        sender, receiver = zero.open_sender(1), one.open_receiver(1)
        sender.write(b"x" * 100_000)
        first = sender.end()
        begin, data = receiver.next_event(10), receiver.next_event(10)
        assert isinstance(begin, MessageBegin)
        assert isinstance(data, MessageData)
        begin.message.abort("storage")
        assert [o.reason for o in sender.wait_stable(first, 20).failed] == ["input/output error"]
        assert sender.failures == {1: "input/output error"}
        sender.write(b"next")
        second = sender.end()
        events = [receiver.next_event(10) for _ in range(3)]
        assert isinstance(events[1], MessageData)
        assert events[1].data == b"next"
        assert isinstance(events[2], MessageEnd)
        events[2].message.confirm()
        assert [o.reason for o in sender.wait_stable(first, 20).failed] == ["input/output error"]
        assert sender.wait_stable(second, 20).failed == []
        # They are of the message before.
        assert sender.failures == {}
