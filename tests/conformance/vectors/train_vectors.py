"""Trains (SPEC.md §2.3, §3.1), as far as one frame shows them."""

from dataclasses import replace

from oracle.codec import Worm
from oracle.tree import Branch, encode_tree
from wormcast.wire import CONTROL_RESET, CONTROL_STOP, MAX_BACK, NEXT_CONTROL, Flag, Kind

from vectors.cases import Json, copied, dropped, make_tree_worm, make_worm, one_step, vector

HEAD, BODY = Flag.TRAIN | Flag.HEAD, int(Flag.TRAIN)
WHOLE = HEAD | Flag.TAIL
STOP = bytes([CONTROL_STOP, 0]) + bytes(4) + (5_000).to_bytes(4, "big")


def _train(position: int, *back: int, order: int = 0) -> bytes:
    """A train header whose head came into switches by these ports, the last one first."""
    numbers = position.to_bytes(2, "big") + bytes([len(back)]) + order.to_bytes(2, "big")
    return numbers + bytes(reversed(back)).rjust(MAX_BACK, b"\0")


def _head(route: str, kind: Kind = Kind.UNICAST) -> Worm:
    return make_worm(kind, route, flags=int(HEAD), train=_train(0))


def _stop(route: str) -> Worm:
    return make_worm(Kind.CONTROL, route, next=NEXT_CONTROL, signal=STOP)


def codec_trains() -> list[Json]:
    """Frames of trains, and the worms of one frame that they are coupled of; worm.json."""
    whole = int(Flag.HEAD | Flag.TAIL)

    def case(name: str, worm: Worm, sequence: int, position: int, is_last: bool) -> Json:
        is_head = position == 0
        ends = (Flag.HEAD if is_head else 0) | (Flag.TAIL if is_last else 0)
        flags = int(worm.flags & ~whole | Flag.TRAIN | ends)
        route = worm.route if is_head else b""
        coupled = replace(worm, flags=flags, route=route, sequence=sequence, train=_train(position))
        return {
            "name": name,
            "whole": worm.to_frame().hex(),
            "sequence": sequence,
            "position": position,
            "is_last": is_last,
            "flags": flags,
            "route": route.hex(),
            "payload": worm.payload.hex(),
            "frame": coupled.to_frame().hex(),
        }

    def worm(kind: Kind, route: str, flags: int = whole) -> Worm:
        return Worm(kind, bytes.fromhex(route), b"wormcast", flags, source=3, sequence=500)

    unicast, tree = worm(Kind.UNICAST, "050102"), encode_tree((Branch(1), Branch(4, (Branch(2),))))
    return [
        case("UNICAST: head", unicast, 500, 0, False),
        case("UNICAST: body", unicast, 499, 1, False),
        case("UNICAST: tail", unicast, 65535, 300, True),
        case("UNICAST: head and tail at once", unicast, 0, 0, True),
        case("UNICAST: head of class 2", worm(Kind.UNICAST, "01", whole | Flag.CLASS2), 1, 0, False),
        case("UNICAST: body, congestion experienced", worm(Kind.UNICAST, "01", whole | Flag.CE), 1, 2, False),
        case("UNICAST: head with a route of 255 bytes", worm(Kind.UNICAST, "07" * 255), 1, 0, False),
        case("UNICAST: tail that loses a route of 255 bytes", worm(Kind.UNICAST, "07" * 255), 1, 1, True),
        case("TREE: head", worm(Kind.TREE, tree.hex()), 500, 0, False),
        case("TREE: tail", worm(Kind.TREE, tree.hex()), 500, 7, True),
    ]


def train_vectors() -> list[Json]:
    head = _head("0501")
    corrupt = replace(head, train=_train(1)).to_frame(head.checksum())
    gone_on = replace(head.at(b"\x01"), train=_train(0, 3))
    whole = make_worm(Kind.UNICAST, "0501", train=_train(0, 7), flags=int(WHOLE))
    tree = make_tree_worm(Branch(1), Branch(4, (Branch(2),)))
    tree = replace(tree, train=_train(0), flags=int(WHOLE))
    tree_on = replace(tree, train=_train(0, 3))
    body = make_worm(Kind.UNICAST, flags=BODY, train=_train(1))
    two = make_tree_worm(Branch(1), Branch(4, (Branch(2),)))
    unicast, control = {"UNICAST": 1}, {"CONTROL": 1}
    refused = "TRAIN_REFUSED"
    return [
        dropped("TRAIN: in packet mode", head, refused, kinds=unicast),
        vector(
            "TRAIN: of one frame, in packet mode",
            whole.to_frame(),
            3,
            {5: replace(whole.at(b"\x01"), train=_train(0, 3, 7)).to_frame()},
            kinds=unicast,
        ),
        vector(
            "TRAIN: TREE of one frame, in packet mode",
            tree.to_frame(),
            3,
            {1: tree_on.at(b"").to_frame(), 4: tree_on.at(bytes.fromhex("0200ff")).to_frame()},
            kinds={"TREE": 1},
        ),
        *(
            vector(
                f"TRAIN: of one frame, absorbed{where}",
                replace(whole, route=bytes.fromhex("fe0501")).to_frame(),
                3,
                {5: replace(whole.at(b"\x01"), hops=2, train=_train(0, 3, 7)).to_frame()},
                state=state,
                kinds={"UNICAST": 2},
                recirculated=1,
            )
            for where, state in (("", "small"), (" in wormhole mode", "wormhole"))
        ),
        vector(
            "TRAIN: by way of port 254",
            _head("fe05").to_frame(),
            3,
            {5: replace(head.at(b""), hops=2, train=_train(0, 3)).to_frame()},
            state="wormhole",
            kinds={"UNICAST": 2},
            recirculated=1,
        ),
        dropped("TRAIN: by way of port 254 in packet mode", _head("fe05"), refused, kinds=unicast),
        dropped(
            "TRAIN: a body by way of port 254",
            replace(_head("fe05"), flags=BODY),
            refused,
            state="wormhole",
            kinds=unicast,
        ),
        dropped("TRAIN: GROUP", _head("0007", Kind.GROUP), refused, state="wormhole", kinds={"GROUP": 1}),
        dropped("TRAIN: header cut short", head.to_frame()[: 14 + 12 + 19], "TRUNCATED"),
        dropped("TRAIN: the checksum covers its header", corrupt, "CHECKSUM"),
        vector(
            "TRAIN: a head records where it came in",
            head.to_frame(),
            3,
            {5: gone_on.to_frame()},
            state="wormhole",
            kinds=unicast,
        ),
        dropped("TRAIN: a body without its head", body, "TRAIN_BROKEN", state="wormhole", kinds=unicast),
        dropped("TRAIN: no room", make_worm(Kind.UNICAST, "05"), "HELD_FULL", state="full", kinds=unicast),
        one_step(
            "WORMHOLE: UNICAST of one frame", make_worm(Kind.UNICAST, "0501"), 5, "01", state="wormhole"
        ),
        copied(
            "WORMHOLE: TREE claims one branch each time it goes round",
            two,
            0,
            {1: "", 4: "0200ff"},
            state="wormhole",
            recirculated=1,
        ),
        one_step("CONTROL: its header is in the checksum", _stop("0501"), 5, "01"),
        dropped("CONTROL: header cut short", _stop("").to_frame()[: 14 + 12 + 9], "TRUNCATED"),
        vector("WORMHOLE: STOP ends here", _stop("").to_frame(), 6, {}, state="wormhole", kinds=control),
        *_interrupted(),
        *_guarded(head, gone_on, body),
    ]


def _interrupted() -> list[Json]:
    """Scheme B: what the heads of fragments leave as, and the number of the root."""
    tree = {"TREE": 1}

    def whole(position: int, flags: int, order: int, *back: int) -> Worm:
        train = _train(position, *back, order=order)
        return make_tree_worm(Branch(1), Branch(4, (Branch(2),)), flags=flags, train=train)

    def copies(worm: Worm) -> dict[int, bytes]:
        return {port: worm.at(bytes.fromhex(route)).to_frame() for port, route in ((1, ""), (4, "0200ff"))}

    one = int(Flag.TRAIN | Flag.HEAD | Flag.TAIL)
    resumed = one | Flag.RESUMED
    end = make_worm(Kind.TREE, flags=int(Flag.TRAIN | Flag.TAIL | Flag.RESUMED), train=_train(7, order=3))
    return [
        # A pass for each branch, and one that keeps the route, less that in which it came.
        vector(
            "INTERRUPT: a head that branches",
            whole(0, one, 0).to_frame(),
            0,
            copies(whole(0, one, 0, 0)),
            state="interrupt",
            kinds=tree,
            recirculated=2,
        ),
        vector(
            "INTERRUPT: the head of a later fragment",
            whole(7, resumed, 3, 6, 1).to_frame(),
            0,
            copies(whole(7, resumed, 3, 0, 6, 1)),
            state="interrupt",
            kinds=tree,
            recirculated=2,
        ),
        dropped(
            "INTERRUPT: the end of a fragment without its head",
            end,
            "TRAIN_BROKEN",
            state="interrupt",
            kinds=tree,
        ),
        # One more for its turn.
        vector(
            "INTERRUPT: the root gives numbers",
            whole(0, one, 0).to_frame(),
            0,
            copies(whole(0, one, 1, 0)),
            state="interrupt_root",
            kinds=tree,
            recirculated=3,
        ),
    ]


def _guarded(head: Worm, gone_on: Worm, body: Worm) -> list[Json]:
    """Every frame of a train is judged where it enters; hosts say nothing to switches. Hosts 5 and 6 are at ports 0 and 1."""
    state = "guarded_wormhole"
    unicast, control = {"UNICAST": 1}, {"CONTROL": 1}
    reset = make_worm(Kind.CONTROL, "0501", next=NEXT_CONTROL, signal=bytes([CONTROL_RESET, 0]) + bytes(8))
    entered = replace(gone_on, train=_train(0, 0))
    vectors = [
        vector("guard: head of a train", head.to_frame(), 0, {5: entered.to_frame()}, state, kinds=unicast),
        # The guard has let it in: its head is missing.
        dropped(
            "guard: body of a train",
            replace(body, source=6),
            "TRAIN_BROKEN",
            1,
            state=state,
            kinds=unicast,
        ),
        dropped("guard: STOP of a host", _stop(""), "KIND_REFUSED", 0, state=state, kinds=control),
        dropped("guard: RESET of a host", reset, "KIND_REFUSED", 0, state=state, kinds=control),
        vector("guard: STOP of a switch", _stop("").to_frame(), 4, {}, state, kinds=control),
    ]
    for part, worm in (("head", head), ("body", body)):
        forged = replace(worm, source=8)
        name = f"guard: {part} of a train with a forged source"
        vectors.append(dropped(name, forged, "SOURCE_REFUSED", 0, state=state, kinds=unicast))
    return vectors
