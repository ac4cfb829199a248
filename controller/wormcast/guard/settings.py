"""The guard as the operator asks for it: checked, and kept in the state file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from wormcast.directory.messages import REVISION_RATE
from wormcast.discovery.hosts import HostRecord, HostRegistry
from wormcast.guard.state import RATE_BOUND, RATE_MAX_BPS, RATE_MIN_BPS, Guard
from wormcast.network.ids import GroupId, HostId, PortId, SwitchId
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.group_registry import GroupRegistry
from wormcast.store.database import Database


class GuardSettings:
    """What is asked of the guard of this fabric."""

    def __init__(
        self, database: Database, groups: GroupRegistry, hosts: HostRegistry, on: bool | None = None
    ) -> None:
        """`on`: whether it is on from now on; None: as kept, else off. Raises `StoreError`."""
        self._database = database
        self._groups = groups
        self._hosts = hosts
        self.guard = database.guard()
        hosts.limited = self.guard.rates
        if on is not None:
            self._put(replace(self.guard, on=on))

    def set(self, on: bool | None, closed: Iterable[int | str] | None) -> None:
        """Turns the guard on or off, and says which groups are closed; None: as before. Raises `RequestError`,
        `StoreError`."""
        guard = self.guard
        if on is not None:
            guard = replace(guard, on=on)
        if closed is not None:
            guard = replace(guard, closed=frozenset(self._find(key) for key in closed))
        self._put(guard)

    def limit(self, host: HostId, bps: int | None) -> None:
        """Says how fast a host may send; None: as fast as it can. Raises `RequestError`, `StoreError`."""
        if bps is not None and not RATE_MIN_BPS <= bps <= RATE_MAX_BPS:
            raise RequestError(422, f"a rate of {bps} bits a second", value=bps, bound=RATE_BOUND)
        rates = {own: rate for own, rate in self.guard.rates.items() if own != host}
        self._put(replace(self.guard, rates=rates if bps is None else {**rates, host: bps}))

    def set_port(self, switch: SwitchId, port: PortId, leads_to: str | None) -> None:
        """Says what a port leads to, one of `LEADS_TO`; None: whatever is found. Raises `StoreError`."""
        ports = {ref: to for ref, to in self.guard.ports.items() if ref != (switch, port)}
        self._put(
            replace(self.guard, ports=ports if leads_to is None else {**ports, (switch, port): leads_to})
        )

    def forget_switch(self, switch: SwitchId) -> None:
        """It is no more."""
        self._put(
            replace(self.guard, ports={ref: to for ref, to in self.guard.ports.items() if ref[0] != switch})
        )

    def kept_by(self, record: HostRecord, revision: int) -> list[str]:
        """Who holds a host to its rate: `agent`, which is of this revision of agent.proto, paces what it sends; `switch`
        drops what is above."""
        if record.id not in self.guard.rates:
            return []
        paces = record.agent and revision >= REVISION_RATE
        return ["agent"] * paces + ["switch"] * self.guard.on

    def forget_groups(self, groups: Iterable[GroupId]) -> None:
        """These are no more: another of the same number is open."""
        self._put(replace(self.guard, closed=self.guard.closed - frozenset(groups)))

    def forget_host(self, host: HostId) -> None:
        """It is no more."""
        self.limit(host, None)

    def _find(self, key: int | str) -> GroupId:
        group = self._groups.get(key)
        if group.class_d is None:
            addressed = [g.id for g in self._groups.groups() if g.class_d is not None]
            raise RequestError(
                422,
                f"group {group.id} has no IP multicast address, so plain hosts send nothing to it",
                value=key,
                bound="a group with an address",
                choices=addressed[:64] or None,
            )
        return group.id

    def _put(self, guard: Guard) -> None:
        if guard != self.guard:
            self._database.put_guard(guard)
            self.guard = guard
            self._hosts.limited = guard.rates
