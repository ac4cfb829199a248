"""What differs between two outcomes of a case."""

from collections import Counter
from dataclasses import dataclass

from differential.generate import Case
from differential.switches import Outcome

SHOWN_MAX = 12
SAME = "same"
ENDLESS = "endless"


@dataclass(frozen=True)
class Verdict:
    """`problem` is what differs; `kind` a word for it, which stays the same while a case
    is made smaller. `reordered`: frames of a port in another order, where that is allowed."""

    kind: str = SAME
    problem: str = ""
    reordered: bool = False

    @property
    def same(self) -> bool:
        """Whether nothing differs that matters."""
        return self.kind == SAME


def compare(case: Case, left: Outcome, right: Outcome, names: tuple[str, str]) -> Verdict:
    """Compares answers, frames and state."""
    if left.crash or right.crash:
        return Verdict("crash", f"{left.crash or names[0] + ' runs'}\n{right.crash or names[1] + ' runs'}")
    for outcome, name in ((left, names[0]), (right, names[1])):
        if outcome.endless is not None:
            return Verdict(ENDLESS, f"{name} does not come to rest after packet {outcome.endless}")
    for command, said, answer in zip(case.commands, left.answers, right.answers, strict=False):
        if said != answer:
            return Verdict("answer", f"{command}\n{names[0]}: {said}\n{names[1]}: {answer}")
    reordered = False
    lines = []
    for port in case.ports:
        one, other = left.frames[port], right.frames[port]
        if one == other:
            continue
        if case.reorders and Counter(one) == Counter(other):
            reordered = True
            continue
        lines += _frames(port, one, other, names)
    if lines:
        return Verdict("frames", "\n".join(lines[:SHOWN_MAX]))
    for name in left.state.keys() | right.state.keys():
        known, read = left.state.get(name), right.state.get(name)
        if known != read:
            lines.append(f"{name}: {names[0]} {_short(known)}, {names[1]} {_short(read)}")
    if lines:
        return Verdict("state", "\n".join(sorted(lines)[:SHOWN_MAX]))
    return Verdict(reordered=reordered)


def _short(value: object) -> str:
    return str(value)[:200]


def _frames(port: int, one: list[bytes], other: list[bytes], names: tuple[str, str]) -> list[str]:
    lines = []
    if len(one) != len(other):
        lines.append(f"port {port}: {names[0]} sent {len(one)} frames, {names[1]} {len(other)}")
    for at in range(max(len(one), len(other))):
        left = one[at].hex() if at < len(one) else "nothing"
        right = other[at].hex() if at < len(other) else "nothing"
        if left != right:
            lines.append(f"port {port}, frame {at}:\n  {names[0]}: {left}\n  {names[1]}: {right}")
            break
    return lines
