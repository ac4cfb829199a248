"""Groups as an operator asks for them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from wormcast_planner import (
    FAN_OUT_DEFAULT,
    GROUP_BROADCAST,
    GROUP_ID_MAX,
    HOST_ID_MAX,
    LAMBDA_MAX,
    SHARED_TREES_MAX,
    is_copied_by_switches,
    needs_grid,
    schemes,
)

from wormcast.network.ids import GroupId, HostId

AUTO: Final = "auto"
"""Each message takes the scheme that suits its length, by the costs of the fabric."""
SCHEMES: Final = (*schemes(), AUTO)
"""How a message can reach the members: the list of `wire/src/scheme.rs`, and the choice among it."""
SCHEMES_ANYWHERE: Final = tuple(name for name in SCHEMES if not needs_grid(name))
"""Those that go by no coordinates, so that any topology can have them."""
TABLE: Final = "table"
"""Switches copy by entries of their tables, as long as these have room."""
TREE_ROUTES: Final = "switch"
"""Switches copy along TREE routes: so go messages of groups of scheme table that have no entries."""
COPIED: Final = tuple(name for name in SCHEMES if name == AUTO or is_copied_by_switches(name))
"""Schemes in which switches copy messages, or may."""
SCHEME_DEFAULT: Final = "k-binomial"


class GroupError(ValueError):
    """A group that cannot exist: `value` is what was given, `bound` or `choices` what would do."""

    def __init__(
        self,
        message: str,
        *,
        value: object = None,
        bound: str | None = None,
        choices: Iterable[object] | None = None,
    ) -> None:
        super().__init__(message)
        self.value = value
        self.bound = bound
        self.choices = None if choices is None else list(choices)


GUARDS: Final = ("A", "B", "C")
"""What keeps worms that switches copy from deadlock (WORM §3)."""
LEASTS: Final = ("links", "depth")
VARIANTS: Final = ("omit-last", "return")
"""Whether messages go round a circuit to the last host, or on to their origin, which compares (WORM §5)."""
FAN_OUT_MAX = 16
K_MAX = 16
PACKETS_MAX = 1 << 32
RATE_BITS_MIN, RATE_BITS_MAX = 8_000, 10**12
"""hostagent/core/src/pacing.rs"""
GROUP_BOUND = f"0 to {GROUP_ID_MAX}, not {GROUP_BROADCAST}"


@dataclass(frozen=True)
class Parameters:
    """Shape of a group's structure; 0 lets the planner choose."""

    k: int = 0
    """k-binomial: most children of a host (PACKET §4)."""
    fan_out: int = FAN_OUT_DEFAULT
    """tree: most children of a host (WORM §6)."""
    packets: int = 0
    """k-binomial: packets in a typical message, from which the best k follows; 0: k by the length of each message."""
    lambda_: int = 0
    """postal: time until a message has been received, in send times (NIC §5.5); 0: by costs and length of messages."""
    r: int = 0
    """mu-torus: members of a chain (TORUS §3)."""
    variant: str = ""
    """circuit: one of VARIANTS; the first one if empty."""
    guard: str = GUARDS[0]
    """Where switches copy, what they copy along: A the spanning tree, B the same through its root, C trees of the
    group's own (WORM §3)."""
    least: str = LEASTS[0]
    """Guard C: what these trees have little of."""
    trees: int = 1
    """switch under guard C: over how many trees messages spread."""
    ordered: bool = False
    """All members read the messages of all origins in one order."""
    rate_bits: int = 0
    """Most bits of messages that a host sends to it a second; 0: any."""

    def __post_init__(self) -> None:
        bounds = (
            ("k", 0, K_MAX),
            ("fan_out", 1, FAN_OUT_MAX),
            ("packets", 0, PACKETS_MAX),
            ("lambda_", 0, LAMBDA_MAX),
            ("r", 0, HOST_ID_MAX),
            ("trees", 1, SHARED_TREES_MAX),
        )
        for name, low, high in bounds:
            value = getattr(self, name)
            if not low <= value <= high:
                raise GroupError(
                    f"parameter {name.rstrip('_')} is {value}",
                    value=value,
                    bound=f"{low} to {high}",
                )
        if self.rate_bits and not RATE_BITS_MIN <= self.rate_bits <= RATE_BITS_MAX:
            raise GroupError(
                f"parameter rate_bits is {self.rate_bits}",
                value=self.rate_bits,
                bound=f"{RATE_BITS_MIN} to {RATE_BITS_MAX}, or 0 for any rate",
            )
        for name, known in (("guard", GUARDS), ("least", LEASTS), ("variant", VARIANTS)):
            value = getattr(self, name)
            if value not in known and (name, value) != ("variant", ""):
                raise GroupError(f"parameter {name} is {value!r}", value=value, choices=known)
        if self.guard != "C" and (self.least, self.trees) != (LEASTS[0], 1):
            name, value = ("trees", self.trees) if self.trees != 1 else ("least", self.least)
            raise GroupError(
                f"parameter {name} is {value} with guard {self.guard}, where there is one tree for all groups",
                value=value,
                bound="guard C, where a group has trees of its own",
            )

    def to_json(self) -> dict[str, Any]:
        """As REST and the state file have them."""
        return {name.rstrip("_"): value for name, value in asdict(self).items()}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Parameters:
        """The same read back, or `GroupError` with the choices."""
        known = {one.name.rstrip("_"): one.name for one in fields(Parameters)}
        for name in value:
            if name not in known:
                raise GroupError(f"unknown parameter {name!r}", value=name, choices=known)
        return Parameters(**{known[name]: given for name, given in value.items()})


@dataclass(frozen=True)
class Group:
    """A group as configured; `members` are ascending and may be out of reach at the moment."""

    id: GroupId
    name: str
    scheme: str
    """One of SCHEMES."""
    members: tuple[HostId, ...]
    parameters: Parameters = field(default_factory=Parameters)
    class_d: ipaddress.IPv4Address | None = None
    """IP multicast address whose packets this group carries (WORM §8.1)."""
    sink: bool = False
    """To measure: agents take its messages where no receiver is open, and drop them. It is not kept in the state
    file."""
    gather: bool = False
    """Whether switches gather the ACKs of the messages that they copy."""

    def __post_init__(self) -> None:
        check_group_id(self.id)
        if self.scheme == "table" and self.parameters.guard == "B":
            raise GroupError(
                "scheme table has no guard B: switches copy its worms wherever they enter, not at the root",
                value="B",
                choices=["A", "C"],
            )
        if self.parameters.variant and self.scheme != "circuit":
            raise GroupError(
                f"parameter variant is {self.parameters.variant!r} with scheme {self.scheme}",
                value=self.parameters.variant,
                bound="scheme circuit",
            )
        if self.sink and self.is_ordered:
            raise GroupError(
                "a group that is a sink is not ordered: nobody reads it", value=True, bound="false"
            )
        if self.gather and self.scheme not in COPIED:
            raise GroupError(
                f"scheme {self.scheme} has no messages that switches copy, so there are no ACKs that they could gather",
                value=self.scheme,
                choices=COPIED,
            )
        if not self.members:
            raise GroupError("a group without members", value=[], bound="1 member or more")
        if list(self.members) != sorted(set(self.members)):
            raise GroupError(
                f"members {list(self.members)} are not ascending and distinct", value=list(self.members)
            )

    @property
    def is_ordered(self) -> bool:
        """Whether all members read the messages of all origins in one order: asked for, or by guard B."""
        return self.parameters.ordered or self.parameters.guard == "B"


def check_group_id(value: int) -> GroupId:
    """A valid group id, or `GroupError`."""
    if value == GROUP_BROADCAST:
        raise GroupError(
            f"group {value} is broadcast and cannot be configured", value=value, bound=GROUP_BOUND
        )
    if not 0 <= value <= GROUP_ID_MAX:
        raise GroupError(f"group {value} is out of range", value=value, bound=GROUP_BOUND)
    return GroupId(value)


def parse_scheme(value: str) -> str:
    """A scheme by name, or `GroupError` with the choices."""
    if value not in SCHEMES:
        raise GroupError(f"unknown scheme {value!r}", value=value, choices=SCHEMES)
    return value


def check_grid(scheme: str, has_grid: bool) -> None:
    """`GroupError` with the choices if the scheme goes by coordinates that the fabric does not have."""
    if needs_grid(scheme) and not has_grid:
        raise GroupError(
            f"scheme {scheme} goes by coordinates, and this fabric has no grid: it is for a torus or mesh, whose "
            "grid stands with its switches",
            value=scheme,
            choices=SCHEMES_ANYWHERE,
        )


CLASS_D_BOUND = "224.0.1.0 to 239.255.255.255"
CLASS_D_LINK_LOCAL: Final = ipaddress.IPv4Network("224.0.0.0/24")
"""Never leave a link (RFC 5771 §4)."""


def parse_class_d(value: str) -> ipaddress.IPv4Address:
    """A class D address that may leave a link, or `GroupError` (RFC 5771 §4: 224.0.0.0/24 may not)."""
    try:
        address = ipaddress.IPv4Address(value)
    except ValueError:
        raise GroupError(f"{value!r} is not an IPv4 address", value=value, bound=CLASS_D_BOUND) from None
    if not address.is_multicast or address in CLASS_D_LINK_LOCAL:
        raise GroupError(
            f"{value} is not a class D address that leaves a link", value=value, bound=CLASS_D_BOUND
        )
    return address
