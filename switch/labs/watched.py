"""What a lab has seen over time, for its picture."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Watched:
    """What happened when, for the picture. Times in seconds since the start."""

    title: str
    flows: dict[str, list[float]] = field(default_factory=dict)
    """Times of arrival by name of the flow."""
    moments: list[tuple[float, str]] = field(default_factory=list)
