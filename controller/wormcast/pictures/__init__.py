"""Pictures of topologies, their spanning tree, routes, groups and cycles: SVG text, or PNG bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wormcast.pictures.cycles import cycle_scene
from wormcast.pictures.drawing import draw
from wormcast.pictures.groups import group_svg
from wormcast.pictures.scene import to_svg

__all__ = ["cycle_png", "cycle_svg", "draw", "group_svg", "png", "svg"]


def svg(
    topology: Mapping[str, Any],
    root: int | None = None,
    *,
    routes: Sequence[Mapping[str, Any]] = (),
    group: Mapping[str, Any] | None = None,
    cycle: Mapping[str, Any] | None = None,
) -> str:
    """A topology with its spanning tree, and routes (entries of a routes file), a group file
    and the cycle of a verify file over it. The same input gives the same text. Raises
    `RoutingError`."""
    return to_svg(draw(topology, root, routes, group, cycle))


def png(
    topology: Mapping[str, Any],
    root: int | None = None,
    *,
    routes: Sequence[Mapping[str, Any]] = (),
    group: Mapping[str, Any] | None = None,
    cycle: Mapping[str, Any] | None = None,
) -> bytes:
    """As `svg`, a PNG file. Raises `RoutingError`."""
    from wormcast.pictures.raster import to_png

    return to_png(draw(topology, root, routes, group, cycle))


def cycle_svg(verdict: Mapping[str, Any]) -> str:
    """The cycle of a verify file alone, as a ring. Raises `RoutingError`."""
    return to_svg(cycle_scene(verdict))


def cycle_png(verdict: Mapping[str, Any]) -> bytes:
    """As `cycle_svg`, a PNG file. Raises `RoutingError`."""
    from wormcast.pictures.raster import to_png

    return to_png(cycle_scene(verdict))
