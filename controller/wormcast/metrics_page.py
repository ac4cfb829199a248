"""A page of metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

MEDIA_TYPE = "text/plain; version=0.0.4"

Sample = tuple[dict[str, object], float]
"""Labels and value."""


class MetricsPage:
    """Metrics one after another; every name begins with `wormcast_`."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> None:
        """A metric with all its samples. `kind`: "counter" or "gauge"."""
        self.begin(name, kind, meaning)
        self.extend(name, samples)

    def begin(self, name: str, kind: str, meaning: str) -> None:
        """A metric; its samples follow by `extend`."""
        self._lines += [f"# HELP wormcast_{name} {meaning}", f"# TYPE wormcast_{name} {kind}"]

    def extend(self, name: str, samples: Iterable[Sample]) -> None:
        """More samples of the metric that was begun last."""
        for labels, value in samples:
            text = ",".join(f'{label}="{_escape(str(v))}"' for label, v in labels.items())
            self._lines.append(
                f"wormcast_{name}{{{text}}} {value:.16g}" if text else f"wormcast_{name} {value:.16g}"
            )

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines) + "\n"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
