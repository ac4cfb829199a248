"""Worms that wait for each other across the branches of a multicast (WORM §3, schemes A, C).

A worm whose branches stop each other holds channels of one branch while it waits for one of
another, and the other way round; so no order of channels shows that all is well. What it can
hold while it waits is every channel but the one it waits for and those behind that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wormcast.verify.worms import Step, Tree, Violation

UNICAST, ADAPTER = -1, -2


def find_crossing(plain: Iterable[Step], trees: Sequence[Tree], *, flushes: bool) -> None:
    """Raises `Violation` if a multicast can wait for others that wait for it. With
    `flushes`, a unicast worm does not wait for a channel that a multicast only fills."""
    following: dict[str, set[str]] = {}
    for step in plain:
        following.setdefault(step.held, set()).add(step.needed)
    joined = _join(trees)

    def may_hold(tree: Tree, held: str, awaited: str, waiter: int) -> bool:
        if flushes and waiter == UNICAST:
            return held != awaited and held in _path(tree, awaited)
        return awaited not in _path(tree, held) and (
            waiter < 0 or joined[waiter].parents[held] not in _surely_held(tree, held, awaited)
        )

    def waits_after(name: str, waiter: int, start: int, taken: str | None) -> set[tuple[str, int]]:
        kind = ADAPTER if name.startswith("buffer") else UNICAST
        found = {(needed, kind) for needed in following.get(name, ())}
        for number, tree in enumerate(joined):
            if name in tree.parents and number not in (start, waiter):
                held_for = (wait for wait in _waits(tree) if may_hold(tree, name, wait, waiter))
                found |= {(w, number) for w in held_for if taken not in _surely_held(tree, name, w)}
        return found

    for start, tree in enumerate(joined):
        for awaited in _waits(tree):
            seen, queue = {(awaited, start)}, [(awaited, start)]
            for name, waiter in queue:
                for wait in waits_after(name, waiter, start, tree.parents[awaited]) - seen:
                    if wait[0] in tree.parents and may_hold(tree, wait[0], awaited, wait[1]):
                        raise Violation(tree.worm, wait[0], awaited, "others that hold it wait for this worm")
                    seen.add(wait)
                    queue.append(wait)


def _join(trees: Sequence[Tree]) -> list[Tree]:
    """Worms of one source along one tree follow each other and are taken for one."""
    joined: list[Tree] = []
    for tree in trees:
        for known in joined:
            common = known.parents.keys() & tree.parents.keys()
            if known.source == tree.source and all(known.parents[n] == tree.parents[n] for n in common):
                known.parents.update(tree.parents)
                known.is_several = True
                break
        else:
            joined.append(Tree(tree.worm, tree.source, dict(tree.parents)))
    return joined


def _waits(tree: Tree) -> list[str]:
    return [needed for needed, held in tree.parents.items() if held is not None]


def _surely_held(tree: Tree, held: str, awaited: str) -> set[str]:
    """What a worm holds in any case while it holds one channel and waits for another: its path
    from where the two part. No other worm can hold that."""
    to_held, to_wait = _path(tree, held), _path(tree, awaited)[1:]
    if tree.is_several:
        return {to_wait[0]}
    parting = next(name for name in to_held if name in to_wait)
    return {*to_held[: to_held.index(parting) + 1], *to_wait[: to_wait.index(parting) + 1]}


def _path(tree: Tree, name: str) -> list[str]:
    """The channel and all before it."""
    path, at = [name], tree.parents[name]
    while at is not None:
        path.append(at)
        at = tree.parents[at]
    return path
