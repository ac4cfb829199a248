"""The oracle against the vectors, and each switch against the oracle on random frames."""

import os
import random
from collections import Counter
from typing import Any

import pytest
from oracle.codec import Worm
from reference import Outcome, ReferenceSwitch
from reference_gather import Gathered
from rig.host import SwitchRig
from test_switch_vectors import by_number, times_zero, without_padding
from vector_files import load_vectors
from wormcast.wire import CPU_PORT, RECIRCULATE_PORT, DropReason, Flag, Kind

Json = dict[str, Any]
DOCUMENT = load_vectors("worm_switch.json")
RANDOM_FRAMES = int(os.environ.get("WORMCAST_RANDOM_FRAMES", "300"))

# The reference is of packet mode.
WORMHOLE_STATES = ("wormhole", "full", "guarded_wormhole", "interrupt", "interrupt_root")

# Linux takes these tags off a frame before a packet socket sees it.
VLAN_TYPES = (b"\x81\x00", b"\x88\xa8")


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(vector, id=vector["name"])
        for vector in DOCUMENT["vectors"]
        if vector["state"] not in WORMHOLE_STATES
    ],
)
def test_reference_does_what_the_vector_says(vector: Json) -> None:
    """Also those with a queue depth."""
    reference = ReferenceSwitch(DOCUMENT["states"][vector["state"]])
    for earlier in vector.get("before", []):
        reference.handle(earlier["ingress_port"], bytes.fromhex(earlier["frame"]))
    outcome = reference.handle(
        vector["ingress_port"],
        bytes.fromhex(vector["frame"]),
        vector.get("deq_qdepth", 0),
        vector.get("packet_out", {}).get("egress_port"),
    )
    assert sorted((port, frame.hex()) for port, frame in outcome.out) == [
        (item["port"], item["frame"]) for item in vector["out"]
    ]
    assert +outcome.drops == vector["drops"]
    assert +outcome.filtered == vector["filtered"]
    assert +outcome.kinds == vector["kinds"]
    assert outcome.recirculated == vector["recirculated"]


class Frames:
    """Random frames: mostly near a valid one, since noise alone never gets past the checksum."""

    def __init__(self, seed: int, state: Json) -> None:
        self.random = random.Random(seed)
        self.ports = state["ports"]
        gathers = any(entry["table"] == "ingress.gather" for entry in state["tables"])
        self.kinds = (0, 0, 1, 1, 1, 1, 2, 3, 3, 4) + (5,) * (30 if gathers else 0)
        self.groups = [
            entry["key"]["group"] for entry in state["tables"] if entry["table"] == "ingress.groups"
        ]
        self.owners = {
            entry["key"]["standard_metadata.ingress_port"]: entry["parameters"]["host"]
            for entry in state["tables"]
            if entry["action"] == "ingress.admit_host"
        }
        self.seeds = [
            (vector["ingress_port"], bytes.fromhex(vector["frame"]))
            for vector in DOCUMENT["vectors"]
            if vector["ingress_port"] != CPU_PORT
        ]

    def next(self) -> tuple[int, bytes]:
        """Ingress port and frame."""
        choose = self.random
        if choose.random() < 0.6:
            port = choose.choice(self.ports)
            return port, self._worm(port).to_frame()
        port, frame = choose.choice(self.seeds)
        mutable = bytearray(frame)
        for _ in range(choose.choice((0, 1, 1, 2))):
            mutable[choose.randrange(12, len(mutable))] = choose.randrange(256)
        if choose.random() < 0.3:
            del mutable[choose.randrange(14, len(mutable) + 1) :]
        if mutable[12:14] in VLAN_TYPES:
            mutable[12:14] = b"\x88\xb5"
        return port if port in self.ports and choose.random() < 0.7 else choose.choice(self.ports), bytes(
            mutable
        )

    def _worm(self, ingress_port: int) -> Worm:
        choose = self.random
        own = self.owners.get(ingress_port, 5)
        kind = choose.choice((*self.kinds, choose.randrange(16)))
        if kind == Kind.TREE:
            route = self._tree(choose.choice((0, 1, 2, 3, 5, 8, 16)))
        elif kind == Kind.GROUP:
            route = choose.choice(self.groups or [7]).to_bytes(2, "big")
        else:
            route = bytes(self._port() for _ in range(choose.choice((0, 1, 1, 2, 3, 7, 64, 255))))
        if choose.random() < 0.1:
            route = choose.randbytes(choose.randrange(40))
        gather = b""
        if kind == Kind.GATHER:
            route = b"" if choose.random() < 0.8 else route
            gather = self._gathered().to_bytes()
        flags = choose.randrange(256)
        if choose.random() < 0.9:  # else half of all worms were trains, which are refused
            flags &= ~int(Flag.TRAIN)
        return Worm(
            gather=gather,
            train=choose.randbytes(20) if flags & Flag.TRAIN else b"",
            kind=kind,
            route=route,
            payload=choose.randbytes(choose.choice((0, 1, 19, 20, 21, 46, 300))),
            flags=flags,
            hops=choose.choice((0, 0, 0, 1, 62, 63, 64, 255)),
            source=choose.choice((own, own, own, 5, 64, choose.randrange(65536))),
            sequence=choose.randrange(65536),
            next=choose.choice((0x88B6, 0x0800, choose.randrange(65536))),
            src=bytes.fromhex("020000000009"),
        )

    def _gathered(self) -> Gathered:
        """Of few trees and numbers, so that what one says is about what another has said."""
        choose = self.random
        near = choose.choice((10, 0xFFFFFFFE))

        def pick(usual: int, *others: int) -> int:
            return usual if choose.random() < 0.95 else choose.choice(others)

        return Gathered(
            op=choose.choice((1, 1, 1, 1, 1, 2, 3, pick(1, 0, 4, 255))),
            flags=choose.choice((0, 0, 0, 1, 3, 255)),
            group=pick(7, 8),
            origin=choose.choice((136, 137, 138, pick(200, 99))),
            port=choose.choice(self.ports),
            epoch=pick(9, 8, 10),
            stream=pick(0, 1, 2, 0xFFFFFFFF, 0x90000000),
            cumulative=(near + choose.randrange(5)) % 2**32,
            stable=(near + choose.randrange(5)) % 2**32,
        )

    def _port(self) -> int:
        choose = self.random
        return choose.choice(
            (choose.choice(self.ports), choose.choice(self.ports), 254, choose.randrange(256))
        )

    def _tree(self, branches: int) -> bytes:
        """Ports from the switch's for the most part; in one of ten something is wrong."""
        choose = self.random
        pool = [*self.ports, *range(choose.choice((0, 0, 0, 254)))]
        ports = sorted({choose.choice(pool) for _ in range(branches)})
        route = b""
        for port in ports:
            sub_route = choose.randbytes(choose.choice((0, 0, 2, 5, 12)))
            route += bytes([port, len(sub_route)]) + sub_route
        route = (route + b"\xff")[:255]
        if choose.random() < 0.1 and route:
            wrong = bytearray(route)
            wrong[choose.randrange(len(wrong))] = choose.choice((0, 1, 2, 253, 254, 255))
            route = bytes(wrong)
        return route


@pytest.mark.network
@pytest.mark.parametrize("state", ["small", "wide", "traced", "guarded", "gathering"])
def test_switch_does_what_the_reference_says(switch: SwitchRig, state: str) -> None:
    """Frames out and counters, for random frames; WORMCAST_SEED repeats a run."""
    seed = int(os.environ.get("WORMCAST_SEED", "1996"))
    switch.install(state, DOCUMENT["states"][state], anew=True)  # the reference remembers nothing either
    reference = ReferenceSwitch(DOCUMENT["states"][state])
    frames = Frames(seed, DOCUMENT["states"][state])
    seen: Counter[str] = Counter()
    for number in range(RANDOM_FRAMES):
        port, frame = frames.next()
        expected = reference.handle(port, frame)
        _compare(switch, port, frame, expected, f"frame {number} of seed {seed}, {state}")
        seen.update(expected.drops)
        seen.update(["forwarded"] if expected.out else [])
    # The frames have to reach most of the program for this test to mean anything.
    assert seen["forwarded"] > RANDOM_FRAMES / (10 if state == "guarded" else 5)
    assert len(seen) >= 8, seen


def _compare(switch: SwitchRig, port: int, frame: bytes, expected: Outcome, which: str) -> None:
    drops = by_number(expected.drops, DropReason)
    answer = switch.ask(
        do="pass",
        frame=frame.hex(),
        ingress_port=port,
        packet_out={},
        expected=len(expected.out),
        expected_drops=drops,
    )
    what = f"{which}: port {port}, {frame.hex()}"
    out = sorted(
        (item["port"], item["frame"])
        for item in (times_zero(frame.hex(), without_padding(item)) for item in answer["out"])
    )
    assert out == sorted((to, data.hex()) for to, data in expected.out), what
    assert answer["grown"]["drops"] == drops, what
    assert answer["grown"]["filtered"] == by_number(+expected.filtered, Kind), what
    assert answer["grown"]["kinds"] == by_number(expected.kinds, Kind), what
    assert answer["grown"]["egress_ports"].get(str(RECIRCULATE_PORT), 0) == expected.recirculated, what
