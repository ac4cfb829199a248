"""`wormcast receive` beside an agent of the lab, and files for it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wormcast.client import Agent, MessageEnd
from wormcast.receive.history import Record, read_history

from agent_lab.lab import Lab

LIMIT_S = 600.0
"""Only against hanging for ever."""


class Service:
    """`wormcast receive` on host 1, and what it says."""

    def __init__(self, lab: Lab, into: Path, *options: str, host: int = 1, **more: Any) -> None:
        self.into = into
        self._log = into.parent / f"log-{time.monotonic_ns()}"
        with self._log.open("wb") as log:
            self.process = lab.start(
                host, "receive", "--into", str(into), *options, output=subprocess.DEVNULL, stderr=log, **more
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def says(self, text: str, times: int = 1) -> None:
        until(lambda: self.log.count(text) >= times, lambda: self.log)

    def records(self) -> list[Record]:
        return read_history(self.into)[0]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)


@contextmanager
def services() -> Iterator[list[Service]]:
    """Those that are put into it end with it."""
    started: list[Service] = []
    try:
        yield started
    finally:
        for service in started:
            service.process.kill()
            service.process.wait()


def until(condition: Callable[[], object], what: Callable[[], object] = str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


def file_of(path: Path, size: int = 5000, seed: int = 1) -> Path:
    path.write_bytes(random.Random(seed).randbytes(size))
    return path


def send(lab: Lab, host: int, number: int, path: Path) -> None:
    """From host 0 or 2 to the service; the other one of these takes it too."""
    with Agent(lab.socket(2 - host)) as agent:
        other = next((one for one in agent.groups() if one.number == number), None)
        receiver = None if other is None else agent.open_receiver(number)
        process = lab.start(host, "send", str(path), "-g", str(number), "--json")
        while receiver is not None:
            event = receiver.next_event()
            if isinstance(event, MessageEnd):
                event.message.confirm()
                break
        out, error = process.communicate(timeout=LIMIT_S)
    report = json.loads(out or error)
    assert {one["host"]: one["reason"] for one in report["members"]}[1] is None, report


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith(".wormcast-history"))
