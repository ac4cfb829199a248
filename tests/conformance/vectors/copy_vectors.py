"""Worms that leave by several ports."""

from oracle.tree import Branch
from wormcast.wire import ETHERTYPE_IPV4, Flag, Kind

from vectors.cases import Json, copied, dropped, make_tree_worm, make_worm, one_step
from vectors.codec_vectors import BAD_TREES, HEAD_TAIL


def paired_vectors() -> list[Json]:
    """Ports 4 and 6 lead to one neighbour, and 4 is down."""
    two = make_tree_worm(Branch(1), Branch(4, (Branch(2),)))
    return [
        one_step(
            "PAIRED: UNICAST by the other link", make_worm(Kind.UNICAST, "0405"), 6, "05", state="paired"
        ),
        one_step(
            "PAIRED: UNICAST by the link it names", make_worm(Kind.UNICAST, "0605"), 6, "05", state="paired"
        ),
        one_step(
            "PAIRED: CONTROL by the other link", make_worm(Kind.CONTROL, "0405"), 6, "05", state="paired"
        ),
        one_step(
            "PAIRED: BROADCAST towards the root", make_worm(Kind.BROADCAST, "04"), 6, "", state="paired"
        ),
        copied("PAIRED: TREE, the branch of the other link", two, 0, {1: "", 6: "0200ff"}, state="paired"),
        copied(
            "PAIRED: TREE, back by the link it came in by",
            make_tree_worm(Branch(0), Branch(4, (Branch(2),))),
            6,
            {0: "", 6: "0200ff"},
            state="paired",
        ),
        copied(
            "PAIRED: GROUP from a host",
            make_worm(Kind.GROUP, "0007"),
            0,
            {1: "0007", 5: "0007", 6: "0007"},
            state="paired",
            filtered={"GROUP": 1},
        ),
        copied(
            "PAIRED: GROUP does not go back to its neighbour by the other link",
            make_worm(Kind.GROUP, "0007"),
            4,
            {0: "0007", 1: "0007", 5: "0007"},
            state="paired",
            filtered={"GROUP": 1},
        ),
    ]


def broadcast_vectors() -> list[Json]:
    down = {0: "", 1: "", 2: "", 3: "", 5: "", 6: ""}
    return [
        one_step("BROADCAST: on its way to the root", make_worm(Kind.BROADCAST, "0405"), 4, "05"),
        one_step("BROADCAST: last step to the root", make_worm(Kind.BROADCAST, "04"), 4, ""),
        copied("BROADCAST: from the root, down", make_worm(Kind.BROADCAST, hops=2), 4, down),
        copied("BROADCAST: at the root, also back where it came from", make_worm(Kind.BROADCAST), 5, down),
        copied(
            "BROADCAST: host protocol and IPv4 alike", make_worm(Kind.BROADCAST, next=ETHERTYPE_IPV4), 4, down
        ),
        dropped(
            "BROADCAST: port unknown", make_worm(Kind.BROADCAST, "07"), "PORT_UNKNOWN", kinds={"BROADCAST": 1}
        ),
    ]


def tree_vectors() -> list[Json]:
    deep = (Branch(2), Branch(4, (Branch(1), Branch(6))))
    longest = bytes(i % 200 for i in range(252))
    cases = [
        copied("TREE: one host", make_tree_worm(Branch(3)), 4, {3: ""}),
        copied("TREE: two hosts", make_tree_worm(Branch(1), Branch(3)), 4, {1: "", 3: ""}),
        copied(
            "TREE: host and switch",
            make_tree_worm(Branch(2), Branch(5, (Branch(0), Branch(1)))),
            4,
            {2: "", 5: "00000100ff"},
        ),
        copied(
            "TREE: three branches of different depth",
            make_tree_worm(Branch(1), Branch(5, deep), Branch(6, (Branch(0),))),
            4,
            {1: "", 5: "0200040401000600ff", 6: "0000ff"},
        ),
        copied(
            "TREE: back out of the port it came in by",
            make_tree_worm(Branch(0), Branch(4)),
            4,
            {0: "", 4: ""},
        ),
        copied(
            "TREE: every port there is",
            make_tree_worm(*(Branch(p) for p in range(7))),
            2,
            dict.fromkeys(range(7), ""),
        ),
        copied(
            "TREE: longest sub-route",
            make_worm(Kind.TREE, b"\x05\xfc" + longest + b"\xff"),
            4,
            {5: longest + b"\xff"},
        ),
        copied(
            "TREE: a switch does not look into sub-routes",
            make_worm(Kind.TREE, "0503ffffff0600ff"),
            4,
            {5: "ffffffff", 6: ""},
        ),
        copied(
            "TREE: no payload",
            make_tree_worm(Branch(1), Branch(5, (Branch(3),)), payload=b""),
            0,
            {1: "", 5: "0300ff"},
        ),
        copied(
            "TREE: class 2 from a host",
            make_tree_worm(Branch(1), Branch(4), flags=HEAD_TAIL | Flag.CLASS2),
            0,
            {1: "", 4: ""},
        ),
        copied(
            "TREE: one port missing, the others go on",
            make_tree_worm(Branch(1), Branch(5, (Branch(3),)), Branch(7)),
            4,
            {1: "", 5: "0300ff"},
            drops={"PORT_UNKNOWN": 1},
            filtered={"TREE": 5},
        ),
        copied(
            "TREE: missing ports beyond the small ones",
            make_tree_worm(Branch(6), Branch(200), Branch(253)),
            4,
            {6: ""},
            drops={"PORT_UNKNOWN": 1},
            filtered={"TREE": 6},
        ),
        copied(
            "TREE: no port is there",
            make_tree_worm(Branch(7)),
            4,
            {},
            drops={"PORT_UNKNOWN": 1},
            filtered={"TREE": 7},
        ),
        copied(
            "TREE: sixteen branches",
            make_tree_worm(*(Branch(p) for p in range(15)), Branch(253, (Branch(9),))),
            130,
            {**dict.fromkeys(range(15), ""), 253: "0900ff"},
            state="wide",
            filtered={"TREE": 2},
        ),
        copied(
            "TREE: small ports on a switch with many",
            make_tree_worm(Branch(0), Branch(7, (Branch(1),))),
            8,
            {0: "", 7: "0100ff"},
            state="wide",
            filtered={"TREE": 16},
        ),
        copied(
            "TREE: sixteen sub-routes",
            make_tree_worm(*(Branch(p, (Branch(p + 1, (Branch(p + 2),)),)) for p in range(16))),
            253,
            {p: bytes([p + 1, 2, p + 2, 0, 255]) for p in range(16)},
            state="wide",
            filtered={"TREE": 2},
        ),
        copied(
            "TREE: sixteen sub-routes of odd length",
            make_worm(Kind.TREE, b"".join(bytes([p, 1, 3 * p * p % 251]) for p in range(16)) + b"\xff"),
            253,
            {p: bytes([3 * p * p % 251, 255]) for p in range(16)},
            state="wide",
            filtered={"TREE": 2},
        ),
        copied(
            "TREE: missing ports on a switch with many",
            make_tree_worm(Branch(0), Branch(127), Branch(128), Branch(130), Branch(252)),
            8,
            {0: "", 130: ""},
            state="wide",
            drops={"PORT_UNKNOWN": 1},
            filtered={"TREE": 16},
        ),
    ]
    cases += [
        dropped(f"TREE: {name}", make_worm(Kind.TREE, route), "TREE_MALFORMED", kinds={"TREE": 1})
        for name, route in BAD_TREES
    ]
    return cases


def group_vectors() -> list[Json]:
    worm = make_worm(Kind.GROUP, "0007")
    return [
        copied(
            "GROUP: not back where it came from",
            worm,
            4,
            dict.fromkeys((0, 1, 5), "0007"),
            filtered={"GROUP": 1},
        ),
        copied("GROUP: from a port outside the group", worm, 6, dict.fromkeys((0, 1, 4, 5), "0007")),
        copied("GROUP: from a member host", worm, 0, dict.fromkeys((1, 4, 5), "0007"), filtered={"GROUP": 1}),
        copied("GROUP: 0", make_worm(Kind.GROUP, "0000"), 5, {0: "0000", 4: "0000"}),
        copied(
            "GROUP: broadcast",
            make_worm(Kind.GROUP, "00ff"),
            4,
            dict.fromkeys((0, 1, 2, 3, 5, 6), "00ff"),
            filtered={"GROUP": 1},
        ),
        copied("GROUP: 16-bit number", make_worm(Kind.GROUP, "fffe"), 4, {3: "fffe", 6: "fffe"}),
        copied("GROUP: no one but the sender", make_worm(Kind.GROUP, "0009"), 2, {}, filtered={"GROUP": 1}),
        copied(
            "GROUP: no payload",
            make_worm(Kind.GROUP, "0007", payload=b""),
            6,
            dict.fromkeys((0, 1, 4, 5), "0007"),
        ),
        copied(
            "GROUP: ports above 127",
            make_worm(Kind.GROUP, "0007"),
            253,
            dict.fromkeys((0, 9, 130), "0007"),
            state="wide",
            filtered={"GROUP": 1},
        ),
        dropped("GROUP: unknown", make_worm(Kind.GROUP, "0008"), "GROUP_UNKNOWN", kinds={"GROUP": 1}),
        dropped("GROUP: no configuration", worm, "GROUP_UNKNOWN", state="empty", kinds={"GROUP": 1}),
        dropped("GROUP: empty route", make_worm(Kind.GROUP), "GROUP_MALFORMED", kinds={"GROUP": 1}),
        dropped(
            "GROUP: route of one byte", make_worm(Kind.GROUP, "07"), "GROUP_MALFORMED", kinds={"GROUP": 1}
        ),
        dropped(
            "GROUP: route of three bytes",
            make_worm(Kind.GROUP, "000700"),
            "GROUP_MALFORMED",
            kinds={"GROUP": 1},
        ),
    ]
