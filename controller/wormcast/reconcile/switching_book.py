"""Packet mode or wormhole mode as the operator asks for it: checked, and kept in the state file."""

from __future__ import annotations

from wormcast.network.switching import PACKET, Switching
from wormcast.p4rt.artifacts import ArtifactError, Artifacts
from wormcast.p4rt.convert import TABLE_WORMHOLE
from wormcast.reconcile.errors import RequestError
from wormcast.store.database import Database


class SwitchingBook:
    """What is asked of the switches of this fabric."""

    def __init__(self, database: Database, artifacts: Artifacts, given: Switching | None = None) -> None:
        """`given`: from now on; None: as kept, else packet mode. Raises `StoreError`, `ArtifactError`."""
        self._database = database
        self._artifacts = artifacts
        self.switching = database.switching()
        if given is not None:
            if (missing := self._missing(given)) is not None:
                raise ArtifactError(missing)
            self._put(given)

    def set(self, switching: Switching) -> bool:
        """Switches pass worms on in this way from now on; whether that is new. Raises `RequestError`, `StoreError`."""
        if (missing := self._missing(switching)) is not None:
            raise RequestError(409, missing, value=switching.mode, choices=[PACKET])
        return self._put(switching)

    def _missing(self, switching: Switching) -> str | None:
        """Why the program of the switches cannot do it."""
        if switching.mode == PACKET or self._artifacts.schema.tables.get(TABLE_WORMHOLE) is not None:
            return None
        return f"the program of the switches, {self._artifacts.p4info}, has no table {TABLE_WORMHOLE}: no wormhole mode"

    def _put(self, switching: Switching) -> bool:
        if switching == self.switching:
            return False
        self._database.put_switching(switching)
        self.switching = switching
        return True
