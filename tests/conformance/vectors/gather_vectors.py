"""ACKs that a switch gathers (SPEC.md §3.2).

The state `gathering` is `small` with entries for group 7: branch 0 is behind port 0, branch 1 behind port 1,
branch 2 behind ports 5 and 6, and the origin behind port 4; the epoch is 9. What comes from a branch has source 5,
what goes up has source 0x8001. The branches of origin 200 are
one alone. Registers keep what they were told, so each vector has an origin of its own.
"""

from collections.abc import Callable
from dataclasses import replace

from oracle.codec import Worm
from reference_gather import Gathered
from wormcast.wire import (
    GATHER_ANSWER,
    GATHER_KNOWN,
    GATHER_REFRESH,
    GATHER_REQUEST,
    Kind,
)

from vectors.cases import Json, dropped, make_worm, vector
from vectors.states import GATHER_AS, GATHER_EPOCH, GATHER_GROUP, GATHER_LONE_ORIGIN, GATHER_ORIGINS

STATE = "gathering"
UP = 4
ONCE = {"GATHER": 1}
STREAM = 0x70000000


CODEC_CASES: list[tuple[str, Gathered, str]] = [
    ("an ACK for the first switch", Gathered(1, 0, 7, 300, 0, 0, 9, 1000, 41, 33), ""),
    (
        "an ACK to be said again, at its origin",
        Gathered(1, GATHER_REFRESH, 7, 300, 0, 0, 9, 1000, 41, 33),
        "",
    ),
    ("highest numbers", Gathered(1, 0, 65535, 65534, 0, 0, *(2**32 - 1,) * 4), ""),
    ("a request by a route of odd length", Gathered(2, 0, 7, 300, 253, 0, 9, 1000, 0, 0), "050301"),
    ("an answer of a branch that has spoken", Gathered(3, GATHER_KNOWN, 7, 300, 6, 0, 9, 1000, 5, 4), ""),
    ("an answer of one that has not", Gathered(3, 0, 7, 300, 6, 0, 9, 1000, 0, 0), ""),
]


def codec_gathers() -> list[Json]:
    """GATHER worms as hosts send and receive them."""
    return [_codec_case(name, said, _worm(said, route)) for name, said, route in CODEC_CASES]


def _codec_case(name: str, said: Gathered, worm: Worm) -> Json:
    fields = {name: value for name, value in vars(said).items() if name != "pad"}
    padding = bytes(max(0, 60 - len(worm.to_frame()) + len(worm.payload)))
    frame = replace(worm, payload=padding).to_frame().hex()
    return {"name": name, "src": worm.src.hex(), "source": worm.source, "sequence": worm.sequence} | {
        "route": worm.route.hex(),
        **fields,
        "frame": frame,
    }


def codec_bad_gathers() -> list[Json]:
    """What says nothing."""
    _, said, _ = CODEC_CASES[0]
    good = _worm(said).to_frame()
    damaged = good[:-11] + bytes([good[-11] ^ 1]) + good[-10:]
    cases = [
        ("ends a byte early", good[: -len(_worm(said).payload) - 1], "truncated"),
        ("its last byte is damaged", damaged, "worm_checksum"),
        ("op 0", _worm(replace(said, op=0)).to_frame(), "gather_op"),
        ("op 4", _worm(replace(said, op=4)).to_frame(), "gather_op"),
    ]
    return [{"name": name, "frame": frame.hex(), "reason": reason} for name, frame, reason in cases]


def _up(said: Gathered, hops: int = 1) -> bytes:
    """What leaves for the origin."""
    return replace(_worm(said), source=GATHER_AS).at(b"", hops=hops).to_frame()


def _worm(said: Gathered, route: str = "") -> Worm:
    return make_worm(Kind.GATHER, route, next=0x0001, gather=said.to_bytes(), payload=bytes(10))


class _Tree:
    """The tree of one origin, and frames of it."""

    def __init__(self, origin: int) -> None:
        self.said = Gathered(group=GATHER_GROUP, origin=origin, epoch=GATHER_EPOCH, stream=STREAM)
        self.frames: list[Json] = []

    def ack(self, cumulative: int, stable: int, **fields: int) -> Gathered:
        return replace(self.said, cumulative=cumulative, stable=stable, **fields)

    def hears(self, port: int, cumulative: int, stable: int, **fields: int) -> None:
        """An ACK that came before."""
        frame = _worm(self.ack(cumulative, stable, **fields)).to_frame()
        self.frames.append({"ingress_port": port, "frame": frame.hex()})

    def vector(self, name: str, port: int, said: Gathered, says: Gathered | None, to: int = UP) -> Json:
        """A worm by a port, and what goes up for it."""
        out = {} if says is None else {to: _up(says)}
        kinds = {"GATHER": 1}
        return vector(
            f"GATHER: {name}", _worm(said).to_frame(), port, out, STATE, kinds=kinds, before=self.frames
        )

    def drop(self, name: str, port: int, said: Gathered, reason: str) -> Json:
        return dropped(
            f"GATHER: {name}", _worm(said), reason, port, state=STATE, kinds=ONCE, before=self.frames
        )


def gather_vectors() -> list[Json]:
    origins = iter(GATHER_ORIGINS)

    def tree() -> _Tree:
        return _Tree(next(origins))

    cases = [*_routed(tree()), *_refused(tree())]
    for part in (_least, _late, _lives, _requests):
        cases += part(tree)
    return cases


def _routed(some: _Tree) -> list[Json]:
    """With a route it goes by it, and what it says is not looked at."""
    ack = _worm(some.ack(1, 1), "0503")
    lone = replace(some.said, origin=GATHER_LONE_ORIGIN)
    absorbed, said = _worm(lone, "fe"), lone
    return [
        vector("GATHER: by a route", ack.to_frame(), 0, {5: ack.at(b"\x03").to_frame()}, STATE, kinds=ONCE),
        dropped(
            "GATHER: a route to no port", _worm(some.said, "07"), "PORT_UNKNOWN", 0, state=STATE, kinds=ONCE
        ),
        # A lone branch: what it says goes up as it is.
        vector(
            "GATHER: absorbed, then gathered",
            absorbed.to_frame(),
            0,
            {UP: _up(said, hops=2)},
            STATE,
            kinds={"GATHER": 2},
            recirculated=1,
        ),
    ]


def _refused(some: _Tree) -> list[Json]:
    ack = some.ack(5, 5)
    frame = _worm(ack).to_frame()
    changed = _worm(replace(ack, stable=6)).to_frame(_worm(ack).checksum())
    return [
        some.drop("no entry for the group", 0, replace(ack, group=8), "GATHER_UNKNOWN"),
        some.drop("no entry for the origin", 0, replace(ack, origin=99), "GATHER_UNKNOWN"),
        some.drop("no entry for the port", 2, ack, "GATHER_UNKNOWN"),
        dropped(
            "GATHER: of a source that is not behind the port",
            replace(_worm(ack), source=6),
            "GATHER_UNKNOWN",
            0,
            state=STATE,
            kinds=ONCE,
        ),
        dropped(
            "GATHER: an answer of a source that is not behind the port",
            replace(_worm(replace(ack, op=GATHER_ANSWER)), source=6),
            "GATHER_UNKNOWN",
            0,
            state=STATE,
            kinds=ONCE,
        ),
        some.drop("no op 0", 0, replace(ack, op=0), "GATHER_UNKNOWN"),
        some.drop("no op 4", 0, replace(ack, op=4), "GATHER_UNKNOWN"),
        some.drop("of an older plan", 0, replace(ack, epoch=GATHER_EPOCH - 1), "GATHER_STALE"),
        some.drop("of a newer plan", 0, replace(ack, epoch=GATHER_EPOCH + 1), "GATHER_STALE"),
        some.drop(
            "request of another plan", 4, replace(ack, op=GATHER_REQUEST, epoch=0, port=0), "GATHER_STALE"
        ),
        dropped("GATHER: cut short", frame[: 14 + 12 + 23], "TRUNCATED", 0, state=STATE),
        dropped("GATHER: the checksum covers what it says", changed, "CHECKSUM", 0, state=STATE),
        dropped("GATHER: at a switch without entries", frame, "GATHER_UNKNOWN", 0, kinds=ONCE),
    ]


def _least(tree: Callable[[], _Tree]) -> list[Json]:
    cases = []
    some = tree()
    cases.append(some.vector("the first of three branches", 0, some.ack(5, 4), None))
    some = tree()
    some.hears(0, 5, 4)
    some.hears(0, 6, 6)
    cases.append(some.vector("one branch is missing", 1, some.ack(9, 9), None))
    # The least of each number, whichever branch it is of.
    for last, (port, (cumulative, stable), least) in enumerate(
        [(5, (9, 3), (5, 3)), (6, (4, 4), (4, 4)), (5, (100, 100), (5, 4))]
    ):
        some = tree()
        some.hears(0, 5, 5)
        some.hears(1, 8, 4)
        name = f"all branches, case {last}"
        cases.append(some.vector(name, port, some.ack(cumulative, stable), some.ack(*least)))
    some = tree()
    for port in (0, 1, 5):
        some.hears(port, 5, 5)
    cases.append(some.vector("the least does not move", 0, some.ack(9, 9), None))
    again = some.ack(9, 9, flags=GATHER_REFRESH)
    some = tree()
    for port in (0, 1, 5):
        some.hears(port, 5, 5)
    again = replace(again, origin=some.said.origin)
    says = some.ack(5, 5, flags=GATHER_REFRESH)
    cases.append(some.vector("said again on request", 0, again, says))
    some = tree()
    some.hears(0, 7, 7)
    cases.append(some.vector("two are missing, on request", 1, some.ack(7, 7, flags=GATHER_REFRESH), None))
    # Numbers modulo 2^32.
    some = tree()
    some.hears(0, 0xFFFFFFF0, 0xFFFFFFF0)
    some.hears(1, 8, 2)
    cases.append(some.vector("numbers wrap", 5, some.ack(4, 4), some.ack(0xFFFFFFF0, 0xFFFFFFF0)))
    return cases


def _late(tree: Callable[[], _Tree]) -> list[Json]:
    """What comes late takes nothing back."""
    cases = []
    some = tree()
    for port in (0, 1, 5):
        some.hears(port, 9, 9)
    cases.append(some.vector("late, says less", 1, some.ack(5, 5), None))
    some = tree()
    some.hears(0, 9, 9)
    some.hears(1, 9, 9)
    some.hears(1, 5, 12)
    cases.append(some.vector("each number by itself", 6, some.ack(20, 20), some.ack(9, 9)))
    return cases


def _lives(tree: Callable[[], _Tree]) -> list[Json]:
    """What was said in one stream says nothing of another."""
    cases = []
    some = tree()
    for port in (0, 1):
        some.hears(port, 50, 50)
    cases.append(some.vector("a new stream begins", 5, some.ack(3, 3, stream=STREAM + 1), None))
    some = tree()
    for port in (0, 1, 5):
        some.hears(port, 50, 50)
    for port in (0, 1):
        some.hears(port, 3, 2, stream=STREAM + 1)
    new = some.ack(50, 50, stream=STREAM + 1)
    cases.append(some.vector("a new stream", 6, new, replace(new, cumulative=3, stable=2)))
    some = tree()
    for port in (0, 1):
        some.hears(port, 3, 3, stream=STREAM + 1)
    cases.append(some.drop("a stream that is over", 5, some.ack(3, 3), "GATHER_STALE"))
    some = tree()
    for port in (0, 1, 5):
        some.hears(port, 50, 50)
    for port in (0, 1):
        some.hears(port, 50, 50, stream=STREAM + 1)
    same = some.ack(50, 50, stream=STREAM + 1)
    cases.append(some.vector("a new stream with the numbers of the last", 5, same, same))
    # The first stream may have any number, also one that is behind a register of 0.
    zero = Gathered(stream=0x90000000, cumulative=1, stable=1)
    cases.append(tree().vector("the first stream, all else being 0", 0, zero, zero))
    return cases


def _requests(tree: Callable[[], _Tree]) -> list[Json]:
    cases = []
    some = tree()
    some.hears(0, 9, 8)
    ask = replace(some.said, op=GATHER_REQUEST, port=0, cumulative=77, stable=77, flags=GATHER_REFRESH)
    answer = replace(ask, op=GATHER_ANSWER, flags=GATHER_KNOWN, cumulative=9, stable=8)
    cases.append(some.vector("a request", 4, ask, answer))
    nothing = replace(answer, flags=0, cumulative=0, stable=0)
    cases.append(
        some.vector("a request of a silent branch", 4, replace(ask, port=1), replace(nothing, port=1))
    )
    other = {"stream": STREAM + 1}
    cases.append(
        some.vector(
            "a request of another stream", 4, replace(ask, port=0, **other), replace(nothing, **other)
        )
    )
    cases.append(some.drop("a request of no branch", 4, replace(ask, port=4), "GATHER_UNKNOWN"))
    cases.append(
        some.vector(
            "an answer goes on with what it says", 5, replace(answer, port=200), replace(answer, port=200)
        )
    )
    cases.append(some.drop("an answer from no branch", 2, answer, "GATHER_UNKNOWN"))
    return cases
