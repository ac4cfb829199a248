"""Which unicast routes the fabric uses, as the operator wants them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from wormcast_planner import ALGORITHM_DEFAULT, check_routing

from wormcast.network.ids import SwitchId


@dataclass(frozen=True)
class Routing:
    """An algorithm, a root and whether load is balanced. Raises `RoutingError` for what no network can have."""

    algorithm: str = ALGORITHM_DEFAULT
    root: SwitchId | None = None
    """None: each connected part chooses. So does a part in which this switch is not."""
    balanced: bool = False
    """Root, unless given, and paths are those that lower the largest load. For osud and tree-only."""

    def __post_init__(self) -> None:
        check_routing(self.algorithm, self.root, self.balanced)

    def to_json(self) -> dict[str, Any]:
        """As REST and the state file have it."""
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Routing:
        """The same read back. Raises `RoutingError`, `TypeError`, `KeyError`."""
        return Routing(value["algorithm"], value["root"], value["balanced"])

    def on(self, switches: Collection[int]) -> dict[str, Any]:
        """Keywords for `wormcast.routing` on a network of these switches: without a root that is not there."""
        return self.to_json() | {"root": self.root if self.root in switches else None}
