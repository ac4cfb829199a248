"""A cell of a meter: two rates, three colours, blind to the colour a frame had (RFC 2698).

The chip has its buckets in other units than bytes and rounds rates to them; this one does not round.
"""

from dataclasses import dataclass

GREEN, YELLOW, RED = 0, 1, 3  # MeterColor_t
NS = 1_000_000_000


@dataclass
class Bucket:
    """Tokens for bytes; full at first."""

    rate_bytes: int  # a second
    burst_bytes: int
    parts: int = -1  # billionths of a byte
    at_ns: int = 0

    def fill(self, now_ns: int) -> None:
        """What has come in since the last frame."""
        most = self.burst_bytes * NS
        self.parts = (
            most if self.parts < 0 else min(most, self.parts + self.rate_bytes * (now_ns - self.at_ns))
        )
        self.at_ns = now_ns

    def has(self, frame_bytes: int) -> bool:
        """Whether there is room for a frame."""
        return self.parts >= frame_bytes * NS

    def take(self, frame_bytes: int) -> None:
        """A frame takes its room."""
        self.parts -= frame_bytes * NS


@dataclass
class MeterCell:
    """Committed and peak bucket."""

    committed: Bucket
    peak: Bucket

    def execute(self, frame_bytes: int, now_ns: int) -> int:
        """The colour of a frame."""
        for bucket in (self.committed, self.peak):
            bucket.fill(now_ns)
        if not self.peak.has(frame_bytes):
            return RED
        self.peak.take(frame_bytes)
        if not self.committed.has(frame_bytes):
            return YELLOW
        self.committed.take(frame_bytes)
        return GREEN
