"""A case: packets and entries for a program, from a seed."""

from dataclasses import dataclass
from random import Random
from typing import Any

from differential.changes import Changer
from differential.entries import Writer
from differential.packets import make
from differential.program import Program
from differential.values import PORTS, Values

Json = dict[str, Any]
PACKETS_MAX = 24
FIRST_PORTS_SHARE = 0.85
STAMP_STEP_US = 1000
CHANGED_SHARE = 0.35  # of cases in which something is changed between packets


@dataclass(frozen=True)
class Case:
    """What both switches get. `packets` are ports and frames, in the order they come in.

    `paced`: each comes when the one before has left. Then all come to one port, since a
    capture that is read as it is written can only be read beside others that have ended.
    Commands are in the order in which they are sent: those with `after` when so many packets
    have left, for which a case must be paced. `reorders`: copies of one packet may leave a port
    in any order.
    """

    seed: str
    ports: tuple[int, ...]
    paced: bool
    commands: tuple[Json, ...]
    packets: tuple[tuple[int, bytes], ...]
    reorders: bool = False


def generate(program: Program, seed: str, packets_max: int = PACKETS_MAX) -> Case:
    """The case of a seed: always the same one for the same program."""
    rng = Random(seed)
    values = Values(rng, program)
    changes = rng.random() < CHANGED_SHARE
    paced = program.paced or changes
    first = rng.choice(PORTS[1:])
    count = rng.randint(packets_max // 2, packets_max)
    packets = [make(program, values, first if paced else _port(rng, values)) for _ in range(count)]
    for _ in range(rng.randint(0, 3)):
        packets.append(rng.choice(packets))  # the same once more
    writer = Writer(program, values, packets)
    commands = writer.write()
    if changes:
        Changer(writer).write()
    frames = tuple((packet.port, packet.frame) for packet in packets)
    return Case(seed, tuple(values.ports), paced, tuple(commands), frames, program.paced)


def _port(rng: Random, values: Values) -> int:
    """Where a packet comes in: mostly one of the first ports, sometimes one that is named."""
    return rng.choice(PORTS if rng.random() < FIRST_PORTS_SHARE else values.ports)
