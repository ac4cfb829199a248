"""Packet mode or wormhole mode as the operator asks for it, checked and kept in the state file; and how trains of agents
are brought in and out with it.

Switches in packet mode drop trains. So agents send them only when all switches are in wormhole mode, and switches leave it
only when all agents have stopped. Each is a plan of its own."""

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
        self.trains = database.trains()
        """The wormhole mode in which agents may send trains; None: they send none."""
        if given is not None:
            if (missing := self._missing(given)) is not None:
                raise ArtifactError(missing)
            self._put(given)

    def set(self, switching: Switching) -> bool:
        """Switches pass worms on in this way from now on; whether that is new. Raises `RequestError`, `StoreError`."""
        if (missing := self._missing(switching)) is not None:
            raise RequestError(409, missing, value=switching.mode, choices=[PACKET])
        return self._put(switching)

    @property
    def planned(self) -> tuple[Switching, bool]:
        """What switches are to do now, and whether agents are to send trains."""
        if self.trains is None:
            return self.switching, False
        if self.switching.takes_trains:
            return self.switching, True
        return self.trains, False

    @property
    def is_settled(self) -> bool:
        """Whether what is planned is what was asked for, and no other plan has to follow."""
        return self.planned == (self.switching, self.switching.takes_trains)

    def done(self, switching: Switching, trains: bool) -> bool:
        """All switches do this, and no agent sends trains that is not to. Whether another plan follows. Raises
        `StoreError`."""
        if (switching, trains) != self.planned or self.is_settled:
            return False
        self._keep_trains(switching if self.trains is None else None)
        return True

    def _keep_trains(self, switching: Switching | None) -> None:
        self._database.put_trains(switching)
        self.trains = switching

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
        if self.trains is not None and switching.takes_trains:
            self._keep_trains(switching)
        return True
