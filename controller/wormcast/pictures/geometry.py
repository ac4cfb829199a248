"""Points and curves. Angles are in radians, clockwise on the page, as its y axis leads down."""

from __future__ import annotations

import math
from dataclasses import dataclass

Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """A cubic Bézier curve; straight if its control points lie on the line."""

    start: Point
    first: Point
    second: Point
    end: Point

    def at(self, share: float) -> Point:
        """The point at a parameter from 0 to 1."""
        rest = 1 - share
        weights = (rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3)
        points = (self.start, self.first, self.second, self.end)
        return (
            sum(weight * point[0] for weight, point in zip(weights, points, strict=True)),
            sum(weight * point[1] for weight, point in zip(weights, points, strict=True)),
        )

    def from_start(self, distance: float) -> Point:
        """The point this far along from the start, at most in the middle."""
        last = self.start
        walked = 0.0
        for step in range(1, 33):
            here = self.at(step / 64)
            walked += math.dist(last, here)
            if walked >= distance:
                return here
            last = here
        return last

    def reversed(self) -> Curve:
        """The same curve from its end to its start."""
        return Curve(self.end, self.second, self.first, self.start)

    def samples(self, count: int) -> list[Point]:
        """Points along it, the ends left out."""
        return [self.at(index / (count + 1)) for index in range(1, count + 1)]

    @property
    def is_straight(self) -> bool:
        """Whether it is a straight line."""
        return self.first == self.start and self.second == self.end


def line(start: Point, end: Point) -> Curve:
    """A straight line."""
    return Curve(start, start, end, end)


def bowed(start: Point, end: Point, bend: float) -> Curve:
    """A curve whose middle lies `bend` times 3/4 of its length to the right of the line."""
    if bend == 0:
        return line(start, end)
    dx, dy = end[0] - start[0], end[1] - start[1]
    side = (-dy * bend, dx * bend)
    return Curve(
        start,
        (start[0] + dx * 0.25 + side[0], start[1] + dy * 0.25 + side[1]),
        (start[0] + dx * 0.75 + side[0], start[1] + dy * 0.75 + side[1]),
        end,
    )


def raised(start: Point, end: Point, by: Point) -> Curve:
    """A curve that leaves both ends in direction `by`, as a bracket does."""
    return Curve(start, (start[0] + by[0], start[1] + by[1]), (end[0] + by[0], end[1] + by[1]), end)


def polar(centre: Point, angle: float, distance: float) -> Point:
    """The point in that direction at that distance."""
    return (centre[0] + distance * math.cos(angle), centre[1] + distance * math.sin(angle))


def direction(start: Point, end: Point) -> float:
    """The angle of the line from start to end."""
    return math.atan2(end[1] - start[1], end[0] - start[0])
