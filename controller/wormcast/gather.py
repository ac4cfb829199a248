"""Epochs of gathered ACKs: which the planner may take, so that none is taken twice in all lives of a controller."""

from __future__ import annotations

import logging
from typing import Final

from wormcast_planner import Planner

from wormcast.network.ids import Epoch
from wormcast.store.database import GATHER_EPOCHS_END, Database, StoreError

LOG = logging.getLogger("wormcast.reconcile")

AT_ONCE: Final = 64
"""Epochs that are stored as taken before one of them is; those left over at a restart are not used."""
LOST_MOST: Final = 1 << 16
"""By how much an earlier life whose state file is lost may be ahead of the epoch of its agent plans: `AT_ONCE` for
each of its restarts."""


class GatherEpochs:
    """What of the numbers is free, kept in the database before it is used."""

    def __init__(self, database: Database, planner: Planner, epoch: Epoch) -> None:
        """`epoch` is that of the agent plans, which a new state file takes from the clock."""
        self._database = database
        self._planner = planner
        self._first = self._end = max(database.gather_epochs(), min(epoch, GATHER_EPOCHS_END))
        planner.set_gather_epochs(self._first, self._end)

    def allow(self) -> None:
        """Before a plan: the planner may take one. If that cannot be stored it takes none, and ACKs come by hosts."""
        free = max(self._planner.next_gather_epoch, self._first)
        if free < self._end or free == GATHER_EPOCHS_END:
            return
        end = min(free + AT_ONCE, GATHER_EPOCHS_END)
        try:
            self._database.put_gather_epochs(end)
        except StoreError as error:
            LOG.error("ACKs are not gathered, their epoch was not written to the state file: %s", error)
            return
        self._end = end
        self._planner.set_gather_epochs(self._first, end)

    def supersede(self, epoch: Epoch) -> None:
        """An agent knows this epoch of plans, of a state file that is lost: all groups take later ones."""
        later = max(epoch + LOST_MOST, self._end)
        if later < GATHER_EPOCHS_END:
            self._first = self._end = later
