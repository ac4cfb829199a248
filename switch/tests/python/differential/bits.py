"""A row of bits that packets grow in."""

from dataclasses import dataclass, field


@dataclass
class Bits:
    """Bits, the first one most significant. Some that are not there yet may be promised:
    they are what was promised when they come."""

    value: int = 0
    length: int = 0
    promised: dict[int, int] = field(default_factory=dict)  # by position, for lookahead

    def append(self, width: int, value: int) -> int:
        """Adds bits at the end, except where others were promised; gives where they are."""
        at = self.length
        self.value = self.value << width | (value & (1 << width) - 1)
        self.length += width
        for position in [one for one in self.promised if one < self.length]:
            self.set(position, 1, self.promised.pop(position))
        return at

    def get(self, at: int, width: int) -> int:
        """Bits that are there."""
        return self.value >> (self.length - at - width) & (1 << width) - 1

    def look(self, at: int, width: int) -> int | None:
        """Bits that are there or promised; None where some are neither."""
        there = max(0, min(width, self.length - at))
        value = self.get(at, there) if there else 0
        for position in range(at + there, at + width):
            if position not in self.promised:
                return None
            value = value << 1 | self.promised[position]
        return value

    def set(self, at: int, width: int, value: int, mask: int = -1) -> None:
        """Changes bits that are there, those that the mask has."""
        shift = self.length - at - width
        mask &= (1 << width) - 1
        self.value = self.value & ~(mask << shift) | (value & mask) << shift

    def promise(self, at: int, width: int, value: int, mask: int = -1) -> None:
        """Changes bits that may not be there yet; those that are no part of the mask are kept."""
        for offset in range(width):
            bit = width - 1 - offset
            if not mask >> bit & 1:
                continue
            if at + offset < self.length:
                self.set(at + offset, 1, value >> bit & 1)
            else:
                self.promised[at + offset] = value >> bit & 1

    def fulfil(self) -> None:
        """Makes the promised bits be there."""
        if self.promised:
            self.append(max(self.promised) + 1 - self.length, 0)

    def to_bytes(self) -> bytes:
        """As bytes, with zeros behind where the bits are no whole bytes."""
        pad = -self.length % 8
        return (self.value << pad).to_bytes((self.length + pad) // 8, "big")
