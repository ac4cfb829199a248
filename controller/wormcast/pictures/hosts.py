"""Where hosts go around their switch: into the gaps between its links."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wormcast.pictures.geometry import Point, polar

HOST_RADIUS = 9.0
HOST_DISTANCE = 42.0
# More hosts than this, or hosts that would have to be farther out, are one badge with
# their number.
HOSTS_DRAWN_MAX = 8
HOST_DISTANCE_MAX = 66.0
# Between the middles of two hosts, and from a link to the middle of a host.
HOST_GAP = 2 * HOST_RADIUS + 3
FULL = 2 * math.pi
CROWDED = 0.42


def place_hosts(at: Point, count: int, links: Sequence[float], outward: float | None) -> list[Point]:
    """Places of so many hosts (or of one badge) around a switch.

    Every host goes to the gap between links in which there is most room, ties to the gap
    nearest `outward`; the distance grows where the gaps are narrow."""
    if count == 0:
        return []
    gaps = _gaps(links, outward)
    filled = [0] * len(gaps)
    for _ in range(count):
        best = max(
            range(len(gaps)),
            key=lambda gap: (_room(gaps[gap], filled[gap], outward), -_turn(gaps[gap], outward)),
        )
        filled[best] += 1
    angles: list[float] = []
    narrowest = FULL
    for (start, width), hosts in zip(gaps, filled, strict=True):
        if hosts == 0:
            continue
        # In a wide gap hosts stay together in its middle.
        step = min(width / (hosts + 1), 0.62)
        narrowest = min(narrowest, step)
        first = start + (width - step * (hosts - 1)) / 2
        fan = [first + step * index for index in range(hosts)]
        # From left to right, below a switch too.
        downward = math.sin(start + width / 2) > 0.5
        angles += reversed(fan) if downward else fan
    distance = max(HOST_DISTANCE, HOST_GAP / (2 * math.sin(min(narrowest, math.pi) / 2)))
    return [polar(at, angle, distance) for angle in angles]


def _gaps(links: Sequence[float], outward: float | None) -> list[tuple[float, float]]:
    """(start, width) of the gaps between directions."""
    if not links:
        middle = -math.pi / 2 if outward is None else outward
        return [(middle - math.pi, FULL)]
    turns = sorted({round(angle % FULL, 6) for angle in links})
    following = [*turns[1:], turns[0] + FULL]
    return [(start, end - start) for start, end in zip(turns, following, strict=True)]


def _room(gap: tuple[float, float], filled: int, outward: float | None) -> float:
    """How much room one more host would have; the gap that holds the preferred direction
    counts twice as long as it is not crowded."""
    room = gap[1] / (filled + 1)
    favoured = outward is not None and (outward - gap[0]) % FULL < gap[1] and room > CROWDED
    return round(2 * room if favoured else room, 6)


def _turn(gap: tuple[float, float], outward: float | None) -> float:
    """How far the middle of the gap is from the preferred direction."""
    if outward is None:
        return 0.0
    off = (gap[0] + gap[1] / 2 - outward) % FULL
    return round(min(off, FULL - off), 6)
