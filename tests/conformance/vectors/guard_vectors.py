"""What the guard lets in: every kind against everything it may be refused for.

The state `guarded` is `small` with hosts 5 to 8 at ports 0 to 3 (states.py):

| port | host | kinds | re-injects | route | TREE route | groups it may send to |
|---|---|---|---|---|---|---|
| 0 | 5 | all but CONTROL | yes | 8 | 23 | 7 |
| 1 | 6 | UNICAST, TREE | no | 4 | 5 | – |
| 2 | 7, plain | none | no | 0 | 0 | 9 |
| 3 | 8, its rate below any frame | UNICAST | no | 4 | 0 | – |
| 4, 5 | a switch; what comes by port 5 may turn | | | | | |
| 6 | nothing known | | | | | |

Groups 7 and 9 are closed. Hosts 0 to 7 and 64 are known as sources.
"""

from typing import Any

from oracle.codec import Worm
from oracle.tree import Branch
from wormcast.wire import Flag, Kind

from vectors.cases import Json, copied, dropped, make_tree_worm, make_worm, one_step, vector
from vectors.edge_vectors import ip_packet, plain_frame

GUARDED = "guarded"
TRACED = int(Flag.HEAD | Flag.TAIL | Flag.TRACE)
OWNERS = {0: 5, 1: 6, 2: 7, 3: 8}


def _worms(**fields: Any) -> dict[str, Worm]:
    """A sound worm of each kind, of host 5."""
    return {
        "UNICAST": make_worm(Kind.UNICAST, "0503", **fields),
        "TREE": make_tree_worm(Branch(1), Branch(4), **fields),
        "BROADCAST": make_worm(Kind.BROADCAST, "0405", **fields),
        "BROADCAST at the root": make_worm(Kind.BROADCAST, **fields),
        "GROUP": make_worm(Kind.GROUP, "0007", **fields),
        "CONTROL": make_worm(Kind.CONTROL, "0503", **fields),
    }


def _traced(source: int) -> Worm:
    """A probe with room for two records. The guard sees no difference."""
    return make_worm(Kind.UNICAST, "0503", source=source, flags=TRACED, payload=bytes([0, 2]) + bytes(34))


def _refused(name: str, worm: Worm, reason: str, ingress_port: int) -> Json:
    kinds = {Kind(worm.kind).name: 1}
    return dropped(f"guard: {name}", worm, reason, ingress_port, state=GUARDED, kinds=kinds)


def guard_vectors() -> list[Json]:
    return [
        *_admitted(),
        *_sources(),
        *_kinds(),
        *_routes(),
        *_ways(),
        *_groups(),
        *_ports(),
        *_admission_first(),
        *_before_the_route(),
    ]


def _admitted() -> list[Json]:
    """What agents send, and what came through another switch."""
    worms = _worms()
    cases = [
        one_step("guard: UNICAST of the port's host", worms["UNICAST"], 5, "03", 0, state=GUARDED),
        one_step("guard: traced UNICAST of the port's host", _traced(5), 5, "03", 0, state=GUARDED),
        copied("guard: TREE of the port's host", worms["TREE"], 0, {1: "", 4: ""}, state=GUARDED),
        one_step("guard: BROADCAST on its way", worms["BROADCAST"], 4, "05", 0, state=GUARDED),
        copied(
            "guard: BROADCAST at the root",
            worms["BROADCAST at the root"],
            0,
            dict.fromkeys((0, 1, 2, 3, 5, 6), ""),
            state=GUARDED,
        ),
        copied(
            "guard: GROUP of a member",
            worms["GROUP"],
            0,
            dict.fromkeys((1, 4, 5), "0007"),
            state=GUARDED,
            filtered={"GROUP": 1},
        ),
        copied(
            "guard: GROUP to an open group",
            make_worm(Kind.GROUP, "012c"),
            0,
            dict.fromkeys((1, 2, 6), "012c"),
            state=GUARDED,
        ),
    ]
    for source in (0, 4, 7, 64):
        worm = make_worm(Kind.UNICAST, "0503", source=source)
        cases.append(one_step(f"guard: in transit, of host {source}", worm, 5, "03", 0, state=GUARDED))
    # A switch has judged what it sends: any source, kind, route and group goes on.
    for kind in (Kind.UNICAST, Kind.CONTROL, Kind.BROADCAST):
        worm = make_worm(kind, bytes([5]) + bytes(40), source=60000)
        name = f"guard: {kind.name} from a switch"
        cases.append(one_step(name, worm, 5, bytes(40), ingress_port=4, state=GUARDED))
    cases.append(
        copied(
            "guard: GROUP from a switch",
            make_worm(Kind.GROUP, "0007", source=60000),
            5,
            dict.fromkeys((0, 1, 4), "0007"),
            state=GUARDED,
            filtered={"GROUP": 1},
        )
    )
    return cases


def _sources() -> list[Json]:
    """Nobody speaks for another, but for UNICAST worms in transit."""
    cases = []
    for source, whose in ((6, "of another host"), (8, "of no known host"), (0xFFFF, "of plain hosts")):
        for name, worm in _worms(source=source).items():
            if name != "UNICAST" or source != 6:
                cases.append(_refused(f"{name} with a source {whose}", worm, "SOURCE_REFUSED", 0))
        worm = make_worm(Kind.UNICAST, "0503", source=5 if source == 6 else source)
        text = f"UNICAST with a source {whose}, of a host that re-injects nothing"
        cases.append(_refused(text, worm, "SOURCE_REFUSED", 1))
    cases.append(_refused("traced, with a source of no known host", _traced(8), "SOURCE_REFUSED", 0))
    for source in (63, 65, 0x4040):
        worm = make_worm(Kind.UNICAST, "0503", source=source)
        cases.append(_refused(f"in transit, of {source} beside a known host", worm, "SOURCE_REFUSED", 0))
    return cases


def _kinds() -> list[Json]:
    cases = [_refused("CONTROL of a host", _worms()["CONTROL"], "KIND_REFUSED", 0)]
    for port in (1, 2):
        worms = _worms(source=OWNERS[port])
        if port == 1:
            del worms["UNICAST"], worms["TREE"]
        whose = "a host that sends UNICAST and TREE alone" if port == 1 else "a plain host"
        cases += [_refused(f"{name} of {whose}", worm, "KIND_REFUSED", port) for name, worm in worms.items()]
    return cases


def _routes() -> list[Json]:
    """Bytes as they arrive, those for this switch included."""
    rest = bytes.fromhex("00010203040506")
    tree = make_tree_worm(Branch(4, tuple(Branch(port) for port in range(10))))
    longer = make_tree_worm(Branch(4, tuple(Branch(port) for port in range(11))))
    return [
        one_step(
            "guard: longest UNICAST route",
            make_worm(0, b"\x05" + rest),
            5,
            rest,
            ingress_port=0,
            state=GUARDED,
        ),
        one_step(
            "guard: longest route in transit",
            make_worm(0, b"\x05" + rest, source=1),
            5,
            rest,
            ingress_port=0,
            state=GUARDED,
        ),
        _refused("UNICAST route too long", make_worm(0, b"\x05\x07" + rest), "ROUTE_TOO_LONG", 0),
        _refused("in transit, too long", make_worm(0, b"\x05\x07" + rest, source=1), "ROUTE_TOO_LONG", 0),
        _refused("BROADCAST route too long", make_worm(2, b"\x05\x07" + rest), "ROUTE_TOO_LONG", 0),
        _refused(
            "UNICAST route of 255 bytes",
            make_worm(0, b"\x05" + bytes(254), source=6),
            "ROUTE_TOO_LONG",
            1,
        ),
        copied(
            "guard: longest TREE route",
            tree,
            0,
            {4: bytes(x for port in range(10) for x in (port, 0)) + b"\xff"},
            state=GUARDED,
        ),
        _refused("TREE route too long", longer, "ROUTE_TOO_LONG", 0),
        _refused(
            "TREE route too long for this host",
            make_tree_worm(Branch(4), Branch(5), Branch(6), source=6),
            "ROUTE_TOO_LONG",
            1,
        ),
        copied(
            "guard: longest TREE route of another host",
            make_tree_worm(Branch(4), Branch(5), source=6),
            1,
            {4: "", 5: ""},
            state=GUARDED,
        ),
        dropped(
            "guard: TREE route too long, and malformed",
            make_worm(Kind.TREE, b"\x04\x00" * 12),
            "ROUTE_TOO_LONG",
            0,
            state=GUARDED,
            kinds={"TREE": 1},
        ),
        dropped(
            "guard: absorbed, too long as it arrived",
            make_worm(0, bytes([254] * 8) + b"\x05"),
            "ROUTE_TOO_LONG",
            0,
            state=GUARDED,
            kinds={"UNICAST": 1},
        ),
        copied(
            "guard: longer TREE route from a switch",
            make_tree_worm(Branch(0, tuple(Branch(port) for port in range(11))), source=60000),
            5,
            {0: bytes(x for port in range(11) for x in (port, 0)) + b"\xff"},
            state=GUARDED,
        ),
    ]


def _ways() -> list[Json]:
    """No worm goes back where it came from, but by port 5, where worms turn, or round in the switch."""
    cases = []
    for port, whose, source, routes in (
        (0, "its host", 5, {"UNICAST": "00", "UNICAST on its way": "0003", "BROADCAST": "0003"}),
        (4, "a switch", 60000, {"UNICAST": "0403", "CONTROL": "0403", "GATHER": "0403", "BROADCAST": "04"}),
    ):
        for name, route in routes.items():
            kind = Kind[name.split()[0]]
            payload = {"payload": bytes(24)} if kind == Kind.GATHER else {}
            worm = make_worm(kind, route, source=source, **payload)
            cases.append(_refused(f"{name} back to {whose}", worm, "ROUTE_REFUSED", port))
        back = make_tree_worm(Branch(1), Branch(port), source=source)
        cases.append(_refused(f"TREE back to {whose}", back, "ROUTE_REFUSED", port))
        lost = make_tree_worm(Branch(port), Branch(7), source=source)
        cases.append(_refused(f"TREE back to {whose}, and to no port", lost, "ROUTE_REFUSED", port))
    cases += [
        _refused("in transit, back to who re-injects", make_worm(0, "0003", source=1), "ROUTE_REFUSED", 0),
        _refused(
            "TREE back by another link",
            make_tree_worm(Branch(0), Branch(5), source=60000),
            "ROUTE_REFUSED",
            4,
        ),
        # The next switch looks at what is below.
        copied(
            "guard: TREE that goes back later",
            make_tree_worm(Branch(4, (Branch(0), Branch(4)))),
            0,
            {4: "00000400ff"},
            state=GUARDED,
        ),
        copied(
            "guard: TREE that turns where worms may",
            make_tree_worm(Branch(0), Branch(5), source=60000),
            5,
            {0: "", 5: ""},
            state=GUARDED,
        ),
        one_step(
            "guard: UNICAST that turns where worms may",
            make_worm(0, "0503", source=60000),
            5,
            "03",
            ingress_port=5,
            state=GUARDED,
        ),
        dropped(
            "guard: TREE back to its host, and malformed",
            make_worm(Kind.TREE, "0000"),
            "TREE_MALFORMED",
            0,
            state=GUARDED,
            kinds={"TREE": 1},
        ),
    ]
    for port, source in ((0, 5), (0, 1), (4, 60000), (5, 60000)):
        worm = make_worm(0, bytes([254] * 2) + b"\x05", source=source)
        cases.append(_refused(f"absorbed, of {source} by port {port}", worm, "ROUTE_REFUSED", port))
    worm = make_worm(Kind.BROADCAST, "fe", source=60000)
    cases.append(_refused("BROADCAST absorbed", worm, "ROUTE_REFUSED", 4))
    return cases


def _groups() -> list[Json]:
    def packet(address: str) -> bytes:
        return plain_frame(address, ip_packet(address))

    member = packet("225.77.88.9")
    return [
        _refused("GROUP to a closed group of others", make_worm(Kind.GROUP, "0009"), "GROUP_REFUSED", 0),
        vector("guard: class D of a member", member, 2, {}, GUARDED, filtered={"GROUP": 1}),
        dropped("guard: class D to a closed group", packet("239.1.1.7"), "GROUP_REFUSED", 2, state=GUARDED),
        dropped("guard: class D of a host with an agent", member, "GROUP_REFUSED", 1, state=GUARDED),
        vector(
            "guard: class D to an open group",
            packet("239.1.1.8"),
            2,
            {
                1: packet("239.1.1.8"),
                6: make_worm(
                    Kind.GROUP, "012c", source=0xFFFF, sequence=0, next=0x0800, payload=ip_packet("239.1.1.8")
                )
                .at(bytes.fromhex("012c"))
                .to_frame(),
            },
            GUARDED,
            filtered={"GROUP": 1},
        ),
    ]


def _ports() -> list[Json]:
    """A port that nothing known is behind, and one whose host sends too much."""
    cases = [_refused(f"{name} from nowhere", worm, "HOST_UNKNOWN", 6) for name, worm in _worms().items()]
    cases.append(_refused("UNICAST above its rate", make_worm(0, "0503", source=8), "RATE_EXCEEDED", 3))
    frame = plain_frame("239.1.1.8", ip_packet("239.1.1.8"))
    cases.append(dropped("guard: class D above its rate", frame, "RATE_EXCEEDED", 3, state=GUARDED))
    igmp = ip_packet("239.1.1.7", protocol=2, body=bytes.fromhex("1600f8f7ef010107"))
    report = plain_frame("239.1.1.7", igmp)
    case = vector("guard: IGMP above its rate", report, 3, {510: report}, GUARDED)
    case["out"][0]["packet_in"] = {"ingress_port": 3}
    return [*cases, case]


def _admission_first() -> list[Json]:
    """A worm that the fabric cannot answer for counts as that, also where the guard would refuse it."""
    forged = _worms(source=9999)
    cases = []
    for port, where in ((0, "at a host"), (6, "from nowhere")):
        for name, worm in forged.items():
            frame = worm.to_frame()
            title = f"guard: {name} with a forged source {where}"
            cases += [
                dropped(
                    f"{title}: version",
                    frame[:14] + b"\x20" + frame[15:],
                    "VERSION_UNKNOWN",
                    port,
                    state=GUARDED,
                ),
                dropped(
                    f"{title}: checksum",
                    worm.to_frame(checksum=worm.checksum() ^ 1),
                    "CHECKSUM",
                    port,
                    state=GUARDED,
                ),
                dropped(f"{title}: header cut off", frame[:20], "TRUNCATED", port, state=GUARDED),
            ]
            if worm.route:
                cut = frame[: 26 + len(worm.route) - 1]
                cases.append(dropped(f"{title}: route cut off", cut, "TRUNCATED", port, state=GUARDED))
        for name, worm in _worms(source=9999, hops=64).items():
            title = f"guard: {name} with a forged source {where}: hops"
            cases.append(dropped(title, worm, "HOPS_EXCEEDED", port, state=GUARDED))
    return cases


def _before_the_route() -> list[Json]:
    """The guard judges before anybody looks at the route; what it lets in may still be wrong."""
    cases = []
    for name, fields, reason in (
        ("kind 6", (6, "05"), "KIND_REFUSED"),
        ("UNICAST, empty route", (0, ""), "ROUTE_EMPTY"),
        ("UNICAST, no such port", (0, "07"), "PORT_UNKNOWN"),
        ("BROADCAST, no such port", (2, "07"), "PORT_UNKNOWN"),
        ("TREE, malformed", (1, "0400"), "TREE_MALFORMED"),
        ("GROUP, malformed", (3, "07"), "GROUP_MALFORMED"),
        ("GROUP, closed and unknown", (3, "0008"), "GROUP_REFUSED"),
        ("GROUP, open and unknown", (3, "0fa0"), "GROUP_UNKNOWN"),
    ):
        known = fields[0] in Kind.__members__.values()
        kinds = {Kind(fields[0]).name if known else str(fields[0]): 1}
        for whose, source, port, why in (
            ("of the port's host", 5, 0, reason),
            ("with a forged source", 9999, 0, "SOURCE_REFUSED"),
            ("from nowhere", 5, 6, "HOST_UNKNOWN"),
        ):
            worm = make_worm(*fields, source=source)
            cases.append(dropped(f"guard: {name}, {whose}", worm, why, port, state=GUARDED, kinds=kinds))
    # A branch that is not there drops no worm, so it is the guard's reason that counts.
    worm = make_tree_worm(Branch(1), Branch(7), source=9999)
    cases.append(_refused("TREE with a forged source and a branch too many", worm, "SOURCE_REFUSED", 0))
    return cases
