"""What a program works on: numbers with a width, records, frames, and the units of a parser; and what a
switch keeps from frame to frame."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tofino.meter import MeterCell
from tofino.tree import TypeName


class ProgramProblem(Exception):
    """The program does what this machine does not know; the text says what."""


class FrameEnds(Exception):
    """The parser wants bytes behind the end of the frame."""


@dataclass(frozen=True)
class Bits:
    """An unsigned number; no width where the source gives none."""

    value: int
    width: int | None = None


@dataclass
class Cell:
    """A variable: bits, a truth value or a record."""

    value: Any
    type: TypeName


@dataclass
class Record:
    """A struct or header."""

    name: str
    fields: dict[str, Cell]
    header: bool
    valid: bool = False

    def bytes(self) -> bytes:
        """A header as it is on the wire."""
        number = length = 0
        for cell in self.fields.values():
            number = number << cell.type.width | cell.value.value
            length += cell.type.width
        return number.to_bytes(length // 8, "big")


@dataclass
class Summer:
    """A checksum engine: RFC 1071 over what was added, in this order."""

    data: bytearray = field(default_factory=bytearray)

    def total(self) -> int:
        """The ones' complement sum, folded."""
        data = bytes(self.data) + bytes(len(self.data) % 2)
        total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        return total


@dataclass
class Countdown:
    """The parser's counter: eight bits, signed."""

    value: int = 0

    def set(self, value: int) -> None:
        """Keeps the value as the eight bits hold it."""
        self.value = (value + 128) % 256 - 128


@dataclass
class Entry:
    """A table entry. An exact key has a mask of all ones."""

    keys: dict[str, tuple[int, int]]
    action: str
    parameters: dict[str, int]
    priority: int = 0


@dataclass
class Switch:
    """What outlives a frame, by its name in the P4Info: entries, default entries, counters, meters, and the
    registers of each pipe; and the clock."""

    entries: dict[str, list[Entry]] = field(default_factory=dict)
    defaults: dict[str, tuple[str, dict[str, int]]] = field(default_factory=dict)
    counters: dict[str, Counter[int]] = field(default_factory=dict)
    meters: dict[str, dict[int, MeterCell]] = field(default_factory=dict)  # cells that are configured
    registers: dict[tuple[int, str], dict[int, Cell]] = field(default_factory=dict)  # cells in use
    now_ns: int = 0


class Frame:
    """What a parser has not taken yet."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0  # bits

    def look(self, bits: int) -> int:
        """The next bits, without taking them."""
        if self.at + bits > 8 * len(self.data):
            raise FrameEnds
        whole = int.from_bytes(self.data, "big")
        return whole >> (8 * len(self.data) - self.at - bits) & ((1 << bits) - 1)

    def take(self, bits: int) -> int:
        value = self.look(bits)
        self.at += bits
        return value

    def rest(self) -> bytes:
        """All that was not taken."""
        return self.data[self.at // 8 :]
