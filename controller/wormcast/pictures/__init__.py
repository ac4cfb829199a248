"""Pictures of topologies, their spanning tree, routes and groups: SVG text, or PNG bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wormcast.pictures.drawing import draw
from wormcast.pictures.groups import group_svg
from wormcast.pictures.scene import to_svg

__all__ = ["draw", "group_svg", "png", "svg"]


def svg(
    topology: Mapping[str, Any],
    root: int | None = None,
    *,
    routes: Sequence[Mapping[str, Any]] = (),
    group: Mapping[str, Any] | None = None,
) -> str:
    """A topology with its spanning tree, and routes (entries of a routes file) and a group
    file over it. The same input gives the same text. Raises `RoutingError`."""
    return to_svg(draw(topology, root, routes, group))


def png(
    topology: Mapping[str, Any],
    root: int | None = None,
    *,
    routes: Sequence[Mapping[str, Any]] = (),
    group: Mapping[str, Any] | None = None,
) -> bytes:
    """As `svg`, a PNG file. Raises `RoutingError`."""
    from wormcast.pictures.raster import to_png

    return to_png(draw(topology, root, routes, group))
