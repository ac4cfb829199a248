"""How switches pass worms on, as the operator wants it: packet mode, or wormhole mode with a scheme of WORM §3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wormcast.wire import RECIRCULATE_PORT

PACKET, WORMHOLE = "packet", "wormhole"
PLAIN, FLUSH, INTERRUPT = "plain", "flush", "interrupt"
SCHEMES = (PLAIN, FLUSH, INTERRUPT)
BRANCHING = {PLAIN: "coupled", FLUSH: "flushed", INTERRUPT: "interrupted"}
TREE_ONLY = "tree-only"
SWITCHINGS = (PACKET, WORMHOLE, f"{WORMHOLE}:{FLUSH}", f"{WORMHOLE}:{INTERRUPT}")
"""As command lines have them; `wormhole` is that with plain waiting."""
MULTICASTS = (
    "two multicasts with two members in common can wait for each other for ever, each with what the other needs "
    "(WORM §3 overlooks that); `wormcast verify` says whether those of the groups in force can"
)
OFF_THE_TREE = (
    "unicast routes off the tree and multicasts can wait for each other for ever (WORM §3, Fig. 3): not free of deadlock "
    "with all groups; `wormcast verify` says whether those in force can; the first scheme of the paper is this with routes of algorithm tree-only"
)
IN_ONE_SWITCH = (
    "that takes so many waiting frames that switches say STOP, since a train of an agent has room in one switch; "
    "`wormcast worms` names worms that are stuck"
)
UNICAST_ALONE = (
    "UNICAST worms alone have channels for themselves and are trains; all others pass as in packet mode"
)
WITHOUT_STOP = (
    "nobody is told STOP: where as many frames of a channel wait as may, what comes by it is dropped (HELD_FULL) until some "
    "have left"
)
BMV2_WAITING_FRAMES = 4096
"""Room in BMv2 for frames that wait. With its 64 those that find none are lost, and each costs those behind it a second."""
BMV2_ROUNDS_PER_S = 4000
"""How many of them go round. They do so before all that comes: without a pace they can keep out what would end their
waiting, for ever where processors are few."""
RECIRCULATIONS = (
    "switches have to let frames wait, as those of wormcast up do; of others the controller cannot see it: wormcast-switch "
    "with --recirculations 0, else it drops what has waited for some seconds; BMv2 once simple_switch_CLI has told it "
    f"set_queue_depth {BMV2_WAITING_FRAMES} {RECIRCULATE_PORT} and set_queue_rate {BMV2_ROUNDS_PER_S} {RECIRCULATE_PORT}, "
    "else it loses what waits and may never deliver (there choose packet)"
)


@dataclass(frozen=True)
class Switching:
    """Raises `ValueError` for what there is not."""

    mode: str = PACKET
    scheme: str | None = None
    """What a worm does that finds a channel taken: plain, it waits; flush, unicast gives way to a multicast that
    waits elsewhere; interrupt, a multicast that waits gives up all that it has, and multicasts of all groups go by the
    root. Of wormhole mode alone."""

    def __post_init__(self) -> None:
        if self.mode not in (PACKET, WORMHOLE):
            raise ValueError(f"mode {self.mode!r}; possible: {PACKET}, {WORMHOLE}")
        if self.mode == PACKET and self.scheme is not None:
            raise ValueError(f"scheme {self.scheme!r} in mode {PACKET}; possible: none")
        if self.mode == WORMHOLE and self.scheme not in SCHEMES:
            raise ValueError(f"scheme {self.scheme!r}; possible: {', '.join(SCHEMES)}")

    @staticmethod
    def parse(text: str) -> Switching:
        """One of `SWITCHINGS`, or wormhole:plain. Raises `ValueError`."""
        mode, _, scheme = text.partition(":")
        return Switching(mode, scheme or (PLAIN if text == WORMHOLE else None))

    @property
    def text(self) -> str:
        """As command lines have it."""
        return f"{self.mode}:{self.scheme}" if self.scheme in (FLUSH, INTERRUPT) else self.mode

    @property
    def branching(self) -> str:
        """What the other branches of a TREE worm do while one is blocked, as the deadlock check has it."""
        return "independent" if self.scheme is None else BRANCHING[self.scheme]

    @property
    def takes_trains(self) -> bool:
        """Whether agents send trains."""
        return self.mode == WORMHOLE

    def warnings(self, algorithm: str, unicast_alone: bool = False) -> list[str]:
        """What worms may run into where unicast routes are those of an algorithm: sentences. Nothing is refused for it.
        `unicast_alone`: switches hold channels for no other worms, and say no STOP."""
        if self.mode == PACKET:
            return []
        if unicast_alone:
            return [UNICAST_ALONE, WITHOUT_STOP]
        if self.scheme == INTERRUPT:
            return [RECIRCULATIONS]
        off_the_tree = self.scheme == PLAIN and algorithm != TREE_ONLY
        return [*([OFF_THE_TREE] if off_the_tree else []), MULTICASTS, IN_ONE_SWITCH, RECIRCULATIONS]

    def to_json(self) -> dict[str, Any]:
        """As REST and the state file have it."""
        return {"mode": self.mode, "scheme": self.scheme}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Switching:
        """The same read back. Raises `ValueError`, `TypeError`, `KeyError`."""
        return Switching(value["mode"], value["scheme"])
