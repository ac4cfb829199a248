"""`wormcast worms`: what registers say of worms that hold channels, and which of them are stuck."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from wormcast.cli.main import main
from wormcast.cli.worms import read_channels
from wormcast.p4rt.registers import RegisterError, read_registers_thrift
from wormcast.p4rt.thrift import ThriftError
from wormcast.routing import schemas
from wormcast.routing.held import (
    CLAIMING,
    OPEN,
    REGISTERS,
    Channel,
    Worm,
    channels_of,
    explain_held,
    find_stuck,
    held_json,
    waits_of,
)
from wormcast.wire import RECIRCULATE_PORT, ROOT_TURN

Json = dict[str, Any]
PORTS = 4
TOPOLOGY: Json = {
    "switches": [{"id": 0, "name": "C", "ports": PORTS}, {"id": 1, "name": "E", "ports": PORTS}],
    "hosts": [{"id": 7, "switch": 1, "port": 0, "name": "b"}],
    "links": [{"a": 0, "a_port": 1, "b": 1, "b_port": 2}],
}
MULTICAST, UNICAST = Worm(3, 9), Worm(4, 1)


def registers(**cells: Mapping[int, int]) -> dict[str, dict[int, int]]:
    """Those of a switch; cells that are not named are 0."""
    return {name: {port: cells.get(name, {}).get(port, 0) for port in range(PORTS)} for name in REGISTERS}


def number(worm: Worm) -> int:
    return worm.source << 16 | worm.sequence


def holds(port: int, worm: Worm, output: int, waiter: int, other: Worm, gone: int = 5) -> dict[str, Any]:
    """A switch where a worm that came by `port` has an output for which one that came by `waiter` waits."""
    return registers(
        channel_state={port: OPEN, waiter: CLAIMING},
        channel_worm={port: number(worm), waiter: number(other)},
        channel_outputs={port: 1 << output},
        channel_came={port: 7, waiter: 2},
        channel_gone={port: gone, waiter: 0xFFFF},
        channel_place={waiter: 1 << 16},
        channel_line={waiter: output},
        output_owner={output: port + 1},
    )


def circle(gone: int = 5) -> list[Channel]:
    """Fig. 3: the unicast has C's output to E, the multicast E's to b, and each needs the other."""
    at_c = channels_of(0, holds(0, UNICAST, 1, 2, MULTICAST))
    return at_c + channels_of(1, holds(1, MULTICAST, 0, 2, UNICAST, gone))


def test_channels_tell_worms_outputs_and_what_they_wait_for() -> None:
    holder, waiter = channels_of(0, holds(0, UNICAST, 1, 2, MULTICAST))
    assert holder == Channel(0, 0, UNICAST, True, (1,), 2, 5)
    # Counts go round at 2^16.
    assert waiter == Channel(0, 2, MULTICAST, False, (), 3, 0xFFFF, 1, UNICAST)


def test_an_owner_that_has_left_the_output_is_none() -> None:
    left = holds(0, UNICAST, 1, 2, MULTICAST)
    left["channel_outputs"] = dict.fromkeys(range(PORTS), 0)
    assert waits_of(channels_of(0, left)) == []


def test_a_head_that_does_not_stand_in_line_waits_for_nobody() -> None:
    moving = holds(0, UNICAST, 1, 2, MULTICAST)
    moving["channel_place"] = dict.fromkeys(range(PORTS), 0)
    assert waits_of(channels_of(0, moving)) == []


def test_a_multicast_that_waits_for_its_turn_says_so() -> None:
    waits = channels_of(0, holds(0, UNICAST, 1, 2, MULTICAST) | {"channel_line": {2: ROOT_TURN}})
    answer = held_json(waits, [])
    jsonschema.validate(answer, schemas.load("worms"))
    assert "waits for its turn at the root" in explain_held(answer, TOPOLOGY)


def test_worms_in_a_circle_are_stuck_and_named() -> None:
    found = find_stuck(circle(), circle())
    assert {(wait.worm, wait.switch, wait.needs, wait.held_by) for wait in found} == {
        (MULTICAST, 0, 1, UNICAST),
        (UNICAST, 1, 0, MULTICAST),
    }
    answer = held_json(circle(), found)
    jsonschema.validate(answer, schemas.load("worms"))
    text = explain_held(answer, TOPOLOGY)
    assert "worm 9 of host 3 waits at C for port 1 to E, which worm 1 of host 4 has" in text
    assert "worm 1 of host 4 waits at E for port 0 to b, which worm 9 of host 3 has" in text


def test_worms_that_move_are_not_stuck() -> None:
    """A short worm may be all in the switches: its tail is yet to give up what the other needs."""
    assert find_stuck(circle(), circle(gone=6)) == []


def test_a_line_that_ends_at_a_worm_that_goes_on_is_no_circle() -> None:
    at_c = channels_of(0, holds(0, UNICAST, 1, 2, MULTICAST))
    assert find_stuck(at_c, at_c) == []
    answer = held_json(at_c, [])
    assert not answer["stuck"]
    assert "no worms wait in a circle" in explain_held(answer, TOPOLOGY)
    assert explain_held(held_json([], []), TOPOLOGY) == "no worm holds a channel\n"


def test_a_worm_that_the_switch_has_taken_itself_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(_address: str, _device_id: int, names: list[str], cells: list[int]) -> dict[str, Any]:
        found: dict[str, dict[int, int]] = {name: dict.fromkeys(cells, 0) for name in names}
        found["channel_state"][RECIRCULATE_PORT] = OPEN
        found["channel_worm"][RECIRCULATE_PORT] = number(UNICAST)
        found["channel_outputs"][RECIRCULATE_PORT] = 1 << 2
        return found

    monkeypatch.setattr("wormcast.cli.worms.read_registers", read)
    (one,) = asyncio.run(read_channels({0: ("C", 1)}, TOPOLOGY, over_thrift=False))
    assert (one.port, one.worm, one.outputs) == (RECIRCULATE_PORT, UNICAST, (2,))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "give one of --p4runtime and --thrift"),
        (["--p4runtime", "127.0.0.1:1", "--thrift", "127.0.0.1:1"], "give one of --p4runtime and --thrift"),
        (["--thrift", "127.0.0.1:1", "--device-id", "3"], "--device-id has no effect with --thrift"),
        (["--thrift", "unix:/run/x"], "name one address for each switch"),
        (["--thrift", "127.0.0.1:1"], "1 address for 2 switches"),
        (["--thrift", "127.0.0.1:1,127.0.0.1:1"], "switch s0 at 127.0.0.1:1: "),
        (["--p4runtime", "127.0.0.1:1,127.0.0.1:1"], "switch s0 at 127.0.0.1:1: "),
    ],
)
def test_wrong_use_is_refused(options: list[str], says: str) -> None:
    done = CliRunner().invoke(main, ["worms", "--topology", "line:2", *options, "--json"])
    assert done.exit_code >= 2
    assert says in json.loads(done.stderr)["error"]["message"]


def answered(reply: bytes) -> dict[str, dict[int, int]]:
    """What is read of a switch that answers every call so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(reply)
        writer.close()

    async def run() -> dict[str, dict[int, int]]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await asyncio.wait_for(
                read_registers_thrift("127.0.0.1", port, ["channel_gone"], [0, 2]), 30
            )

    return asyncio.run(run())


HEAD = struct.pack(">Ii", 0x80010002, 1) + b"x" + struct.pack(">i", 0)
CELLS = struct.pack(">bhbi3q", 15, 0, 10, 3, 7, 8, 9) + b"\0"


def test_thrift_answers_become_cells() -> None:
    assert answered(HEAD + CELLS) == {"channel_gone": {0: 7, 2: 9}}


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "does not speak Thrift"),
        (struct.pack(">Ii", 0x80010003, 1) + b"x" + bytes(5), "does not know bm_register_read_all"),
        (HEAD + struct.pack(">bh", 12, 1), "refuses to read register channel_gone"),
        (HEAD + struct.pack(">bhbi", 15, 0, 10, 1 << 30), "tells 1073741824 cells"),
        (HEAD + struct.pack(">bhbi2q", 15, 0, 10, 2, 7, 8) + b"\0", "does not tell cell 2"),
        (HEAD + struct.pack(">bhbi3q", 15, 0, 10, 3, 7, 8, (1 << 63) - 1) + b"\0", "BMv2 tells 63 bits"),
        (HEAD, "ended the connection"),
    ],
)
def test_answers_that_are_none_are_named(reply: bytes, says: str) -> None:
    with pytest.raises((RegisterError, ThriftError), match=says):
        answered(reply)
