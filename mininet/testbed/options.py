"""What a fabric is made of, and how a command line says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wormcast_planner import MTU_MAX, MTU_MIN

MTU_DEFAULT = 1500
"""Of the hosts, bytes."""
WORM_BYTES = 14
"""What a host's IP multicast packet gains on its way: the worm header and the route of a GROUP worm."""
FABRIC_MTU_MORE = 100
"""What the links between switches carry beyond the hosts' MTU unless told."""
WAIT_SECONDS_DEFAULT, WAIT_SECONDS_MAX = 600.0, 86_400.0
RATE = re.compile(r"^(\d+(?:\.\d+)?)(?:\s*(mbit|mbps|mb/s|m))?$", re.IGNORECASE)


PROBABILITIES = ("loss", "duplicate", "corrupt", "reorder")
IMPAIRMENTS = (*PROBABILITIES, "delay", "rate")
"""As wormcast-switch has them (switch/ports/src/impairment.rs)."""
DELAY_UNITS, DELAY_MAX_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}, 3600.0
RATE_UNITS, RATE_BOUNDS_BPS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}, (1e3, 1e12)
"""As switch/flow/src/units.rs has them."""


@dataclass(frozen=True)
class Mtus:
    """Largest packets, bytes after the Ethernet header: on hosts, and between switches."""

    host: int = MTU_DEFAULT
    fabric: int = MTU_DEFAULT + FABRIC_MTU_MORE


@dataclass(frozen=True)
class Options:
    """What a fabric is made of.

    `rate_mbps`: rate of every link in each direction, Mb/s; None leaves links unshaped.
    `impair`: impairments of every switch port, as wormcast-switch's `--impair` takes them.
    `switching`: how switches pass worms on from the start, as `wormcast switching set` takes it.
    `agent_arguments`: passed on to every agent, `controller_arguments` to the controller.
    `plain_hosts`: hosts without an agent. `share_processes`: one process runs all switches, and one all agents, also
    where they are few.
    """

    topology: dict[str, Any]
    switch: str = "wormcast"
    rate_mbps: float | None = 100.0
    impair: str | None = None
    seed: int = 1
    log_level: str = "warn"
    agent_arguments: tuple[str, ...] = ()
    controller_arguments: tuple[str, ...] = ()
    plain_hosts: frozenset[int] = field(default_factory=frozenset)
    mtus: Mtus = field(default_factory=Mtus)
    share_processes: bool = False
    switching: str | None = None


def parse_rate_mbps(text: str) -> float | None:
    """A link rate in Mb/s; "none" leaves links unshaped. Raises ValueError."""
    if text.lower() == "none":
        return None
    match = RATE.match(text.strip())
    if not match or not 0.1 <= float(match[1]) <= 100_000:
        raise ValueError(f"rate {text!r} is not a number of Mb/s from 0.1 to 100000, and not none")
    return float(match[1])


def parse_impair(text: str | None, switch: str = "wormcast") -> str | None:
    """Impairments such as loss=0.01,delay=2ms, as given. Raises ValueError."""
    if text is not None and switch != "wormcast":
        raise ValueError(f"impairments {text!r} are wormcast-switch's own; leave --impair out with {switch}")
    for pair in [] if text is None else text.split(","):
        key, _, value = (part.strip() for part in pair.partition("="))
        if key not in IMPAIRMENTS or not value:
            raise ValueError(f"impairment {pair!r} is not one of {', '.join(IMPAIRMENTS)} with =VALUE")
        if key in PROBABILITIES and not _is_probability(value):
            raise ValueError(f"impairment {pair!r} is not a probability from 0 to 1, or from 0% to 100%")
        if key == "delay" and not _is_quantity(value, DELAY_UNITS, 0, DELAY_MAX_S):
            raise ValueError(f"impairment {pair!r} is not a time with the unit us, ms or s, at most 3600s")
        if key == "rate" and not _is_quantity(value, RATE_UNITS, *RATE_BOUNDS_BPS):
            raise ValueError(
                f"impairment {pair!r} is not a rate with the unit kbit, mbit or gbit, from 1kbit to 1000gbit"
            )
    return text


def _is_quantity(text: str, units: Mapping[str, float], least: float, most: float) -> bool:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([a-z]+)", text)
    return match is not None and match[2] in units and least <= float(match[1]) * units[match[2]] <= most


def _is_probability(text: str) -> bool:
    number = text.removesuffix("%")
    try:
        return 0 <= float(number) <= (1 if number == text else 100)
    except ValueError:
        return False


def parse_mtus(host: str | None, fabric: str | None) -> Mtus:
    """The MTU of the hosts and that of the links between switches. Raises ValueError.

    The latter must carry a host's longest IP multicast packet, as the worm it becomes, if interfaces can.
    """
    host_bytes = MTU_DEFAULT if host is None else _bytes("MTU", host, MTU_MIN, MTU_MAX)
    if fabric is None:
        return Mtus(host_bytes, min(host_bytes + FABRIC_MTU_MORE, MTU_MAX))
    least = min(host_bytes + WORM_BYTES, MTU_MAX)
    return Mtus(host_bytes, _bytes("fabric MTU", fabric, least, MTU_MAX))


def _bytes(name: str, text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text[:9]) <= most:
        raise ValueError(f"{name} {text!r} is not a number of bytes from {least} to {most}")
    return int(text)


def parse_wait(text: str | None) -> float:
    """A limit of a wait in seconds. Raises ValueError."""
    if text is None:
        return WAIT_SECONDS_DEFAULT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= WAIT_SECONDS_MAX:
        raise ValueError(f"wait {text!r} is not a number of seconds above 0, up to {WAIT_SECONDS_MAX:.0f}")
    return seconds
