"""What one switch must hold and what it holds: which updates are due, which it refuses. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from wormcast_planner import (
    MulticastGroup,
    Place,
    PortRate,
    SwitchState,
    TableDefault,
    TableEntry,
    Update,
    difference,
)

BATCH_UPDATES_MAX = 200
"""Updates in one Write request."""


class Stage(IntEnum):
    """When an update is due (`Stage` of the planner). A switch that may copy worms to another finishes SHRINK and
    GROW together with it."""

    PERMIT = 0
    SHRINK = 1
    GROW = 2
    RETIRE = 3
    REVOKE = 4


@dataclass(frozen=True)
class Strayed:
    """How much of a part is other than it was written, and not by this controller."""

    missing: int = 0
    changed: int = 0
    extra: int = 0

    def __str__(self) -> str:
        return f"{self.missing} missing, {self.changed} changed, {self.extra} that were never written"


@dataclass(frozen=True)
class Refusal:
    """Something a switch does not take."""

    what: str
    reason: str
    group: int | None
    """The group number it belongs to, if it is a group's."""

    def __str__(self) -> str:
        whose = "" if self.group is None else f" of group {self.group}"
        return f"{self.what}{whose}: {self.reason}"


class SwitchTables:
    """The state a switch must have, the state it has, and where the two may differ."""

    def __init__(self) -> None:
        self.desired: SwitchState | None = None
        self.actual = SwitchState()
        self.refusals: dict[Place, Refusal] = {}
        """By place; not written again before `forgive`."""
        self._open: dict[Place, None] | None = None
        """Where the two states may differ; None: anywhere."""
        self._revocable: dict[Place, None] = {}
        """Where the guard admits what the plan does not ask for any more."""

    def desire(self, state: SwitchState, touched: Iterable[Place] | None) -> None:
        """Says what the switch must have, and where that differs from what was announced last; None: anywhere."""
        if touched is None or self.desired is None:
            self._open = None
        elif self._open is not None:
            self._open.update(dict.fromkeys(touched))
        if touched is not None:
            for place in touched:
                self.refusals.pop(place, None)
        self.desired = state

    def found(self, actual: SwitchState) -> None:
        """The switch has been read."""
        self.actual = actual
        self.refusals = {}
        self._open = None
        self._revocable = {}

    def read_back(self, part: str, found: SwitchState) -> Strayed | None:
        """A part has been read; None: it is as it was written. Else the switch is compared as a whole again."""
        strayed = Strayed(*self.actual.read_back(part, found))
        if strayed == Strayed():
            return None
        self.refusals = {}
        self._open = None
        self._revocable = {}
        return strayed

    @property
    def permits_more(self) -> bool:
        """Whether the guard has to let something in that it does not yet."""
        return any(update.stage == Stage.PERMIT for update in self.due(Stage.PERMIT))

    @property
    def revocable(self) -> bool:
        """Whether all stages have been written but REVOKE, and there is something to revoke."""
        return self._open is not None and not self._revocable.keys() <= self.refusals.keys()

    @property
    def in_step(self) -> bool:
        """Whether nothing is known that should be written now."""
        if self.desired is None:
            return True
        return self._open is not None and self._open.keys() <= self.refusals.keys()

    def due(self, stage: Stage) -> list[Update]:
        """Updates up to and including a stage, without those that were refused."""
        if self.desired is None:
            return []
        updates = difference(self.desired, self.actual, self._places())
        return [u for u in updates if u.stage <= stage and u.place not in self.refusals]

    def is_possible(self, update: Update) -> bool:
        """False for an entry whose replication group does not exist; it counts as refused then."""
        entity = update.entity
        if not isinstance(entity, TableEntry) or update.operation == "delete":
            return True
        if entity.mgid is None or self.actual.has_group(entity.mgid):
            return True
        self.refuse(update, f"replication group {entity.mgid} does not exist")
        return False

    def executed(self, updates: Iterable[Update]) -> None:
        """The switch took these."""
        for update in updates:
            self.actual.execute(update)

    def refuse(self, update: Update, reason: str) -> Refusal:
        """The switch did not take this one."""
        refusal = self._refusal(update, reason)
        self.refusals[update.place] = refusal
        return refusal

    def refuses(self, table: str) -> bool:
        """Whether the default action of a table was refused."""
        return any(refusal.what == _default_of(table) for refusal in self.refusals.values())

    def settle(self) -> None:
        """All stages have been written: notes where the states still differ."""
        if self.desired is not None:
            left = difference(self.desired, self.actual, self._places())
            later = {u.place: None for u in left if u.stage == Stage.REVOKE}
            self._open = {u.place: None for u in left if not u.is_default and u.place not in later}
            self._revocable = later

    def counts(self) -> dict[str, dict[str, int]]:
        """How much is planned and how much is there."""
        planned = self.desired if self.desired is not None else SwitchState()
        states = {"planned": planned, "installed": self.actual}
        return {name: dict(zip(("entries", "groups"), s.counts(), strict=True)) for name, s in states.items()}

    def _refusal(self, update: Update, reason: str) -> Refusal:
        entity = update.entity
        if isinstance(entity, MulticastGroup):
            what = f"{update.operation} of replication group {entity.mgid}"
            return Refusal(what, reason, self._number_of(entity.mgid))
        if isinstance(entity, PortRate):
            return Refusal(f"rate of port {entity.port}", reason, None)
        if isinstance(entity, TableDefault):
            return Refusal(_default_of(entity.table), reason, None)
        return Refusal(f"{update.operation} of an entry of {entity.table}", reason, entity.group)

    def _places(self) -> list[Place] | None:
        return None if self._open is None else [*self._open, *self._revocable]

    def _number_of(self, mgid: int) -> int | None:
        number = None if self.desired is None else self.desired.number_of(mgid)
        return self.actual.number_of(mgid) if number is None else number


def _default_of(table: str) -> str:
    return f"default action of {table}"


def split_batches(updates: list[Update]) -> list[list[Update]]:
    """Write requests: a switch may execute the updates of one in any order (P4Runtime §12),
    so groups and the entries that name them never share one."""
    batches = []
    for _, same in itertools.groupby(updates, lambda u: (u.stage, type(u.entity), u.operation)):
        waiting = list(same)
        batches += [waiting[at : at + BATCH_UPDATES_MAX] for at in range(0, len(waiting), BATCH_UPDATES_MAX)]
    return batches
