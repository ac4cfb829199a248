"""A topology with places for everything in it: what routes, groups and cycles are drawn over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wormcast.pictures.geometry import Curve, Point
from wormcast.pictures.layout import Layout


@dataclass
class Sketch:
    """A topology with places for everything in it."""

    topology: Mapping[str, Any]
    layout: Layout
    curves: list[Curve]
    """Of the links, from `a` to `b`."""
    hosts: dict[int, Point]
    """Hosts of one badge share its place."""
    badges: dict[int, list[int]]
    """Hosts of the switches that have too many to draw."""

    def curve_from(self, switch: int, port: int) -> tuple[Curve, int] | None:
        """The curve of the link at a port, away from it, and the switch it leads to."""
        for link, curve in zip(self.topology["links"], self.curves, strict=True):
            if (link["a"], link["a_port"]) == (switch, port):
                return curve, link["b"]
            if (link["b"], link["b_port"]) == (switch, port):
                return curve.reversed(), link["a"]
        return None
