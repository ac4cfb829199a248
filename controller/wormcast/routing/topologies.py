"""Topology files: made, read, written, checked, damaged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import wormcast_planner as native


def make(spec: str) -> dict[str, Any]:
    """The topology of a kind and its numbers, as in "testbed", "torus:4" or
    "irregular:8:1"; `kinds()` lists them. Raises `RoutingError`."""
    made: dict[str, Any] = json.loads(native.generate_topology(spec))
    return made


def read(
    text: str,
    *,
    format: str | None = None,
    allow_split: bool = False,
    hosts_per_switch: int = 0,
    give_hosts: bool = False,
    warn: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """The topology in a file of any of `topology_formats()`, found out from its content if
    not given. Switches and hosts whose file calls them by a word have it as "name".
    With `hosts_per_switch`, so many hosts are added on every switch; with `give_hosts` one
    where a file of other tools has none. `warn` is called with what was left out or added.

    Raises `RoutingError`; its `code` is a word for what is wrong ("port-used-twice"), its
    `line` and `column` count from 1 and are None where the mistake is at no one place.
    """
    content, warnings = native.read_topology_file(
        text, format, allow_split, max(0, hosts_per_switch), give_hosts
    )
    if warn is not None:
        for warning in warnings:
            warn(warning)
    found: dict[str, Any] = json.loads(content)
    return found


def write(topology: Mapping[str, Any], format: str) -> str:
    """The topology as a file of one of `topology_formats()`. Net lists (ibsim,
    ibnetdiscover) keep neither grid nor kind. Raises `RoutingError`, also if a name does
    not fit the format."""
    return native.write_topology_file(json.dumps(topology), format)


def check(topology: Mapping[str, Any], *, allow_split: bool = False) -> dict[str, Any]:
    """The topology, ids ascending. Raises `RoutingError` if anything is wrong with it, a
    split fabric included unless allowed."""
    checked: dict[str, Any] = json.loads(native.check_topology(json.dumps(topology), allow_split))
    return checked


def damage(
    topology: Mapping[str, Any],
    *,
    links: Iterable[tuple[int, int]] = (),
    switches: Iterable[int] = (),
    hosts: Iterable[int] = (),
) -> dict[str, Any]:
    """What remains without these links, each named by (switch, port) of either end, these
    switches and these hosts. Raises `RoutingError` for what was never there."""
    left = native.damage_topology(json.dumps(topology), list(links), list(switches), list(hosts))
    remaining: dict[str, Any] = json.loads(left)
    return remaining
