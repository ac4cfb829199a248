"""What times of messages say of the choice of `auto`: pure, and told with what chance does."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AUTO = "auto"
WITHIN = 1.10
"""How far from the best scheme auto may be to count as right."""
ERRORS = 2.0
"""Differences of so many standard errors or less may be chance."""


@dataclass(frozen=True)
class Length:
    """Messages of one length, in groups over the same members."""

    size: int
    seconds: Mapping[str, Sequence[float]]
    """By scheme, `auto` among them."""
    structures: Sequence[Mapping[str, Any]]
    """What `auto` takes, as `GET /v1/groups/GROUP` shows it."""

    def median(self, scheme: str) -> float:
        """Seconds."""
        return statistics.median(self.seconds[scheme])

    def error(self, scheme: str) -> float:
        """Standard error of the median, in seconds, from the quartiles."""
        times = self.seconds[scheme]
        if len(times) < 2:
            return self.median(scheme)
        low, _, high = statistics.quantiles(times, n=4)
        return float(1.25 * (high - low) / 1.35 / len(times) ** 0.5)

    @property
    def best(self) -> str:
        """The quickest of the other schemes."""
        return min((scheme for scheme in self.seconds if scheme != AUTO), key=self.median)

    @property
    def ratio(self) -> float:
        """Time of `auto` by that of the best other scheme."""
        return self.median(AUTO) / self.median(self.best)

    @property
    def ratio_error(self) -> float:
        """Standard error of the ratio. That the best of several seems better than it is makes the ratio larger still."""
        shares = (self.error(scheme) / self.median(scheme) for scheme in (AUTO, self.best))
        return float(self.ratio * sum(share**2 for share in shares) ** 0.5)

    @property
    def structure(self) -> Mapping[str, Any]:
        """What messages of this length take."""
        fits = (one for one in self.structures if one["bytes_most"] is None or self.size <= one["bytes_most"])
        return next(fits)

    @property
    def expected(self) -> float:
        """Seconds that a message was expected to take: between two lengths with an estimate, by its bytes."""
        points = sorted(
            (one["bytes"], one["microseconds"]) for each in self.structures for one in each["expected"]
        )
        if self.size <= points[0][0] or len(points) == 1:
            return float(points[0][1] / 1e6)
        last = len(points) - 1
        upper = next((place for place, (size, _) in enumerate(points) if size >= self.size), last)
        (low, before), (high, after) = points[upper - 1 : upper + 1]
        return float((before + (after - before) * (self.size - low) / (high - low)) / 1e6)

    @property
    def verdict(self) -> str:
        """`yes`: within a tenth of the best; `no`: not; `noise`: not, and the difference may be chance."""
        if self.ratio <= WITHIN:
            return "yes"
        return "noise" if self.ratio - ERRORS * self.ratio_error <= WITHIN else "no"


def table(lengths: Sequence[Length], schemes: Sequence[str]) -> str:
    """Medians in ms; `auto`, what it picked and expected; and `auto` beside the best of the others."""
    head = ["bytes", *schemes, AUTO, "expected", "picked", "best", "auto / best", f"within {WITHIN - 1:.0%}"]
    lines = [f"| {' | '.join(head)} |", "|" + "---:|" * (len(schemes) + 3) + "---|---|---:|---|"]
    for one in lengths:
        cells = [
            f"{one.median(scheme) * 1000:.2f}" if scheme in one.seconds else "–"
            for scheme in [*schemes, AUTO]
        ]
        row = [f"{one.size:,}", *cells, f"{one.expected * 1000:.2f}", one.structure["scheme"], one.best]
        row += [f"{one.ratio:.2f} ± {one.ratio_error:.2f}", one.verdict]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def conclude(found: Mapping[int, Sequence[Length]]) -> str:
    """How often `auto` was right."""
    lines = []
    for count, lengths in found.items():
        right, noise = (sum(one.verdict == said for one in lengths) for said in ("yes", "noise"))
        worst = max(lengths, key=lambda one: one.ratio)
        lines.append(
            f"{count} members: within {WITHIN - 1:.0%} of the best at {right} of {len(lengths)} lengths; at {noise} more the "
            f"difference is within the noise of the repeats. At worst {worst.ratio:.2f} times the best "
            f"({worst.size:,} bytes, {worst.structure['scheme']} beside {worst.best})."
        )
    return "\n".join(lines)
