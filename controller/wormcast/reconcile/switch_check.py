"""May a switch be like that, beside those that are there?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wormcast_planner import PORT_ID_MAX, SWITCH_ID_MAX

from wormcast.network.ids import SwitchId
from wormcast.network.topology import Grid, GridError
from wormcast.reconcile.errors import RequestError
from wormcast.reconcile.switch_address import check_address
from wormcast.store.database import SwitchSpec

SWITCHES_MAX = 1024


def check_switch(spec: SwitchSpec) -> None:
    """Raises `RequestError` unless a switch can be like that."""
    bounds: tuple[tuple[str, int, int, int], ...] = (
        ("id", spec.id, 0, SWITCH_ID_MAX),
        ("ports", spec.ports, 1, PORT_ID_MAX + 1),
        ("device_id", spec.device_id, 0, (1 << 64) - 1),
    )
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise RequestError(
                422, f"switch {name} {value} is out of range", value=value, bound=f"{low} to {high}"
            )
    check_address(spec.address)


def check_new_switch(spec: SwitchSpec, known: Mapping[SwitchId, SwitchSpec]) -> None:
    """Raises `RequestError` if a switch is in conflict with one that is there."""
    old = known.get(spec.id)
    if old == spec:
        return
    if old is not None:
        raise RequestError(409, f"switch {spec.id} exists at {old.address}; remove it first", value=spec.id)
    taken = [s.id for s in known.values() if (s.address, s.device_id) == (spec.address, spec.device_id)]
    if taken:
        raise RequestError(
            409, f"{spec.address} device {spec.device_id} is switch {taken[0]} already", value=spec.address
        )
    if len(known) >= SWITCHES_MAX:
        raise RequestError(507, "no room for another switch", value=spec.id, bound=f"{SWITCHES_MAX} switches")


def check_grid(grid: Grid | None, switches: Iterable[SwitchId]) -> None:
    """Raises `RequestError` if a switch has no place in the grid."""
    try:
        if grid is not None:
            grid.check(switches)
    except GridError as error:
        raise RequestError(422, str(error), value=error.value, bound=error.bound) from None
