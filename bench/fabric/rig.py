"""Fabrics to measure in, messages that are timed, and what is left of a measurement."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from wormcast import routing
from wormcast.client import Agent, MessageData, MessageEnd
from wormcast.mininet import fabric as fabrics

Row = dict[str, Any]
MESSAGE_SECONDS_MAX = 300.0
LOOK_EVERY_SECONDS = 0.2
"""Whether a listener is still wanted."""
MARKERS = "os^vD*X"
"""Of lines, beside their ten colours: no two of seventy look alike."""


@contextlib.contextmanager
def fabric_of(topology: dict[str, Any] | str, **options: Any) -> Iterator[fabrics.Fabric]:
    """A fabric that is up."""
    made = routing.make(topology) if isinstance(topology, str) else topology
    settings = fabrics.Options(made, **options)
    with tempfile.TemporaryDirectory() as directory, fabrics.Fabric(settings, Path(directory)) as fabric:
        fabric.wait_ready()
        yield fabric


@contextlib.contextmanager
def group_of(fabric: fabrics.Fabric, scheme: str, members: Sequence[int], **parameters: Any) -> Iterator[int]:
    """A group that all its members have. Its number."""
    body = {"scheme": scheme, "members": sorted(members), "parameters": parameters}
    group: int = fabric.post("groups", body)["id"]
    try:
        fabric.wait_group(group)
        yield group
    finally:
        fabric.delete(f"groups/{group}")


class Listener:
    """A receiver on a host; it takes every message and notes when the message was whole."""

    def __init__(self, fabric: fabrics.Fabric, host: int, group: int) -> None:
        self.host = host
        self.arrived: list[tuple[float, bytes]] = []
        self._open = True
        self._news = threading.Condition()
        self.agent = Agent(fabric.agent_socket(host), timeout_s=60.0)
        self._receiver = self.agent.open_receiver(group)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        parts: dict[int, list[bytes]] = {}
        while self._open:
            event = self._receiver.next_event(LOOK_EVERY_SECONDS)
            if isinstance(event, MessageData):
                parts.setdefault(event.message.handle, []).append(event.data)
            elif isinstance(event, MessageEnd):
                with self._news:
                    self.arrived.append((time.monotonic(), b"".join(parts.pop(event.message.handle, []))))
                    self._news.notify_all()
                event.message.confirm()

    def wait(self, count: int) -> tuple[float, bytes]:
        """The message of that number, from 1, and when it was whole."""
        with self._news:
            if not self._news.wait_for(lambda: len(self.arrived) >= count, MESSAGE_SECONDS_MAX):
                raise TimeoutError(f"host {self.host}: {len(self.arrived)} of {count} messages")
            return self.arrived[count - 1]

    def stop(self) -> None:
        self._open = False

    def close(self) -> None:
        self.stop()
        self._thread.join()
        self._receiver.close()
        self.agent.close()


def completions(
    fabric: fabrics.Fabric, group: int, source: int, receivers: Sequence[int], size: int, repeats: int
) -> list[float]:
    """Seconds from handing a message over until the last receiver has it whole; the bytes are compared."""
    listeners = [Listener(fabric, host, group) for host in receivers]
    took = []
    try:
        with Agent(fabric.agent_socket(source), timeout_s=60.0) as agent, agent.open_sender(group) as sender:
            for number in range(1, repeats + 1):
                data = os.urandom(size)
                began = time.monotonic()
                stable = sender.send(data, timeout_s=MESSAGE_SECONDS_MAX)
                ends = [listener.wait(number) for listener in listeners]
                if stable.failed or any(received != data for _, received in ends):
                    raise RuntimeError(
                        f"group {group}: a message of {size} bytes did not arrive whole everywhere"
                    )
                took.append(max(at for at, _ in ends) - began)
    finally:
        for listener in listeners:
            listener.stop()
        for listener in listeners:
            listener.close()
    return took


def median_ms(seconds: Sequence[float]) -> float:
    return round(1000 * statistics.median(seconds), 3)


def say(**row: Any) -> Row:
    """Print a row of results, and return it."""
    print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    return row


def save(
    out: Path, part: str, options: Row, rows: list[Row], draw: Callable[[list[Row], Figure], None]
) -> None:
    """PART.json and PART.svg."""
    out.mkdir(parents=True, exist_ok=True)
    machine = {
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "load": [round(load, 1) for load in os.getloadavg()],
        "at": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    text = json.dumps({"part": part, "options": options, "machine": machine, "rows": rows}, indent=1)
    (out / f"{part}.json").write_text(text + "\n")
    figure = Figure(figsize=(8, 5), layout="constrained")
    draw(rows, figure)
    figure.savefig(out / f"{part}.svg")
    print(f"{out / part}.json, .svg; load of the machine at the end: {machine['load'][0]}", flush=True)


UNITS = {"ms": "ms", "s": "s", "mbps": "Mb/s", "percent": "%"}


def label(name: str) -> str:
    """The name of a column as it stands at an axis: `latency_ms` is "latency, ms"."""
    *words, last = name.split("_")
    return f"{' '.join(words)}, {UNITS[last]}" if words and last in UNITS else " ".join([*words, last])


def lines(figure: Figure, rows: list[Row], x: str, y: str, by: str, along: str = "", **axes: Any) -> None:
    """One line of y over x for each value of `by`; it goes from point to point as `along` grows, or else x."""
    panel = figure.add_subplot()
    for number, value in enumerate(dict.fromkeys(row[by] for row in rows)):
        points = sorted((row for row in rows if row[by] == value), key=lambda row: row[along or x])
        marker = MARKERS[number % len(MARKERS)]
        panel.plot([row[x] for row in points], [row[y] for row in points], marker=marker, label=str(value))
    panel.set(xlabel=label(x), ylabel=label(y), **axes)
    # Beside the lines, never over them.
    figure.legend(title=by, fontsize=8, loc="outside right upper")
