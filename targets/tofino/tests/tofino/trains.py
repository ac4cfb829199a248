"""Trains through the chip in wormhole mode, and a judge of what leaves (SPEC.md §3.1).

Some channels send worms, trains and worms of one frame, to drawn outputs. Which frame comes in next, or which of
those that wait passes, is drawn. Frames may be lost before they come in, and while they wait. The clock moves a little
with each step, and beyond the longest silence when nothing moves any more, or at a drawn time.

A worm is *hit* if a frame of it was lost or refused, or if it was silent for too long while it came in. What is not
hit leaves whole. Of what is hit a first part leaves, and perhaps the frame that ends it.
"""

import random
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from oracle.codec import Worm, decode_frame
from wormcast.wire import MAX_BACK, RECIRCULATE_PORT, DropReason, Flag, Kind, TrainEvent

from tofino.chip import TOFINO2, Chip, Result
from tofino.syntax import Program

Json = dict[str, Any]

SLOT_NS = 1 << 24  # in which the program counts time
SILENT_SLOTS = 6
SILENT_US = SILENT_SLOTS << 14
PASS_NS = 2_000  # at most, from one pass to the next
QUIET_ROUNDS = 4  # in which all that wait pass, and nothing leaves or ends: nothing will
BACK_UNKNOWN = 0x80  # of back_count, where the way back is not known
WHOLE = Flag.HEAD | Flag.TAIL
TAG = b"\xa5frame:"


class Fault(AssertionError):
    """What the switch did wrong, with the steps that led there."""


@dataclass(frozen=True)
class Plan:
    """How much comes in, and what goes wrong; chances are of each frame, or each step."""

    channels: tuple[int, ...] = (0, 1, 2, 4)
    outputs: tuple[int, ...] = (3, 5, 6)
    worms: int = 4  # of each channel
    longest: int = 6  # frames
    alone: float = 0.3  # worms of one frame, most of them without a train header
    entries: float = 0.4  # steps at which a frame comes in; else one passes
    others: float = 0.05  # steps at which a CONTROL worm comes by
    lost_before: float = 0.0
    lost_waiting: float = 0.0
    absorbed: float = 0.0  # worms of one frame whose route names 254 first
    slow: float = 0.0  # steps at which some time goes by, less than the longest silence
    silences: float = 0.0  # steps at which nothing comes in for too long
    held_max: int = 1000


@dataclass
class Sent:
    """A worm: its frames as they come in, and what became of them by position."""

    number: int
    channel: int
    output: int
    frames: list[Worm]
    entered: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    next: int = 0  # position of the frame that comes in next
    heard_ns: int = 0  # when the last one came in, or was lost
    aborted: bool = False
    is_broken: bool = False  # a frame was lost while it waited, or none came for too long
    is_refused: bool = False  # its head found too many waiting

    def is_absorbed(self) -> bool:
        """Whether the switch takes it again, as newly arrived."""
        return self.frames[0].route[0] == RECIRCULATE_PORT

    def is_open(self) -> bool:
        """Whether it has begun to come in, and has not come in as a whole."""
        return 0 < self.next < len(self.frames)

    def lacks_tail(self) -> bool:
        """Whether its last frame was lost before it came in."""
        return self.next == len(self.frames) and self.entered[-1:] != [len(self.frames) - 1]

    def is_hit(self) -> bool:
        """Whether anything was lost of it, or refused."""
        return self.is_broken or self.is_refused or len(self.entered) < self.next


def state_with(state: Json, **parameters: int) -> Json:
    """A state in wormhole mode with other parameters."""
    changed = deepcopy(state)
    for entry in changed["defaults"]:
        if entry["table"] == "ingress.wormhole":
            entry["parameters"] |= parameters
    return changed


class Trains:
    """One run by a seed. Whatever breaks a rule raises Fault."""

    def __init__(self, program: Program, state: Json, seed: int, plan: Plan) -> None:
        self.plan = plan
        self.random = random.Random(seed)
        self.chip = Chip(program, TOFINO2)
        silent = {"silent_us": SILENT_US, "held_max": plan.held_max}
        self.chip.install(state_with(state, **silent), state["ports"])
        self.chip.switch.now_ns = self.random.randrange(1 << 48)
        self.ports = {TOFINO2.device_port(port): port for port in state["ports"]}
        self.worms: list[Sent] = []
        self.of_outputs: dict[int, list[tuple[Sent, int]]] = {port: [] for port in state["ports"]}
        self.of_channels: dict[int, list[tuple[int, int]]] = {port: [] for port in state["ports"]}
        self.sequences: Counter[int] = Counter()
        self.events: Counter[str] = Counter()
        self.drops: Counter[str] = Counter()
        self.log: list[str] = [f"seed {seed}, {plan}"]

    # What is sent

    def make(self, channel: int, output: int, length: int, has_header: bool, before: bytes = b"") -> Sent:
        """A worm with the next sequence of a drawn source; its payload names each frame. `before` stands in front of
        its output in the route."""
        source = self.random.choice((channel, channel, 70))
        sequence = self.sequences[source]
        self.sequences[source] += 1
        rest = bytes(self.random.randrange(254) for _ in range(self.random.choice((0, 1, 2, 5))))
        route = before + bytes([output]) + rest
        hops = self.random.choice((0, 1, 7))
        back = bytes(self.random.randrange(254) for _ in range(hops)).rjust(MAX_BACK, b"\0")
        number = len(self.worms)
        frames = []
        for position in range(length):
            is_head = position == 0
            ends = (Flag.HEAD if is_head else 0) | (Flag.TAIL if position == length - 1 else 0)
            train = position.to_bytes(2, "big") + (bytes([hops, 0, 0]) + back if is_head else bytes(18))
            tag = TAG + number.to_bytes(2, "big") + position.to_bytes(2, "big")
            frames.append(
                Worm(
                    Kind.UNICAST,
                    route if is_head else b"",
                    tag + bytes(self.random.randrange(40)),
                    int(ends | Flag.TRAIN if has_header else ends),
                    hops,
                    source,
                    sequence,
                    train=train if has_header else b"",
                )
            )
        self.worms.append(Sent(number, channel, output, frames))
        return self.worms[-1]

    def draw(self, channel: int) -> Sent:
        """A worm as the plan has them."""
        alone = self.random.random() < self.plan.alone
        length = 1 if alone else self.random.randint(2, self.plan.longest)
        has_header = not alone or self.random.random() < 0.3
        before = bytes([RECIRCULATE_PORT]) if alone and self.random.random() < self.plan.absorbed else b""
        return self.make(channel, self.random.choice(self.plan.outputs), length, has_header, before)

    # What happens

    def enter(self, worm: Sent, lost: bool = False) -> None:
        """The next frame of a worm comes in, or is lost before."""
        position = worm.next
        worm.next += 1
        worm.heard_ns = self.chip.switch.now_ns
        name = f"{worm.number}.{position} by {worm.channel} to {worm.output} of {len(worm.frames)}"
        if lost:
            self.log.append(f"lost before: {name}")
            return
        self.log.append(f"enters: {name}")
        worm.entered.append(position)
        frame = worm.frames[position].to_frame()
        self._take(worm, position, self.chip.enter(TOFINO2.device_port(worm.channel), frame))

    def pass_one(self, index: int) -> None:
        """One of those that wait passes."""
        worm, position = self._named(self.chip.recirculating[index])
        if not self.log[-1].startswith("passes:"):
            self.log.append("passes:")
        self.log[-1] += f" {worm.number}.{position}"
        self._take(worm, position, self.chip.pass_one(index))

    def place_of(self, worm: Sent, position: int) -> int:
        """Where a frame stands among those that wait."""
        return [self._named(frame) for frame in self.chip.recirculating].index((worm, position))

    def lose(self, index: int) -> None:
        """One of those that wait is lost."""
        worm, position = self._named(self.chip.recirculating.pop(index))
        self.log.append(f"lost while it waits: {worm.number}.{position}")
        worm.is_broken = True

    def pass_by(self) -> None:
        """A CONTROL worm comes in, and leaves at once."""
        channel, output = self.random.choice(self.plan.channels), self.random.choice(list(self.of_outputs))
        worm = Worm(Kind.CONTROL, bytes([output, 1]), b"other")
        result = self.chip.enter(TOFINO2.device_port(channel), worm.to_frame())
        out = [(self.ports[copy.device_port], copy.data) for copy in result.out]
        self._must(
            out == [(output, worm.at(b"\x01").to_frame())], f"a CONTROL worm by {channel} left as {out}"
        )

    def wait(self, slots: int) -> None:
        """Time goes by in which nothing comes in; what waits goes round meanwhile, as the chip does not stop."""
        for _ in range(slots):
            self.chip.switch.now_ns += SLOT_NS
            for worm in self.worms:
                silent_ns = self.chip.switch.now_ns - worm.heard_ns
                worm.is_broken |= worm.is_open() and silent_ns > (SILENT_SLOTS - 1) * SLOT_NS
            self.round()

    def fall_silent(self) -> None:
        """Nothing comes in for longer than the longest silence."""
        self.rounds()
        self.log.append("silence")
        self.wait(SILENT_SLOTS + 2)
        self.rounds()

    def round(self) -> bool:
        """All that wait pass once, in a drawn order; whether any of them left or ended."""
        before = len(self.chip.recirculating)
        # Those that wait again come behind the others.
        for remaining in range(before, 0, -1):
            self.pass_one(self.random.randrange(remaining))
        return len(self.chip.recirculating) < before

    def rounds(self) -> None:
        """Rounds until nothing moves any more."""
        quiet = 0
        while self.chip.recirculating and quiet < QUIET_ROUNDS:
            quiet = 0 if self.round() else quiet + 1

    # The whole run

    def run(self) -> None:
        """All worms of the plan come in, and what can leave has left."""
        plan = self.plan
        coming = {channel: [self.draw(channel) for _ in range(plan.worms)] for channel in plan.channels}
        while any(coming.values()):
            self.chip.switch.now_ns += self.random.randrange(PASS_NS)
            if self.random.random() < plan.others:
                self.pass_by()
            if self.random.random() < plan.slow:
                self.log.append("time goes by")
                self.wait(self.random.randint(1, SILENT_SLOTS // 2))
            if self.random.random() < plan.silences:
                self.fall_silent()
            waiting = len(self.chip.recirculating)
            if waiting and self.random.random() < plan.lost_waiting:
                self.lose(self.random.randrange(waiting))
            elif not waiting or self.random.random() < plan.entries:
                channel = self.random.choice([channel for channel, worms in coming.items() if worms])
                worm = coming[channel][0]
                self.enter(worm, self.random.random() < plan.lost_before)
                if worm.next == len(worm.frames):
                    coming[channel].pop(0)
            else:
                self.pass_one(self.random.randrange(waiting))
        if not plan.lost_waiting and not plan.silences:
            # The next head of a channel closes what lacks its tail, without any silence.
            self.rounds()
            self.admit()
            for channel in plan.channels:
                self.enter(self.make(channel, self.random.choice(plan.outputs), 1, has_header=False))
            self.rounds()
            self._stands_still("though nothing is missing any more")
        self.settle()
        for output in plan.outputs:
            for channel in self.random.sample(plan.channels, len(plan.channels)):
                self.fresh(channel, output)

    def settle(self) -> None:
        """What waits leaves or ends, after silences."""
        self.rounds()
        # Each silence ends a worm of which something was lost, in its channel or at its output.
        for _ in range(2 * sum(worm.is_hit() for worm in self.worms) + 1):
            if self.chip.recirculating:
                self.fall_silent()
        self._stands_still("for ever")
        self.judge()

    def fresh(self, channel: int, output: int) -> None:
        """A train after all that was before. A silence may have to end first."""
        self.admit()
        worm = self.make(channel, output, 3, has_header=True)
        for _ in worm.frames:
            self.enter(worm)
        self.settle()
        self._must(worm.left == [0, 1, 2] and not worm.aborted, f"of a fresh worm {worm.left} left")

    def admit(self) -> None:
        """It is forgotten that too many waited."""
        if self.is_filling():
            self.wait(3)

    def is_filling(self) -> bool:
        """Whether so few frames may wait that some are refused."""
        return self.plan.held_max < Plan.held_max

    def _stands_still(self, how: str) -> None:
        waiting = [self._named(data) for data in self.chip.recirculating]
        names = [f"{worm.number}.{position}" for worm, position in waiting]
        self._must(not names, f"{names} wait {how}")

    # The judge

    def _take(self, worm: Sent, position: int, result: Result) -> None:
        """What came of a pass: at most one frame, and that this one."""
        for cell, times in result.grown.get("trains", {}).items():
            self.events[TrainEvent(cell).name] += times
        drops = [DropReason(cell).name for cell in result.grown.get("drops", {})]
        self.drops.update(drops)
        self.log += [f"    dropped: {reason}" for reason in drops]
        ways = len(result.out) + result.recirculated + len(drops)
        self._must(ways == 1, f"{ways} frames came of one")
        if drops == ["HELD_FULL"] and self.is_filling():
            worm.is_refused = True
        elif drops == ["PORT_UNKNOWN"] and worm.output not in self.of_outputs:
            self._must(position == len(worm.left), f"it ends behind {worm.left}")
            worm.left.append(position)
        else:
            self._must(
                not drops or (drops == ["TRAIN_BROKEN"] and (worm.is_hit() or self.is_filling())),
                "it is whole",
            )
        for copy in result.out:
            self._leaves(self.ports[copy.device_port], copy.data)

    def _leaves(self, output: int, data: bytes) -> None:
        worm, position = self._named(data)
        left, came = decode_frame(data), worm.frames[position]
        self.log.append(f"    leaves by {output}: {worm.number}.{position} {Flag(left.flags)!r}")
        ended = int(Flag.TAIL | Flag.ABORT)
        is_aborted = bool(left.flags & Flag.ABORT)
        expected = replace(came, hops=came.hops + 1, flags=came.flags | ended if is_aborted else came.flags)
        if position == 0:
            passes = 1 + worm.is_absorbed()
            expected = replace(expected, route=came.route[passes:], hops=came.hops + passes)
            if came.train:
                expected = replace(
                    expected, train=came.train[:2] + bytes([came.train[2] | BACK_UNKNOWN]) + came.train[3:]
                )
        self._must(left == expected, f"it came as {came} and left as {left}")
        self._must(output == worm.output, f"it has to leave by {worm.output}")
        self._must(position not in worm.left, "it leaves twice")
        self._must(not worm.aborted, "it leaves behind the end of its train")
        self._must(is_aborted or position == len(worm.left), f"it leaves behind {worm.left}")
        # One worm at a time, and the next begins with its head.
        before = self.of_outputs[output]
        self._must(
            position == 0 or (before and before[-1][0] is worm), "it leaves without those in front of it"
        )
        if position == 0 and before:
            last, at = before[-1]
            is_over = last.aborted or at == len(last.frames) - 1 or last.is_hit()
            self._must(is_over, f"it leaves in front of the rest of {last.number}")
        before.append((worm, position))
        # A channel keeps its order, whatever its outputs. What was absorbed has left it.
        of_channel = self.of_channels[worm.channel]
        if not worm.is_absorbed():
            self._must(
                not of_channel or of_channel[-1] < (worm.number, position),
                f"it leaves behind {of_channel[-1:]}",
            )
            of_channel.append((worm.number, position))
        worm.left.append(position)
        worm.aborted = is_aborted

    def judge(self) -> None:
        """Each worm that has come in: whole, or as far as it can be."""
        for worm in self.worms:
            if worm.is_open() or not worm.next:
                continue
            # What came in without a gap, and the frame behind the gap, which ends the train.
            gap = next((at for at, position in enumerate(worm.entered) if at != position), len(worm.entered))
            ending = worm.entered[gap : gap + 1] if gap else []
            expected = worm.entered[:gap] + ending
            if self.is_filling():
                # A frame that finds too many waiting ends its train, wherever that is.
                ends = worm.aborted or worm.left[-1:] == [len(worm.frames) - 1]
                may_stop = worm.is_broken or worm.is_refused or not gap or worm.lacks_tail()
                right = bool(worm.left[:gap] == worm.left or worm.aborted) and (ends or may_stop)
            elif worm.is_broken:
                right = worm.left == expected[: len(worm.left)]
                right &= worm.aborted == bool(ending and len(worm.left) == len(expected))
            else:
                right = worm.left == expected and worm.aborted == bool(ending)
            what = f"of {worm.number} came {worm.entered} of {len(worm.frames)}, and left {worm.left}"
            self._must(right, f"{what}, {worm.aborted=} {worm.is_broken=} {worm.is_refused=}")

    def _named(self, data: bytes) -> tuple[Sent, int]:
        """Worm and position of a frame, by its payload."""
        at = data.index(TAG) + len(TAG)
        number, position = (int.from_bytes(data[at + offset : at + offset + 2], "big") for offset in (0, 2))
        return self.worms[number], position

    def _must(self, holds: object, what: str) -> None:
        if not holds:
            raise Fault("\n".join([*self.log, what]))
