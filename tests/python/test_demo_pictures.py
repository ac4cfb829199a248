"""The pictures of the demo's report: nothing that is written lies on something else that is written."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from wormcast import routing
from wormcast.mininet import drawing, report
from wormcast.mininet.transfer import Result

SCHEMES = ["repeat", "circuit", "tree", "k-binomial", "postal", "switch", "table", "broadcast"]
TOUCH = 1.5
"""Pixels that boxes of letters may share: most letters do not fill theirs."""


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Figure]]:
    """Figures that would be closed once they are written."""
    figures: list[Figure] = []
    monkeypatch.setattr(plt, "close", figures.append)
    yield figures
    monkeypatch.undo()
    for figure in figures:
        plt.close(figure)


def overlapping(axes: Axes) -> list[tuple[str, str]]:
    """Texts of a panel that lie on each other."""
    figure: Any = axes.figure
    figure.canvas.draw()
    shown = [text for text in axes.findobj(Text) if text.get_text().strip() and text.get_visible()]
    boxes = [(text.get_text(), _inner(text.get_window_extent())) for text in shown]
    return [(a, b) for (a, one), (b, other) in itertools.combinations(boxes, 2) if one.overlaps(other)]


def _inner(box: Bbox) -> Bbox:
    return Bbox.from_extents(box.x0 + TOUCH, box.y0 + TOUCH, box.x1 - TOUCH, box.y1 - TOUCH)


@pytest.mark.parametrize(
    "spec", ["line:3", "testbed", "star:1:9", "irregular:16:1", "torus:4x4:3", "line:9:0"]
)
def test_names_and_numbers_of_groups_can_be_read(spec: str, tmp_path: Path, kept: list[Figure]) -> None:
    topology = routing.make(spec)
    if not topology["hosts"]:
        topology["hosts"] = [{"id": 0, "switch": 0, "port": 7}, {"id": 5, "switch": 8, "port": 7}]
    drawing.draw_groups(topology, SCHEMES, 0, 64, tmp_path / "groups.png")
    (figure,) = kept
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == SCHEMES
    for axes in panels:
        hosts = [text for text in axes.texts if text.get_text().startswith("h")]
        assert len(hosts) == len(topology["hosts"])
        assert overlapping(axes) == [], axes.get_title()
    circuit = [text.get_text() for text in panels[1].texts if text.get_text().isdigit()]
    if len(topology["hosts"]) <= drawing.NUMBERS_MAX:
        assert sorted(map(int, circuit)) == list(range(1, len(topology["hosts"])))


def test_of_very_many_hosts_the_picture_stays_small(tmp_path: Path, kept: list[Figure]) -> None:
    drawing.draw_groups(routing.make("irregular:64:1"), ["switch"], 0, 64, tmp_path / "groups.png")
    assert max(kept[0].get_size_inches()) < 10
    assert not [text for text in kept[0].axes[0].texts if text.get_text().startswith("h")]


@pytest.mark.parametrize("count", [1, 3, 9])
def test_names_of_schemes_and_figures_can_be_read(count: int, tmp_path: Path, kept: list[Figure]) -> None:
    names = [*SCHEMES, "auto"][:count]
    results = [_result(name, 5.0 + 3.3 * place) for place, name in enumerate(names)]
    report.draw_chart(results, {"rate_mbps": 100, "file_bytes": 64 << 20}, tmp_path / "schemes.png")
    (figure,) = kept
    for axes in figure.axes:
        assert overlapping(axes) == []
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == names


def _result(scheme: str, seconds: float) -> Result:
    size = 64 << 20
    sent = int(seconds * 2**23)
    return Result(scheme, 7, seconds, size, 8.0 * size / seconds / 1e6, sent, 8 * sent, sent, 0, intact=True)
