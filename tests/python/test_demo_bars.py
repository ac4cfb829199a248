"""The bars of `wormcast demo`."""

from __future__ import annotations

import io

from rich.console import Console
from rich.progress import Progress
from wormcast.mininet.demo import RateColumn


def test_a_bar_tells_the_rate_in_the_unit_of_links() -> None:
    seconds = iter(float(at) for at in range(100))
    console = Console(file=io.StringIO())
    bars = Progress(RateColumn(), console=console, get_time=lambda: next(seconds), auto_refresh=False)
    bar = bars.add_task("switch", total=50_000_000)
    task = bars.tasks[0]
    assert RateColumn().render(task).plain == ""
    for done in (12_500_000, 25_000_000, 37_500_000):
        bars.update(bar, completed=done)
    rate, unit = RateColumn().render(task).plain.split()
    assert unit == "Mb/s"
    assert 30 < float(rate) <= 100
