"""The guard of the reference switch (SPEC.md §7): what may enter by a port."""

import contextlib
from typing import Any

from oracle.codec import Worm
from oracle.tree import RouteError, split_tree
from wormcast.wire import RECIRCULATE_PORT, DropReason, Kind

Json = dict[str, Any]
PATHS = (Kind.UNICAST, Kind.CONTROL, Kind.BROADCAST, Kind.GATHER)
INGRESS = "standard_metadata.ingress_port"


class ReferenceGuard:
    """Judges worms by the tables of a state."""

    looks_ahead = True
    """Whether it looks where a worm goes next."""

    def __init__(self, tables: dict[str, list[Json]], state: Json) -> None:
        self.ports = {entry["key"][INGRESS]: entry for entry in tables.get("ingress.guard", [])}
        defaults = {default["table"]: default["action"] for default in state["defaults"]}
        self.default = defaults.get("ingress.guard", "ingress.trust_port")
        self.sources = [entry["key"]["source"] for entry in tables.get("ingress.sources", [])]
        self.open = {entry["key"]["group"] for entry in tables.get("ingress.open_groups", [])}
        senders = [entry["key"] for entry in tables.get("ingress.group_senders", [])]
        self.senders = {(key[INGRESS], key["group"]) for key in senders}
        self.bursts = {meter["index"]: meter["burst_bytes"] for meter in state.get("meters", [])}

    def refuse(self, port: int, worm: Worm, frame_bytes: int, is_plain: bool) -> DropReason | None:
        """Why a worm may not enter, as it arrived; `is_plain`: it was made of a class D packet here."""
        entry = self.ports.get(port)
        action = self.default if entry is None else entry["action"]
        if action == "ingress.trust_port":
            return None
        if entry is None:
            return DropReason.HOST_UNKNOWN
        if action == "ingress.link_port":
            return self._refuse_way(
                port, worm, entry["parameters"]["low"] | entry["parameters"]["high"] << 128
            )
        admitted = entry["parameters"]
        if not is_plain:
            reason = self._refuse_worm(worm, admitted) or self._refuse_way(port, worm, 1 << port)
            if reason is not None:
                return reason
        if worm.kind == Kind.GROUP and len(worm.route) == 2:  # else it is malformed
            group = int.from_bytes(worm.route, "big")
            if group not in self.open and (port, group) not in self.senders:
                return DropReason.GROUP_REFUSED
        # States have meters that no frame fits into, so that time does not matter.
        return DropReason.RATE_EXCEEDED if frame_bytes > self.bursts.get(port, frame_bytes) else None

    def _refuse_worm(self, worm: Worm, admitted: Json) -> DropReason | None:
        if worm.source != admitted["host"]:
            known = any(worm.source & key["mask"] == key["value"] for key in self.sources)
            if not admitted["transit"] or worm.kind != Kind.UNICAST or not known:
                return DropReason.SOURCE_REFUSED
        elif not admitted["kinds"] >> worm.kind & 1:
            return DropReason.KIND_REFUSED
        if worm.kind in PATHS and len(worm.route) > admitted["route_max"]:
            return DropReason.ROUTE_TOO_LONG
        if worm.kind == Kind.TREE and len(worm.route) > admitted["tree_max"]:
            return DropReason.ROUTE_TOO_LONG
        return None

    def _refuse_way(self, port: int, worm: Worm, back: int) -> DropReason | None:
        """Why a worm may not go on as its route says; bit p of `back`: port p leads back."""
        if not self.looks_ahead:
            return None
        refused = False
        if worm.kind == Kind.TREE:
            # One that is malformed counts as that, and the body of a train has none.
            with contextlib.suppress(RouteError):
                refused = any(back >> branch & 1 for branch, _ in split_tree(worm.route))
        elif worm.kind in PATHS and worm.route:
            refused = worm.route[0] == RECIRCULATE_PORT or (back != 0 and worm.route[0] == port)
        return DropReason.ROUTE_REFUSED if refused else None
