"""Packet mode or wormhole mode as the operator asks for it, checked and kept in the state file; and how trains of agents
are brought in and out with it.

Switches in packet mode drop trains. So agents send them only when all switches are in wormhole mode, and switches leave it
only when all agents have stopped. Each is a plan of its own."""

from __future__ import annotations

from wormcast.p4rt.artifacts import ArtifactError, Artifacts
from wormcast.p4rt.convert import TABLE_WORMHOLE
from wormcast.reconcile.chip_ports import check_one_pipe
from wormcast.reconcile.errors import RequestError
from wormcast.store.database import Database, SwitchSpec
from wormcast.wormhole.switching import PACKET, PLAIN, WORMHOLE, Switching


class SwitchingSettings:
    """What is asked of the switches of this fabric."""

    def __init__(self, database: Database, artifacts: Artifacts, given: Switching | None = None) -> None:
        """`given`: from now on; None: as kept, else packet mode. Raises `StoreError`, and `ArtifactError` for what the
        program of the switches cannot do, or their ports."""
        self._database = database
        self._artifacts = artifacts
        self.switching = database.switching()
        self.trains = database.trains()
        """The wormhole mode in which agents may send trains; None: they send none."""
        try:
            self._check(given or self.switching)
        except RequestError as error:
            kept = f"{self.switching.text} is kept in the state file, --switching sets another: "
            raise ArtifactError(f"{'' if given else kept}{error.message}") from None
        if self.trains is not None:
            try:
                self._check(self.trains)
            except RequestError:
                self._keep_trains(None)  # switches had another program then
        if given is not None:
            self._put(given)

    def set(self, switching: Switching) -> bool:
        """Switches pass worms on in this way from now on; whether that is new. Raises `RequestError`, `StoreError`."""
        self._check(switching)
        return self._put(switching)

    def check_switch(self, spec: SwitchSpec) -> None:
        """Raises `RequestError` unless a switch can do what is asked for, with these ports."""
        if self._artifacts.holds_unicast_alone and WORMHOLE in (self.switching.mode, self.planned[0].mode):
            check_one_pipe(spec)

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

    def _check(self, switching: Switching) -> None:
        """Raises `RequestError` if the program of the switches cannot do it, or their ports."""
        if switching.mode == PACKET:
            return
        program = f"the program of the switches, {self._artifacts.p4info},"
        if not self._artifacts.has_wormhole:
            raise RequestError(
                409,
                f"{program} has no table {TABLE_WORMHOLE}: no wormhole mode",
                value=switching.text,
                choices=[PACKET],
            )
        if not self._artifacts.holds_unicast_alone:
            return
        if switching.scheme != PLAIN:
            raise RequestError(
                409,
                f"{switching.text}: {program} holds channels for UNICAST worms alone, so no multicast waits that others "
                "could give way to, and none is interrupted",
                value=switching.text,
                choices=[PACKET, WORMHOLE],
            )
        for spec in self._database.switches():
            check_one_pipe(spec)

    def _put(self, switching: Switching) -> bool:
        if switching == self.switching:
            return False
        self._database.put_switching(switching)
        self.switching = switching
        if self.trains is not None and switching.takes_trains:
            self._keep_trains(switching)
        return True
