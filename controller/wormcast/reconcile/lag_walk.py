"""Which branches of switches an origin asks about to find who lags (wire/SPEC.md §3.2): the tree, and the walk along it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

TABLE_GATHER: Final = "ingress.gather"
OUTSTANDING_MAX: Final = 64
"""Branches that are asked about at once, as many as one `AskLag` names: each request and answer is a frame."""
PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8)
"""After a request that is not answered until the next; one more pause after the last."""
ATTEMPTS_MAX: Final = len(PAUSES_S)
NO_ANSWER: Final = "no answer"
UNKNOWN: Final = "nothing acknowledged"


class Entry(Protocol):
    """An entry of a table."""

    @property
    def table(self) -> str: ...
    @property
    def match(self) -> list[tuple[str, int | tuple[int, int]]]: ...
    @property
    def parameters(self) -> list[tuple[str, int]]: ...


@dataclass
class Branch:
    """A port of a switch with members behind it."""

    number: int
    switch: int
    route: bytes
    """Ports from the origin's switch to this one."""
    port: int
    host: int | None = None
    """The member at the port; None: a switch is."""
    below: list[Branch] = field(default_factory=list)
    """Branches of that switch."""
    attempts: int = 0
    ask_at: float = 0.0
    answered: bool = False
    known: tuple[int, int] | None = None
    """What all behind it hold and have confirmed, modulo 2^32."""

    def members(self) -> list[int]:
        """Those behind it, ascending."""
        found, opened = [], [self]
        while opened:
            branch = opened.pop()
            opened += branch.below
            if branch.host is not None:
                found.append(branch.host)
        return sorted(found)

    def has_failed(self, now: float) -> bool:
        """Whether no answer is awaited any more."""
        return not self.answered and self.attempts >= ATTEMPTS_MAX and self.ask_at <= now

    def state(self) -> str | None:
        """Why nothing is known of it; None where something is, or it was not asked about."""
        if self.known is not None or not self.attempts:
            return None
        return UNKNOWN if self.answered else NO_ANSWER


def find_branches(
    entries_at: Callable[[int], Iterable[Entry]],
    leads_to: Callable[[int, int], tuple[str, int] | None],
    group: int,
    origin: int,
    first: int,
) -> tuple[int, list[Branch]]:
    """The epoch of a tree and its branches at the origin's switch, `first`, with those below them. `leads_to` says of
    a switch and port whether a host or a switch is there. Without branches nothing is gathered."""
    epoch, numbers = 0, 0
    tops: list[Branch] = []
    opened: list[tuple[int, bytes, list[Branch]]] = [(first, b"", tops)]
    seen = {first}
    while opened:
        switch, route, found = opened.pop()
        ports: dict[int, int] = {}
        for entry in entries_at(switch):
            if entry.table != TABLE_GATHER:
                continue
            match, parameters = dict(entry.match), dict(entry.parameters)
            if (match["group"], match["origin"]) == (group, origin) and isinstance(match["port"], int):
                # Parallel links are one branch.
                ports[parameters["branch"]] = min(
                    match["port"], ports.get(parameters["branch"], match["port"])
                )
                epoch = parameters["epoch"]
        for port in sorted(ports.values()):
            kind, there = leads_to(switch, port) or ("nothing", 0)
            branch = Branch(numbers, switch, route, port, there if kind == "host" else None)
            numbers += 1
            found.append(branch)
            if kind == "switch" and there not in seen:
                seen.add(there)
                opened.append((there, route + bytes([port]), branch.below))
    return epoch, tops


class Walk:
    """Asks about the branches at the first switch, and goes on behind those where something lags."""

    def __init__(self, tops: list[Branch], end: int) -> None:
        """`end`: whoever holds and has confirmed everything before lags nowhere."""
        self._end = end
        self._open: dict[int, Branch] = {branch.number: branch for branch in tops}
        self._went_on: set[int] = set()

    @property
    def asked(self) -> list[Branch]:
        """Branches that the walk has come to, by number."""
        return [self._open[number] for number in sorted(self._open)]

    def due(self, now: float) -> list[Branch]:
        """Those to be asked about now; they count as asked."""
        for branch in [
            b for b in self._open.values() if b.attempts >= 1 and b.ask_at <= now and not b.answered
        ]:
            self._go_on(branch)  # what is behind it may answer
        awaited = sum(b.attempts > 0 and not b.answered and b.ask_at > now for b in self._open.values())
        due = [
            b for b in self._open.values() if not b.answered and b.attempts < ATTEMPTS_MAX and b.ask_at <= now
        ][: max(0, OUTSTANDING_MAX - awaited)]
        for branch in due:
            branch.ask_at = now + PAUSES_S[branch.attempts]
            branch.attempts += 1
        return due

    def take(self, number: int, known: tuple[int, int] | None) -> None:
        """A switch has answered; its answer may be less than the one before, never more than is true."""
        branch = self._open.get(number)
        if branch is None or not branch.attempts:
            return
        branch.answered, branch.known = True, known
        if known is None or max(behind(self._end, number) for number in known) > 0:
            self._go_on(branch)

    def _go_on(self, branch: Branch) -> None:
        if branch.number not in self._went_on:
            self._went_on.add(branch.number)
            self._open.update({below.number: below for below in branch.below})

    def is_done(self, now: float) -> bool:
        """Whether nothing is to be asked or awaited."""
        return all(branch.answered or branch.has_failed(now) for branch in self._open.values())


def behind(end: int, number: int) -> int:
    """How many packets a number is before an end, modulo 2^32 (RFC 1982); negative: beyond it."""
    return ((end - number + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
