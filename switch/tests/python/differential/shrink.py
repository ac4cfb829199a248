"""Makes a case that shows a difference smaller: fewer packets, fewer commands, shorter frames."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from differential.generate import Case

Item = TypeVar("Item")
RUNS_MAX = 100


class Budget:
    """Counts runs; after the last one nothing shows the difference any more."""

    def __init__(self, shows: Callable[[Case], bool], runs: int = RUNS_MAX) -> None:
        self.shows = shows
        self.left = runs

    def __call__(self, case: Case) -> bool:
        if self.left == 0:
            return False
        self.left -= 1
        return self.shows(case)


def shrink(case: Case, shows: Callable[[Case], bool], runs: int = RUNS_MAX) -> Case:
    """A smaller case that still shows what the given one does, after at most `runs` tries."""
    tries = Budget(shows, runs)

    def with_packets(packets: Sequence[tuple[int, bytes]]) -> Case:
        return replace(case, packets=tuple(packets))

    case = with_packets(fewer(case.packets, lambda some: tries(with_packets(some))))

    def with_commands(commands: Sequence[dict[str, object]]) -> Case:
        return replace(case, commands=tuple(commands))

    case = with_commands(fewer(case.commands, lambda some: tries(with_commands(some))))
    for at in range(len(case.packets)):
        case = _shorter(case, at, tries)
    return case


def fewer(items: Sequence[Item], shows: Callable[[Sequence[Item]], bool]) -> Sequence[Item]:
    """Leaves out what is not needed: halves first, then single ones (Zeller's ddmin, with
    complements only)."""
    size = max(1, len(items) // 2)
    while items:
        at = 0
        while at < len(items):
            rest = [*items[:at], *items[at + size :]]
            if shows(rest):
                items = rest
            else:
                at += size
        if size == 1:
            break
        size //= 2
    return items


def _shorter(case: Case, at: int, tries: Budget) -> Case:
    """Cuts the end of a frame, by halves of what is left to cut."""
    port, frame = case.packets[at]
    cut = len(frame) // 2
    while cut:
        packet = (port, frame[: len(frame) - cut])
        smaller = replace(case, packets=(*case.packets[:at], packet, *case.packets[at + 1 :]))
        if tries(smaller):
            case, frame = smaller, packet[1]
            cut = min(cut, len(frame) - 1)
        else:
            cut //= 2
    return case
