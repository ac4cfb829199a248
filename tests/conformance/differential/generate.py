"""A case: packets and entries for a program, from a seed."""

from dataclasses import dataclass
from random import Random
from typing import Any

from differential.entries import Writer
from differential.packets import make
from differential.program import Program
from differential.values import PORTS, Values

Json = dict[str, Any]
PACKETS_MAX = 24
FIRST_PORTS_SHARE = 0.85
STAMP_STEP_US = 1000


@dataclass(frozen=True)
class Case:
    """What both switches get. `packets` are ports and frames, in the order they come in.

    `paced`: each comes when the one before has left. Then all come to one port, since a
    capture that is read as it is written can only be read beside others that have ended.
    """

    seed: str
    ports: tuple[int, ...]
    paced: bool
    commands: tuple[Json, ...]
    packets: tuple[tuple[int, bytes], ...]


def generate(program: Program, seed: str, packets_max: int = PACKETS_MAX) -> Case:
    """The case of a seed: always the same one for the same program."""
    rng = Random(seed)
    values = Values(rng, program)
    paced = program.paced
    first = rng.choice(PORTS[1:])
    count = rng.randint(packets_max // 2, packets_max)
    packets = [make(program, values, first if paced else _port(rng, values)) for _ in range(count)]
    for _ in range(rng.randint(0, 3)):
        packets.append(rng.choice(packets))  # the same once more
    commands = Writer(program, values, packets).write()
    frames = tuple((packet.port, packet.frame) for packet in packets)
    return Case(seed, tuple(values.ports), paced, tuple(commands), frames)


def _port(rng: Random, values: Values) -> int:
    """Where a packet comes in: mostly one of the first ports, sometimes one that is named."""
    return rng.choice(PORTS if rng.random() < FIRST_PORTS_SHARE else values.ports)
