"""Processes that stand still, or get little of a processor, without taking it from the tests beside these."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Iterable, Iterator

SHARE = 0.25
"""Of the time, in which a starved process may run: what two processors leave to each beside some busy loops."""
TURN_S = 0.02
STANDING: set[int] = set()
"""Processes that are paused, and that nobody else lets go on."""
LOCK = threading.Lock()


def signal_to(process: int, what: signal.Signals) -> bool:
    """Whether it was there to get it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, what)
        return True
    return False


@contextlib.contextmanager
def paused(processes: Iterable[int]) -> Iterator[None]:
    """These stand still, and go on in any case."""
    chosen = set(processes)
    try:
        with LOCK:
            STANDING.update(chosen)
            for process in chosen:
                signal_to(process, signal.SIGSTOP)
        yield
    finally:
        with LOCK:
            STANDING.difference_update(chosen)
            for process in chosen:
                signal_to(process, signal.SIGCONT)


@contextlib.contextmanager
def starved(processes: Iterable[int], seed: int = 1) -> Iterator[None]:
    """These run a part of the time, each at moments of its own, and as before in the end."""
    chosen, draw, over = set(processes), random.Random(seed), threading.Event()
    stops = 0

    def take_turns() -> None:
        nonlocal stops
        while not over.wait(TURN_S):
            with LOCK:
                for process in chosen - STANDING:
                    what = signal.SIGCONT if draw.random() < SHARE else signal.SIGSTOP
                    stops += signal_to(process, what) and what is signal.SIGSTOP

    turns = threading.Thread(target=take_turns, name="starving")
    turns.start()
    try:
        yield
        assert stops > len(chosen), "nobody was starved"
    finally:
        over.set()
        turns.join()
        for process in chosen - STANDING:
            signal_to(process, signal.SIGCONT)
